#: round_f64
// The nearest integer of numbers below 2^51, and its low bits.
$Q $V whole_$V($V x, $M *bits)
{
    const $V sum = x + 0x1.8p52;
    *bits = ($M)sum - INT64_C(0x4338000000000000);
    return sum - 0x1.8p52;
}

#: power_of_two_f64
// 2^n for normal results.
$Q $V power_of_two_$V($M n)
{
    return ($V)((n + 1023) << 52);
}

#: rest_of_product_f64
// a * b - p, where p is close to a * b.
$Q $V rest_of_product_$V($V a, $V b, $V p)
{
#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__ARM_FEATURE_FMA)
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = __builtin_fma(a[l], b[l], -p[l]);
    return r;
#else
    const $V c = ($V)(($M)a & -INT64_C(0x8000000)), d = ($V)(($M)b & -INT64_C(0x8000000));
    return c * d - p + (c * (b - d) + d * (a - c)) + (a - c) * (b - d);
#endif
}

#: exp_of_sum_f64
// e^(x + y), where y is much smaller than x: within 1 ulp. e^x = 2^k e^r with |r| <= ln 2 / 2, and
// a polynomial for (e^r - 1 - r) / r^2.
$Q $V exp_of_sum_$V($V x, $V y)
{
    const $V above = select_$V(x > 710.0, splat_$V(710.0), x);
    const $V inside = select_$V(x < -746.0, splat_$V(-746.0), above);
    $M n, half;
    const $V k = whole_$V(inside * 0x1.71547652b82fep+0, &n);
    const $V r = inside - k * 0x1.62e42fefa0000p-1 - (k * 0x1.cf79abc9e3b3ap-40 - y);
    $V p = r * 0x1.af859f6c03ec0p-26 + 0x1.28b048cc64c6ep-22;
    p = p * r + 0x1.71dddfbdc6b64p-19;
    p = p * r + 0x1.a01996942c351p-16;
    p = p * r + 0x1.a01a01bae7a49p-13;
    p = p * r + 0x1.6c16c185a71f0p-10;
    p = p * r + 0x1.111111110d62fp-7;
    p = p * r + 0x1.5555555550031p-5;
    p = p * r + 0x1.5555555555561p-3;
    p = p * r + 0x1.000000000000bp-1;
    p = 1.0 + (r + r * r * p);
    // In two steps, so that the result can be subnormal.
    whole_$V(k * 0.5, &half);
    return p * power_of_two_$V(half) * power_of_two_$V(n - half);
}

#: exp
$Q $V exp_$V($V x)
{
    return exp_of_sum_$V(x, splat_$V(0));
}

#: split_f64
// x = 2^k m with sqrt(1/2) <= m < sqrt(2), for positive numbers.
$Q $V split_$V($V x, $V *k)
{
    const $M tiny = x < 0x1p-1022;
    const $V normal = select_$V(tiny, x * 0x1p54, x);
    const $U bits = ($U)normal + (UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd));
    *k = ($V)((bits >> 52) | UINT64_C(0x4330000000000000)) - 0x1p52 - 1023.0 - ($V)(($M)splat_$V(54.0) & tiny);
    return ($V)((bits & UINT64_C(0xfffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd));
}

#: log_f64
// Within 1 ulp: ln x = k ln 2 + 2 artanh s with s = (m - 1) / (m + 1), and a polynomial in s^2.
$Q $V log_$V($V x)
{
    $V k;
    const $V f = split_$V(x, &k) - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    $V p = z * 0x1.2f06594bcba45p-3 + 0x1.39a1a2dd938f1p-3;
    p = p * z + 0x1.74663fd0906d1p-3;
    p = p * z + 0x1.c71c52050074cp-3;
    p = p * z + 0x1.24924941f6804p-2;
    p = p * z + 0x1.999999997fd55p-2;
    p = p * z + 0x1.5555555555592p-1;
    const $V r = k * 0x1.62e42fefa0000p-1 - (half - (s * (half + p * z) + k * 0x1.cf79abc9e3b3ap-40) - f);
    const $V below = select_$V(x == 0.0, splat_$V(-__builtin_inf()), splat_$V(__builtin_nan("")));
    const $V ends = select_$V(x == __builtin_inf(), x, below);
    return select_$V((x > 0.0) & (x < __builtin_inf()), r, ends);
}

