#: load
$Q $V load_$V(const $T *p)
{
    return *(const $V_mem *)p;
}

#: store
$Q void store_$V($T *p, $V v)
{
    *($V_mem *)p = v;
}

#: stream
// A non-temporal store if the array is large: whole cache lines, or parts of 16 bytes, which the
// store that follows completes.
$Q void stream_$V($T *p, $V v, bool large)
{
#ifdef $C
    if (large && ((uintptr_t)p & $A) == 0) {
        const union {
            $V v;
            $G part[$K];
        } r = {.v = v};
        for (int n = 0; n < $K; n++)
            $D(($G *)p + n, r.part[n]);
        return;
    }
    if (large && ((uintptr_t)p & 15) == 0) {
        const union {
            $V v;
            __m128i part[$E];
        } r = {.v = v};
        for (int n = 0; n < $E; n++)
            _mm_stream_si128((__m128i *)p + n, r.part[n]);
        return;
    }
#else
    (void)large;
#endif
    store_$V(p, v);
}

#: stream_if
// The same for active lanes; inactive lanes do not access memory.
$Q void stream_if_$V($T *p, uint64_t on, $V v, bool large)
{
    if (on == $I) {
        stream_$V(p, v, large);
        return;
    }
#ifdef __AVX__
    if (large && ((uintptr_t)p & 15) == 0) {
        const union {
            $V v;
            __m128i part[$E];
        } r = {.v = v};
        const int lanes = 16 / sizeof($T);
        const uint64_t all = (UINT64_C(1) << lanes) - 1;
        for (int n = 0; n < $E; n++) {
            const uint64_t part = all << n * lanes;
            if ((on & part) == part) {
                _mm_stream_si128((__m128i *)p + n, r.part[n]);
                on &= ~part;
            }
        }
        if (on == 0)
            return;
    }
#endif
    store_if_$V(p, on, v);
}

#: keep
// Keeps the vector for a later non-temporal store, or stores it now.
$Q void keep_$V($T *p, $V v, $V *late, bool streams)
{
    if (streams)
        *late = v;
    else
        store_$V(p, v);
}

#: leave
// A non-temporal store to the start of a cache line.
$Q void leave_$V($T *p, $V v)
{
#ifdef __AVX512F__
    _mm512_stream_si512((__m512i *)p, (__m512i)v);
#else
    store_$V(p, v);
#endif
}

#: end_of_streams
$Q void end_of_streams(void)
{
#ifdef __AVX__
    _mm_sfence();
#endif
}

#: prefetch_l1
// Prefetches the line at an offset in bytes from an array into L1; it may be outside the array.
$Q void prefetch_l1(const void *array, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)array + (uintptr_t)bytes));
}

#: prefetch_l2
// Prefetches the line into L2, as the hardware prefetcher does.
$Q void prefetch_l2(const void *array, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)array + (uintptr_t)bytes), 0, 2);
}

#: opaque
// Returns n, but hides from the compiler that the result equals it.
$Q int64_t opaque(int64_t n)
{
    __asm__("" : "+r"(n));
    return n;
}

#: load_if
// Inactive lanes do not access memory.
$Q $V load_if_$V(const $T *p, uint64_t on, $V otherwise)
{
#if $C
    union {
        $V v;
        $G part[$K];
    } r = {.v = otherwise};
    for (int n = 0; n < $K; n++)
        r.part[n] = $D(r.part[n], ($B)(on >> (n * $A)), p + n * $A);
    return r.v;
#else
    if (on == $I)
        return load_$V(p);
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            otherwise[l] = p[l];
    return otherwise;
#endif
}

#: load_if_lanes
// Inactive lanes do not access memory.
$Q $V load_if_$V(const $T *p, uint64_t on, $V otherwise)
{
    if (on == $I)
        return load_$V(p);
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            otherwise[l] = p[l];
    return otherwise;
}

#: store_if
// Inactive lanes do not access memory.
$Q void store_if_$V($T *p, uint64_t on, $V v)
{
#if $C
    const union {
        $V v;
        $G part[$K];
    } r = {.v = v};
    for (int n = 0; n < $K; n++)
        $D(p + n * $A, ($B)(on >> (n * $A)), r.part[n]);
#else
    if (on == $I) {
        store_$V(p, v);
        return;
    }
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            p[l] = v[l];
#endif
}

#: store_if_lanes
// Inactive lanes do not access memory.
$Q void store_if_$V($T *p, uint64_t on, $V v)
{
    if (on == $I) {
        store_$V(p, v);
        return;
    }
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            p[l] = v[l];
}

#: gather
$Q $V gather_$V(const $T *p, int64_t stride)
{
    $V r = {0};
    for (int l = 0; l < $L; l++)
        r[l] = p[l * stride];
    return r;
}

