#: splat
$Q $V splat_$V($T x)
{
    return x - ($V){0};
}

#: iota
$Q $V iota_$V(void)
{
    return ($V){$I};
}

#: hold
// Keeps the vector in a register.
$Q $V hold_$V($V v)
{
#ifdef $C
    __asm__("" : "+v"(v));
#endif
    return v;
}

#: select
$Q $V select_$V($M where, $V a, $V b)
{
    return ($V)((where & ($M)a) | (~where & ($M)b));
}

#: min
$Q $V min_$V($V a, $V b)
{
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] < b[l] ? a[l] : b[l];
    return r;
}

#: max
$Q $V max_$V($V a, $V b)
{
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] > b[l] ? a[l] : b[l];
    return r;
}

#: min_float
// One NaN is ignored; -0.0 is less than 0.0.
$Q $V min_$V($V a, $V b)
{
#if $C
    union {
        $V v;
        $G part[$K];
    } x = {.v = a}, y = {.v = b};
    for (int n = 0; n < $K; n++)
        x.part[n] = $D(x.part[n], y.part[n], 4);
    return x.v;
#else
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] < b[l] ? a[l] : b[l];
    r = ($V)(($M)r | (($M)a & (a == b)));
    return select_$V(b != b, a, r);
#endif
}

#: min_float_lanes
// One NaN is ignored; -0.0 is less than 0.0.
$Q $V min_$V($V a, $V b)
{
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] < b[l] ? a[l] : b[l];
    r = ($V)(($M)r | (($M)a & (a == b)));
    return select_$V(b != b, a, r);
}

#: max_float
// One NaN is ignored; -0.0 is less than 0.0.
$Q $V max_$V($V a, $V b)
{
#if $C
    union {
        $V v;
        $G part[$K];
    } x = {.v = a}, y = {.v = b};
    for (int n = 0; n < $K; n++)
        x.part[n] = $D(x.part[n], y.part[n], 5);
    return x.v;
#else
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] > b[l] ? a[l] : b[l];
    r = ($V)(($M)r & (($M)a | (a != b)));
    return select_$V(b != b, a, r);
#endif
}

#: max_float_lanes
// One NaN is ignored; -0.0 is less than 0.0.
$Q $V max_$V($V a, $V b)
{
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] > b[l] ? a[l] : b[l];
    r = ($V)(($M)r & (($M)a | (a != b)));
    return select_$V(b != b, a, r);
}

#: lesser
// `b` where `a` is NaN, and NaN where `b` is.
$Q $V lesser_$V($V a, $V b)
{
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] < b[l] ? a[l] : b[l];
    return r;
}

#: greater
// `b` where `a` is NaN, and NaN where `b` is.
$Q $V greater_$V($V a, $V b)
{
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] > b[l] ? a[l] : b[l];
    return r;
}

#: abs
$Q $V abs_$V($V a)
{
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[l] < 0 ? ($T)-a[l] : a[l];
    return r;
}

#: abs_float
$Q $V abs_$V($V a)
{
    return ($V)(($M)a & $A);
}

#: div_signed
// Rounds down. A zero divisor gives an undefined value; neither it nor -1 traps.
// A rounded quotient of $F never reaches the next integer, since $N has fewer digits.
$Q $V div_$V($V a, $V b)
{
    const $V minus = b == -1;
    const $V d = select_$V((b == 0) | minus, splat_$V(1), b);
    const $V q = __builtin_convertvector(__builtin_convertvector(a, $F) / __builtin_convertvector(d, $F), $V);
    const $V r = a - q * d;
    return select_$V(minus, -a, q + ((r != 0) & ((r ^ d) < 0)));
}

#: rem_signed
// Has the sign of the divisor. A zero divisor gives an undefined value but does not trap.
$Q $V rem_$V($V a, $V b)
{
    const $V d = select_$V((b == 0) | (b == -1), splat_$V(1), b);
    const $V q = __builtin_convertvector(__builtin_convertvector(a, $F) / __builtin_convertvector(d, $F), $V);
    const $V r = a - q * d;
    return r + (d & (r != 0) & ((r ^ d) < 0));
}