#: quadrant_f64
// x - k pi/2 with |x - k pi/2| <= pi/4, as a sum of two numbers; |x| < 2^20. pi/2 is split into
// three parts of 33 bits, so that their products with k are exact.
$Q $V quadrant_$V($V x, $V *rest, $M *n)
{
    const $V k = whole_$V(x * 0x1.45f306dc9c883p-1, n);
    const $V a = x - k * 0x1.921fb54400000p+0;
    const $V b = k * 0x1.0b4611a600000p-34, ab = a - b, a1 = ab + b;
    const $V c = k * 0x1.3198a2e000000p-69, abc = ab - c, ab1 = abc + c;
    const $V lost = ((a - a1) - (b - (a1 - ab))) + ((ab - ab1) - (c - (ab1 - abc)));
    const $V low = lost - k * 0x1.b839a252049c1p-104;
    const $V r = abc + low;
    *rest = abc - r + low;
    return r;
}

#: sin_cos_f64
// The sine of x + n pi/2, within 1 ulp.
$Q $V sin_cos_$V($V x, int n)
{
    $V rest;
    $M turns;
    const $V r = quadrant_$V(x, &rest, &turns), z = r * r;
    $V p = z * 0x1.5d93186ff0c5dp-33 - 0x1.ae5e6689264efp-26;
    p = p * z + 0x1.71de357817eb6p-19;
    p = p * z - 0x1.a01a019c1205ep-13;
    p = p * z + 0x1.111111110f87ep-7;
    p = p * z - 0x1.5555555555549p-3;
    const $V sine = r + (p * (z * r) + rest * (1.0 - 0.5 * z));
    $V q = z * -0x1.8faeb5d2925e3p-37 + 0x1.1ee9ec1896d20p-29;
    q = q * z - 0x1.27e4f80a34039p-22;
    q = q * z + 0x1.a01a019cb217ap-16;
    q = q * z - 0x1.6c16c16c15181p-10;
    q = q * z + 0x1.555555555554cp-5;
    const $V half = 0.5 * z, one = 1.0 - half;
    const $V cosine = one + ((1.0 - one - half) + (z * z * q - r * rest));
    turns += n;
    const $V chosen = select_$V(-(turns & 1), cosine, sine);
    return ($V)(($M)chosen ^ ((turns & 2) << 62));
}

#: sin
// Lane by lane where a number is large.
$Q $V sin_$V($V x)
{
    if (lanes$L_where_$M(~((x < $A) & (x > -$A))))
        return sin_each_$V(x);
    // The sine of -0.0 is -0.0.
    return select_$V(x == 0, x, sin_cos_$V(x, 0));
}

#: cos
// Lane by lane where a number is large.
$Q $V cos_$V($V x)
{
    if (lanes$L_where_$M(~((x < $A) & (x > -$A))))
        return cos_each_$V(x);
    return sin_cos_$V(x, 1);
}

#: tanh_f64
// Within 1.5 ulp: (e^2x - 1) / (e^2x + 1), both as sums of two numbers, with
// e^2x - 1 = 2^k (e^r - 1) + 2^k - 1.
$Q $V tanh_$V($V x)
{
    const $V size = ($V)(($M)x & INT64_MAX), most = select_$V(size > 20.0, splat_$V(20.0), size);
    $M n;
    const $V k = whole_$V(most * 0x1.71547652b82fep+1, &n);
    const $V a = 2.0 * most - k * 0x1.62e42fefa0000p-1, b = k * 0x1.cf79abc9e3b3ap-40, r = a - b, rest = a - r - b;
    $V p = r * 0x1.af859f6c03ec0p-26 + 0x1.28b048cc64c6ep-22;
    p = p * r + 0x1.71dddfbdc6b64p-19;
    p = p * r + 0x1.a01996942c351p-16;
    p = p * r + 0x1.a01a01bae7a49p-13;
    p = p * r + 0x1.6c16c185a71f0p-10;
    p = p * r + 0x1.111111110d62fp-7;
    p = p * r + 0x1.5555555550031p-5;
    p = p * r + 0x1.5555555555561p-3;
    p = p * r + 0x1.000000000000bp-1;
    const $V power = power_of_two_$V(n), first = power - 1.0, second = power * r;
    const $V sum = first + second, back = sum - first, third = power * (r * r * p + (rest + rest * r));
    const $V low = (first - (sum - back)) + (second - back) + third;
    const $V top = sum + low, top_rest = sum - top + low;
    const $V bottom = top + 2.0, bottom_back = bottom - top;
    const $V bottom_rest = (top - (bottom - bottom_back)) + (2.0 - bottom_back) + top_rest;
    const $V q = top / bottom;
    const $V error = top_rest - q * bottom_rest - rest_of_product_$V(q, bottom, top);
    const $V t = q + error / bottom;
    // Small numbers are returned as they are, NaN gives NaN, and the sign is that of x.
    const $V known = select_$V(size > 0x1p-28, t, size);
    return ($V)(($M)select_$V(x == x, known, size) | (($M)x & INT64_MIN));
}