#: gather_if
// Inactive lanes do not access memory.
$Q $V gather_if_$V(const $T *p, int64_t stride, uint64_t on, $V otherwise)
{
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            otherwise[l] = p[l * stride];
    return otherwise;
}

#: scatter
$Q void scatter_$V($T *p, int64_t stride, $V v)
{
    for (int l = 0; l < $L; l++)
        p[l * stride] = v[l];
}

#: scatter_if
// Inactive lanes do not access memory.
$Q void scatter_if_$V($T *p, int64_t stride, uint64_t on, $V v)
{
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            p[l * stride] = v[l];
}

#: gather_at
$Q $V gather_at_$V(const $T *p, i64x$L at)
{
    $V r = {0};
    for (int l = 0; l < $L; l++)
        r[l] = p[at[l]];
    return r;
}

#: gather_at_if
// Inactive lanes do not access memory.
$Q $V gather_at_if_$V(const $T *p, i64x$L at, uint64_t on, $V otherwise)
{
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            otherwise[l] = p[at[l]];
    return otherwise;
}

#: scatter_at
$Q void scatter_at_$V($T *p, i64x$L at, $V v)
{
    for (int l = 0; l < $L; l++)
        p[at[l]] = v[l];
}

#: scatter_at_if
// Inactive lanes do not access memory.
$Q void scatter_at_if_$V($T *p, i64x$L at, uint64_t on, $V v)
{
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            p[at[l]] = v[l];
}

#: gather_at_wide
$Q $V gather_at_$V(const $T *p, i64x$L at)
{
    return gather_at_if_$V(p, at, $I, ($V){0});
}

#: gather_at_if_wide
// Inactive lanes do not access memory.
$Q $V gather_at_if_$V(const $T *p, i64x$L at, uint64_t on, $V otherwise)
{
#ifdef __AVX512F__
    union {
        $V v;
        $G part[$K];
    } r = {.v = otherwise};
    const union {
        i64x$L v;
        __m512i part[$K];
    } i = {.v = at};
    for (int n = 0; n < $K; n++)
        r.part[n] = _mm512_mask_i64gather_epi$B(r.part[n], (__mmask8)(on >> (n * 8)), i.part[n], p, $A);
    return r.v;
#else
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            otherwise[l] = p[at[l]];
    return otherwise;
#endif
}

#: gather_if_wide
// Inactive lanes do not access memory.
$Q $V gather_if_$V(const $T *p, int64_t stride, uint64_t on, $V otherwise)
{
    return gather_at_if_$V(p, stride * iota_i64x$L(), on, otherwise);
}

#: scatter_at_if_wide
// Inactive lanes do not access memory.
$Q void scatter_at_if_$V($T *p, i64x$L at, uint64_t on, $V v)
{
#ifdef __AVX512F__
    const union {
        $V v;
        $G part[$K];
    } r = {.v = v};
    const union {
        i64x$L v;
        __m512i part[$K];
    } i = {.v = at};
    for (int n = 0; n < $K; n++)
        _mm512_mask_i64scatter_epi$B(p, (__mmask8)(on >> (n * 8)), i.part[n], r.part[n], $A);
#else
    for (int l = 0; l < $L; l++)
        if (on >> l & 1)
            p[at[l]] = v[l];
#endif
}

#: scatter_if_wide
// Inactive lanes do not access memory.
$Q void scatter_if_$V($T *p, int64_t stride, uint64_t on, $V v)
{
    scatter_at_if_$V(p, stride * iota_i64x$L(), on, v);
}

#: clamp_index
// Clamps each element to 0 … n - 1.
$Q $V clamp_index_$V($V i, int64_t n)
{
    const $T last = ($T)(n - 1);
    for (int l = 0; l < $L; l++) {
        const $T least = i[l] > 0 ? i[l] : 0;
        i[l] = least < last ? least : last;
    }
    return i;
}

#: lookup
// Elements of an array whose indices fit in 32 bits.
$Q $V lookup_$V(const $T *p, i32x$L at)
{
#if $L % 16 == 0 && defined(__AVX512F__)
    union {
        i32x$L i;
        $V v;
        __m512i part[$L / 16];
    } r = {.i = at};
    for (int n = 0; n < $L / 16; n++)
        r.part[n] = _mm512_i32gather_epi32(r.part[n], p, 4);
    return r.v;
#elif defined(__AVX2__)
    union {
        i32x$L i;
        $V v;
        __m256i part[$L / 8];
    } r = {.i = at};
    for (int n = 0; n < $L / 8; n++)
        r.part[n] = _mm256_i32gather_epi32((const int *)p, r.part[n], 4);
    return r.v;
#else
    $V r = {0};
    for (int l = 0; l < $L; l++)
        r[l] = p[at[l]];
    return r;
#endif
}