#: div_unsigned
// A zero divisor gives an undefined value but does not trap.
// A rounded quotient of $F never reaches the next integer, since $N has fewer digits.
$Q $V div_$V($V a, $V b)
{
    const $V d = select_$V(b == 0, splat_$V(1), b);
    return __builtin_convertvector(__builtin_convertvector(a, $F) / __builtin_convertvector(d, $F), $V);
}

#: rem_unsigned
// A zero divisor gives an undefined value but does not trap.
$Q $V rem_$V($V a, $V b)
{
    const $V d = select_$V(b == 0, splat_$V(1), b);
    const $V q = __builtin_convertvector(__builtin_convertvector(a, $F) / __builtin_convertvector(d, $F), $V);
    return a - q * d;
}

#: lanes1
$Q $V $F_$V($V a)
{
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = $F_$N(a[l]);
    return r;
}

#: map2
$Q $V $F_$V($V a, $V b)
{
    $T r[$L], s[$L];
    memcpy(r, &a, sizeof a);
    memcpy(s, &b, sizeof b);
    ONE_BY_ONE
    for (int l = 0; l < $L; l++)
        r[l] = $F_$N(r[l], s[l]);
    return *($V_mem *)r;
}

#: saturate
// Rounds towards zero and saturates; NaN becomes zero. $S is the mask of a result.
$Q $V $V_from_$F($F x)
{
    const $G least = x < $A, most = x >= $C, inside = (x == x) & ~least & ~most;
    const $V r = __builtin_convertvector(($F)(($G)x & inside), $V);
    const $S low = __builtin_convertvector(least, $S), high = __builtin_convertvector(most, $S);
    return select_$V(low, splat_$V($B), select_$V(high, splat_$V($D), r));
}

#: permute
$Q $V $F_$V($V a)
{
    return __builtin_shufflevector(a, a, $I);
}

#: lane_shift
// The top of `low`, then `high`: lanes of `high` move up by $F.
$Q $V lane_shift$F_$V($V low, $V high)
{
    return __builtin_shufflevector(low, high, $I);
}

#: pick
$Q $V pick_$V($V a, $M from)
{
#ifdef __clang__
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = a[from[l] & $K];
    return r;
#else
    return __builtin_shuffle(a, from & $K);
#endif
}

#: lanes_below
// Bit l says whether l < n.
$Q uint64_t lanes$L_below(int64_t n)
{
    return n <= 0 ? 0 : n >= $L ? $A : (UINT64_C(1) << n) - 1;
}

#: lanes_at
// Bit n, where there is such a lane.
$Q uint64_t lanes$L_at(int64_t n)
{
    return n >= 0 && n < $L ? UINT64_C(1) << n : 0;
}

#: lanes_where
// Bit l says whether element l is set.
$Q uint64_t lanes$L_where_$V($V mask)
{
    uint64_t on = 0;
#if $C
    const union {
        $V v;
        $G part[$K];
    } m = {.v = mask};
    for (int n = 0; n < $K; n++)
        on |= (uint64_t)$D(m.part[n]) << (n * $A);
#else
    for (int l = 0; l < $L; l++)
        on |= (uint64_t)(mask[l] & 1) << l;
#endif
    return on;
}

#: lanes_where_lanes
// Bit l says whether element l is set.
$Q uint64_t lanes$L_where_$V($V mask)
{
    uint64_t on = 0;
    for (int l = 0; l < $L; l++)
        on |= (uint64_t)(mask[l] & 1) << l;
    return on;
}

#: any
// Is the mask set in any lane?
$Q bool any_$V($V mask)
{
#if $C
    return lanes$L_where_$V(mask) != 0;
#else
    union {
        uint64_t words[(sizeof($V) + 7) / 8];
        $V v;
    } m = {{0}};
    m.v = mask;
    uint64_t all = 0;
    for (unsigned n = 0; n < (sizeof($V) + 7) / 8; n++)
        all |= m.words[n];
    return all != 0;
#endif
}

#: lane_below
// The mask of the lanes less than n.
$Q $V lane_below_$V(int64_t n)
{
    return iota_$V() < ($T)(n < 0 ? 0 : n > $L ? $L : n);
}

#: lane_at
// The mask of lane n.
$Q $V lane_at_$V(int64_t n)
{
    return iota_$V() == ($T)(n < 0 || n >= $L ? -1 : n);
}