#: pow_positive
// x^y = e^(y ln x) for positive finite x and finite y, within 1.5 ulp: the logarithm is a sum of
// two numbers, accurate to 65 bits.
$Q $V pow_positive_$V($V x, $V y)
{
    $V k;
    const $V m = split_$V(x, &k), f = m - 1.0, d = m + 1.0, d_rest = m - (d - 1.0);
    const $V s = f / d, s_rest = (-rest_of_product_$V(s, d, f) - s * d_rest) / d;
    const $V z = s * s, z_rest = rest_of_product_$V(s, s, z) + 2.0 * s * s_rest;
    const $V c = s * z, c_rest = rest_of_product_$V(s, z, c) + (s * z_rest + s_rest * z);
    const $V third = c * 0x1.5555555555555p-1;
    const $V third_rest = rest_of_product_$V(c, splat_$V(0x1.5555555555555p-1), third) +
                          (c * 0x1.5555555555555p-55 + c_rest * 0x1.5555555555555p-1);
    $V p = z * 0x1.c31c14e46acb6p-4 + 0x1.aaebea1ac20c1p-4;
    p = p * z + 0x1.e20b7f7e335f8p-4;
    p = p * z + 0x1.111094584f77bp-3;
    p = p * z + 0x1.3b13b311804a0p-3;
    p = p * z + 0x1.745d17417fb08p-3;
    p = p * z + 0x1.c71c71c72275ep-3;
    p = p * z + 0x1.249249249246fp-2;
    p = p * z + 0x1.999999999999ap-2;
    const $V twice = 2.0 * s, h = twice + third;
    const $V h_rest = twice - h + third + (2.0 * s_rest + third_rest + c * z * p);
    const $V whole = k * 0x1.62e42fefa0000p-1, sum = whole + h;
    const $V sum_rest = whole - sum + h + (h_rest + k * 0x1.cf79abc9e3b3ap-40);
    const $V ln = sum + sum_rest, ln_rest = sum - ln + sum_rest;
    const $V t = y * ln, t_rest = rest_of_product_$V(y, ln, t) + y * ln_rest;
    const $V size = ($V)(($M)t & INT64_MAX);
    return exp_of_sum_$V(t, ($V)(($M)t_rest & (size < 800.0)));
}

#: pow_rough
// The same with 32 bits, for results that are rounded to f32.
$Q $V pow_rough_$V($V x, $V y)
{
    $V k;
    const $V f = split_$V(x, &k) - 1.0, s = f / (2.0 + f), z = s * s;
    $V p = z * 0x1.e2f726d799ed2p-3 + 0x1.2438d2b87d3acp-2;
    p = p * z + 0x1.999a7a9d542acp-2;
    p = p * z + 0x1.555554fd92fd3p-1;
    const $V t = y * (k * 0x1.62e42fefa39efp-1 + (2.0 * s + p * z * s));
    const $V above = select_$V(t > 150.0, splat_$V(150.0), t);
    const $V inside = select_$V(t < -150.0, splat_$V(-150.0), above);
    $M n;
    const $V r = inside - whole_$V(inside * 0x1.71547652b82fep+0, &n) * 0x1.62e42fefa39efp-1;
    $V q = r * 0x1.a1b7efcec26ffp-13 + 0x1.6d96842091f46p-10;
    q = q * r + 0x1.11107cfba668ep-7;
    q = q * r + 0x1.555480573834cp-5;
    q = q * r + 0x1.55555597fcb0cp-3;
    q = q * r + 0x1.00000042eb7cbp-1;
    return (1.0 + (r + r * r * q)) * power_of_two_$V(n);
}