#: lookup_narrow
// Elements of an array whose indices fit in 16 bits.
$Q $V lookup_$V(const $T *p, u16x$L at)
{
#ifdef __AVX512BW__
    // Each is read as the last of four bytes; near the start, within the first four of the array.
    $S
    $G r[$K];
    for (int n = 0; n < $K; n++) {
        const __m512i here = _mm512_cvtepu16_epi32(part[n]);
        const __m512i before = _mm512_sub_epi32(here, _mm512_set1_epi32($C));
        const __m512i from = _mm512_max_epi32(before, _mm512_setzero_si512());
        const __m512i four = _mm512_i32gather_epi32(from, p, $A);
        const __m512i bits = _mm512_slli_epi32(_mm512_sub_epi32(here, from), $B);
        r[n] = _mm512_cvtepi32_epi$W(_mm512_srlv_epi32(four, bits));
    }
    return ($V)$J;
#else
    $V r = {0};
    for (int l = 0; l < $L; l++)
        r[l] = p[at[l]];
    return r;
#endif
}

#: lookup_narrow_lanes
// Elements of an array whose indices fit in 16 bits.
$Q $V lookup_$V(const $T *p, u16x$L at)
{
    $V r = {0};
    for (int l = 0; l < $L; l++)
        r[l] = p[at[l]];
    return r;
}

#: lookup_far
static __attribute__((noinline, cold, unused)) $V lookup_far_$V(const $T *p, const i64x$L *at)
{
    return gather_at_$V(p, *at);
}

#: shared_bytes
// A shared array begins at a multiple of 64 bytes and is followed by padding for one vector.
$Q int64_t shared_bytes(int64_t bytes)
{
    return (bytes + 127) & ~INT64_C(63);
}

#: signal_flag
$Q void signal_flag(int32_t *flag)
{
    __atomic_fetch_add(flag, 1, __ATOMIC_RELEASE);
}

#: await_flag
// Spins, and yields the CPU when it takes long.
$Q void await_flag(const int32_t *flag, int64_t at_least)
{
    for (int64_t spins = 0; __atomic_load_n(flag, __ATOMIC_ACQUIRE) < at_least; spins++) {
        if (spins > 1000)
            sched_yield();
#if defined(__x86_64__) || defined(__i386__)
        else
            __builtin_ia32_pause();
#endif
    }
}

#: take_block_id
$Q int64_t take_block_id(int32_t *counter)
{
    return __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
}

#: publish
// Publishes 32 bits with a state, in one access.
$Q void publish_$N(uint64_t *place, $T value, uint32_t state)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    __atomic_store_n(place, (uint64_t)state << 32 | bits, __ATOMIC_RELAXED);
}

#: published
// The state of what is published, and its value; 0 if there is none yet.
$Q uint32_t published_$N(const uint64_t *place, $T *value)
{
    const uint64_t word = __atomic_load_n(place, __ATOMIC_RELAXED);
    const uint32_t bits = (uint32_t)word;
    memcpy(value, &bits, sizeof *value);
    return (uint32_t)(word >> 32);
}

#: publish_wide
// Publishes 64 bits, each half with a state.
$Q void publish_$N(uint64_t *place, $T value, uint32_t state)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof value);
    __atomic_store_n(place, (uint64_t)state << 32 | (uint32_t)bits, __ATOMIC_RELAXED);
    __atomic_store_n(place + 1, (uint64_t)state << 32 | bits >> 32, __ATOMIC_RELAXED);
}

#: published_wide
// The state of what is published, and its value; 0 if there is none yet or the halves differ.
$Q uint32_t published_$N(const uint64_t *place, $T *value)
{
    const uint64_t low = __atomic_load_n(place, __ATOMIC_RELAXED);
    const uint64_t high = __atomic_load_n(place + 1, __ATOMIC_RELAXED);
    const uint64_t bits = high << 32 | (uint32_t)low;
    memcpy(value, &bits, sizeof *value);
    return low >> 32 == high >> 32 ? (uint32_t)(low >> 32) : 0;
}

#: claim_fault
// Is this the first fault of the run?
static __attribute__((noinline, cold, unused)) bool claim_fault(int32_t *faults, int32_t site)
{
    int32_t none = 0;
    return __atomic_compare_exchange_n(faults, &none, site, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#: put_coordinate
$Q void put_coordinate(int32_t *faults, int n, int64_t x)
{
    faults[1 + 2 * n] = (int32_t)(uint32_t)x;
    faults[2 + 2 * n] = (int32_t)(x >> 32);
}
