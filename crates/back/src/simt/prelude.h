#: floordiv
$Q $T floordiv($T a, $T c)
{
    return a / c - (a % c < 0);
}

#: mod
$Q $T mod($T a, $T c)
{
    const $T r = a % c;
    return r < 0 ? r + c : r;
}

#: wrap
// Wraps around, which signed arithmetic does not guarantee.
$Q $T $F_$N($T a, $T b)
{
    return ($T)(($U)a $O ($U)b);
}

#: minus
// -a, in a form that ptxas 13.0 does not recognise as a negation: it drops the sign of a negated
// number that is the second of three operands of a minimum or maximum.
$Q index_t minus_index(index_t a)
{
#if defined(__CUDA_ARCH__) || defined(__NV_CL_C_VERSION)
    if (sizeof(a) == 4) {
        int32_t inverse;
        asm("not.b32 %0, %1;" : "=r"(inverse) : "r"((int32_t)a));
        return inverse + 1;
    }
#endif
    return -a;
}

#: wrap_neg_32
// -a, in a form that ptxas 13.0 does not recognise as a negation: it drops the sign of a negated
// number that is the second of three operands of a minimum or maximum.
$Q $T neg_$N($T a)
{
#if defined(__CUDA_ARCH__) || defined(__NV_CL_C_VERSION)
    asm("not.b32 %0, %1;" : "=r"(a) : "r"(a));
    return ($T)(($U)a + 1);
#else
    return ($T)(0 - ($U)a);
#endif
}

#: wrap_neg
$Q $T neg_$N($T a)
{
    return ($T)(0 - ($U)a);
}

#: wrap_abs
$Q $T abs_$N($T a)
{
    return a < 0 ? ($T)(0 - ($U)a) : a;
}

#: extremum
// One NaN is ignored; -0.0 is less than 0.0, as in NVIDIA's instructions.
$Q $T $F_$N($T a, $T b)
{
#if defined(__CUDA_ARCH__) || defined(__NV_CL_C_VERSION)
    return $G(a, b);
#else
    return a $O b || b != b || (a == b && $H) ? a : b;
#endif
}

#: rsqrt
$Q $T rsqrt_$N($T a)
{
#if defined(__CUDA_ARCH__) || defined(__OPENCL_VERSION__)
    return rsqrt$F(a);
#else
    return 1 / sqrt$F(a);
#endif
}

#: inside_signed
// Clamps an index to its axis.
$Q index_t inside_$N($T i, index_t n)
{
    return i < 0 ? 0 : i < n ? (index_t)i : n - 1;
}

#: inside_unsigned
// Clamps an index to its axis.
$Q index_t inside_$N($T i, index_t n)
{
    return i < (uint64_t)n ? (index_t)i : n - 1;
}

#: lane_shift
// Lane l gets element l + $L - by of low followed by high: each lane sends the one that is needed.
$Q $T lane_shift_$N($T low, $T high, int by, int lane)
{
    return lane_$N(lane >= $L - by ? low : high, lane + $L - by);
}