#: pow
// Computed from the magnitude of x. A negative x needs an integer y, and gives a negative result
// where y is odd; from 2^53 on, all y are even.
$Q $V $F_$V($V x, $V y)
{
    const $V size = ($V)(($M)x & INT64_MAX), most = ($V)(($M)y & INT64_MAX);
    if (lanes$L_where_$M(~((size > 0.0) & (size < __builtin_inf()) & (most < __builtin_inf()))))
        return pow_each_$V(x, y);
    const $V r = $G_$V(size, y), sum = most + 0x1p52;
    const $M large = most >= 0x1p52, is_whole = large | (sum - 0x1p52 == most);
    const $M odd = ($M)select_$V(large, most, sum) & (most < 0x1p53) & 1;
    const $V signed_r = select_$V(is_whole, ($V)(($M)r ^ (odd << 63)), splat_$V(__builtin_nan("")));
    return select_$V(x < 0.0, signed_r, r);
}

#: round_f32
// The nearest integer of numbers below 2^22, and its low bits.
$Q $V whole_$V($V x, $M *bits)
{
    const $V sum = x + 0x1.8p23f;
    *bits = ($M)sum - 0x4b400000;
    return sum - 0x1.8p23f;
}

#: power_of_two_f32
// 2^n for normal results.
$Q $V power_of_two_$V($M n)
{
    return ($V)((n + 127) << 23);
}

#: rest_of_product_f32
// a * b - p, where p is close to a * b.
$Q $V rest_of_product_$V($V a, $V b, $V p)
{
#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__ARM_FEATURE_FMA)
    $V r = a;
    for (int l = 0; l < $L; l++)
        r[l] = __builtin_fmaf(a[l], b[l], -p[l]);
    return r;
#else
    const $V c = ($V)(($M)a & -0x1000), d = ($V)(($M)b & -0x1000);
    return c * d - p + (c * (b - d) + d * (a - c)) + (a - c) * (b - d);
#endif
}

#: exp_of_sum_f32
// e^(x + y), where y is much smaller than x: within 1.5 ulp, as on f64.
$Q $V exp_of_sum_$V($V x, $V y)
{
    const $V above = select_$V(x > 89.0f, splat_$V(89.0f), x);
    const $V inside = select_$V(x < -104.0f, splat_$V(-104.0f), above);
    $M n, half;
    const $V k = whole_$V(inside * 0x1.715476p+0f, &n);
    const $V r = inside - k * 0x1.62e4p-1f - (k * 0x1.7f7d1cp-20f - y);
    $V p = r * 0x1.6db488p-10f + 0x1.123b54p-7f;
    p = p * r + 0x1.55545ep-5f;
    p = p * r + 0x1.55548ep-3f;
    p = p * r + 0.5f;
    p = 1.0f + (r + r * r * p);
    // In two steps, so that the result can be subnormal.
    whole_$V(k * 0.5f, &half);
    return p * power_of_two_$V(half) * power_of_two_$V(n - half);
}

#: split_f32
// x = 2^k m with sqrt(1/2) <= m < sqrt(2), for positive numbers.
$Q $V split_$V($V x, $V *k)
{
    const $M tiny = x < 0x1p-126f;
    const $V normal = select_$V(tiny, x * 0x1p24f, x);
    const $U bits = ($U)normal + (0x3f800000u - 0x3f3504f3u);
    *k = ($V)((bits >> 23) | 0x4b000000u) - 0x1p23f - 127.0f - ($V)(($M)splat_$V(24.0f) & tiny);
    return ($V)((bits & 0x7fffffu) + 0x3f3504f3u);
}

#: log_f32
// Within 1 ulp, as on f64.
$Q $V log_$V($V x)
{
    $V k;
    const $V f = split_$V(x, &k) - 1.0f, s = f / (2.0f + f), z = s * s, half = 0.5f * f * f;
    $V p = z * 0x1.31e34cp-2f + 0x1.995eb6p-2f;
    p = p * z + 0x1.55557ap-1f;
    const $V r = k * 0x1.62e4p-1f - (half - (s * (half + p * z) + k * 0x1.7f7d1cp-20f) - f);
    const $V below = select_$V(x == 0.0f, splat_$V(-__builtin_inff()), splat_$V(__builtin_nanf("")));
    const $V ends = select_$V(x == __builtin_inff(), x, below);
    return select_$V((x > 0.0f) & (x < __builtin_inff()), r, ends);
}

