#: floordiv
$Q int64_t floordiv(int64_t a, int64_t c)
{
    return a / c - (a % c < 0);
}

#: mod
$Q int64_t mod(int64_t a, int64_t c)
{
    const int64_t r = a % c;
    return r < 0 ? r + c : r;
}

#: clamp_index
$Q int64_t clamp_index(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

#: min
$Q $T min_$N($T a, $T b)
{
    return a < b ? a : b;
}

#: max
$Q $T max_$N($T a, $T b)
{
    return a > b ? a : b;
}

#: min_float
// One NaN is ignored; -0.0 is less than 0.0.
$Q $T min_$N($T a, $T b)
{
    return a < b || b != b || (a == b && signbit(a)) ? a : b;
}

#: max_float
// One NaN is ignored; -0.0 is less than 0.0.
$Q $T max_$N($T a, $T b)
{
    return a > b || b != b || (a == b && !signbit(a)) ? a : b;
}

#: abs
$Q $T abs_$N($T a)
{
    return a < 0 ? ($T)-a : a;
}

#: shl
$Q $T shl_$N($T a, $T b)
{
    return ($T)(($U)a << (b & $W));
}

#: div_signed
// Rounds down. A zero divisor gives an undefined value; neither it nor -1 traps.
$Q $T div_$N($T a, $T b)
{
    const $T d = b == 0 || b == -1 ? 1 : b;
    return b == -1 ? ($T)-a : ($T)(a / d - (a % d != 0 && (a ^ d) < 0));
}

#: rem_signed
// Has the sign of the divisor. A zero divisor gives an undefined value but does not trap.
$Q $T rem_$N($T a, $T b)
{
    const $T d = b == 0 || b == -1 ? 1 : b;
    const $T r = ($T)(a % d);
    return r != 0 && (r ^ d) < 0 ? ($T)(r + d) : r;
}

#: div_unsigned
// A zero divisor gives an undefined value but does not trap.
$Q $T div_$N($T a, $T b)
{
    return ($T)(a / (b == 0 ? 1 : b));
}

#: rem_unsigned
// A zero divisor gives an undefined value but does not trap.
$Q $T rem_$N($T a, $T b)
{
    return ($T)(a % (b == 0 ? 1 : b));
}

#: pow_int
$Q $T pow_$N($T a, $T b)
{
    uint64_t base = (uint64_t)a, power = 1;
    for (uint64_t e = (uint64_t)b; e > 0; e >>= 1) {
        if (e & 1)
            power *= base;
        base *= base;
    }
    return ($T)power;
}

#: libm1
$Q $T $F_$N($T a)
{
    return $G(a);
}

#: rsqrt
$Q $T rsqrt_$N($T a)
{
    return 1 / $G(a);
}

#: libm2
$Q $T $F_$N($T a, $T b)
{
    return $G(a, b);
}

#: saturate
// Rounds towards zero and saturates; NaN becomes zero.
$Q $T $N_from_$F($G x)
{
    return x != x ? 0 : x < $A ? $B : x >= $C ? $D : ($T)x;
}

#: clamp_i64
$Q int64_t clamp_i64(int64_t x, int64_t least, int64_t greatest)
{
    return x < least ? least : x > greatest ? greatest : x;
}