#: quadrant_f32
// x - k pi/2 with |x - k pi/2| <= pi/4, as a sum of two numbers; |x| < 2^13. pi/2 is split into
// four parts of 11 bits, so that their products with k are exact.
$Q $V quadrant_$V($V x, $V *rest, $M *n)
{
    const $V k = whole_$V(x * 0x1.45f306p-1f, n);
    const $V a = x - k * 0x1.92p+0f;
    const $V b = k * 0x1.fb4p-12f, ab = a - b, a1 = ab + b;
    const $V c = k * 0x1.444p-24f, abc = ab - c, ab1 = abc + c;
    const $V d = k * 0x1.68cp-39f, abcd = abc - d, abc1 = abcd + d;
    const $V lost = ((a - a1) - (b - (a1 - ab))) + ((ab - ab1) - (c - (ab1 - abc))) + ((abc - abc1) - (d - (abc1 - abcd)));
    const $V low = lost - k * 0x1.1a6264p-54f;
    const $V r = abcd + low;
    *rest = abcd - r + low;
    return r;
}

#: sin_cos_f32
// The sine of x + n pi/2, within 1 ulp.
$Q $V sin_cos_$V($V x, int n)
{
    $V rest;
    $M turns;
    const $V r = quadrant_$V(x, &rest, &turns), z = r * r;
    $V p = z * -0x1.994e88p-13f + 0x1.110760p-7f;
    p = p * z - 0x1.555546p-3f;
    const $V sine = r + (p * (z * r) + rest * (1.0f - 0.5f * z));
    $V q = z * 0x1.9a0232p-16f - 0x1.6c0c8cp-10f;
    q = q * z + 0x1.55554ap-5f;
    const $V half = 0.5f * z, one = 1.0f - half;
    const $V cosine = one + ((1.0f - one - half) + (z * z * q - r * rest));
    turns += n;
    const $V chosen = select_$V(-(turns & 1), cosine, sine);
    return ($V)(($M)chosen ^ ((turns & 2) << 30));
}

#: tanh_f32
// Within 1.5 ulp, as on f64.
$Q $V tanh_$V($V x)
{
    const $V size = ($V)(($M)x & INT32_MAX), most = select_$V(size > 10.0f, splat_$V(10.0f), size);
    $M n;
    const $V k = whole_$V(most * 0x1.715476p+1f, &n);
    const $V a = 2.0f * most - k * 0x1.62e4p-1f, b = k * 0x1.7f7d1cp-20f, r = a - b, rest = a - r - b;
    $V p = r * 0x1.6db488p-10f + 0x1.123b54p-7f;
    p = p * r + 0x1.55545ep-5f;
    p = p * r + 0x1.55548ep-3f;
    p = p * r + 0.5f;
    const $V power = power_of_two_$V(n), first = power - 1.0f, second = power * r;
    const $V sum = first + second, back = sum - first, third = power * (r * r * p + (rest + rest * r));
    const $V low = (first - (sum - back)) + (second - back) + third;
    const $V top = sum + low, top_rest = sum - top + low;
    const $V bottom = top + 2.0f, bottom_back = bottom - top;
    const $V bottom_rest = (top - (bottom - bottom_back)) + (2.0f - bottom_back) + top_rest;
    const $V q = top / bottom;
    const $V error = top_rest - q * bottom_rest - rest_of_product_$V(q, bottom, top);
    const $V t = q + error / bottom;
    const $V known = select_$V(size > 0x1p-13f, t, size);
    return ($V)(($M)select_$V(x == x, known, size) | (($M)x & INT32_MIN));
}

#: pow_f32
// Computed on doubles and rounded once.
$Q $V pow_$V($V x, $V y)
{
    return __builtin_convertvector(pow_rough_whole_$W(__builtin_convertvector(x, $W), __builtin_convertvector(y, $W)), $V);
}

#: each1
// Lane by lane.
static __attribute__((noinline, unused)) $V $F_each_$V($V x)
{
    $V r = x;
    for (int l = 0; l < $L; l++)
        r[l] = $F_$N(x[l]);
    return r;
}

#: each2
// Lane by lane.
static __attribute__((noinline, unused)) $V $F_each_$V($V x, $V y)
{
    $V r = x;
    for (int l = 0; l < $L; l++)
        r[l] = $F_$N(x[l], y[l]);
    return r;
}

#: parts1
// Register by register.
$Q $V $F_$V($V x)
{
    union {
        $V v;
        $P part[$K];
    } a = {.v = x};
    for (int n = 0; n < $K; n++)
        a.part[n] = $F_$P(a.part[n]);
    return a.v;
}

#: parts2
// Register by register.
$Q $V $F_$V($V x, $V y)
{
    union {
        $V v;
        $P part[$K];
    } a = {.v = x}, b = {.v = y};
    for (int n = 0; n < $K; n++)
        a.part[n] = $F_$P(a.part[n], b.part[n]);
    return a.v;
}
