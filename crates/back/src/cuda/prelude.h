#: shuffle_narrow
// Narrow values are shuffled as an int.
$Q $T $F_$N($T a, int by)
{
    return ($T)$G(0xffffffffu, (int)a, by, $L);
}

#: shuffle
$Q $T $F_$N($T a, int by)
{
    return $G(0xffffffffu, a, by, $L);
}

#: copy_async
// Copies $N bytes into shared memory; they are there after wait_copies.
$Q void copy_async_$N(void *to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.$C.shared.global [%0], [%1], $N;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
#else
    *(Pack<unsigned, $K> *)to = *(const Pack<unsigned, $K> *)from;
#endif
}

#: commit_copies
$Q void commit_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

#: wait_copies
$Q void wait_copies_$N()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group $N;" ::: "memory");
#endif
    __syncwarp();
}

#: prefetch
// Prefetches the line of an element into $C; an index outside the array is clamped.
template <typename T> $Q void $N(const T *array, index_t at, index_t size)
{
#ifdef __CUDA_ARCH__
    const T *const place = array + (at < 0 ? 0 : at < size ? at : size - 1);
    asm volatile("prefetch.global.$C [%0];" ::"l"(__cvta_generic_to_global(place)));
#endif
}

#: load_where
// Loads where all comparisons hold, and gives `otherwise` elsewhere.
$Q $P $N($S, const $P *from, $T otherwise)
{
    $P loaded;
#if defined(__CUDA_ARCH__) && defined(NARROW) && !defined(BRANCHES)
    // The generic address of global memory equals its global address.
    asm("{ .reg .pred there; $C $M @there $L }"
        : $O
        : $I, "l"(from), "$R"(otherwise));
#else
    if ($H) {
        loaded = *from;
    } else {
        $F
    }
#endif
    return loaded;
}

#: byte_of
$Q uint32_t byte_of(uint32_t word, int n)
{
#ifdef __CUDA_ARCH__
    return __byte_perm(word, 0, 0x4440 + n);
#else
    return (word >> (8 * n)) & 255;
#endif
}

#: word_of
// Joins the low bytes; the first one becomes the lowest.
$Q uint32_t word_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
#ifdef __CUDA_ARCH__
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
#else
    return (a & 255) | (b & 255) << 8 | (c & 255) << 16 | d << 24;
#endif
}

#: signal_flag
// Signals after all writes of the block; every thread reaches it.
$Q void signal_flag(int32_t *flag)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
#if __CUDA_ARCH__ >= 700
        asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(__cvta_generic_to_global(flag)) : "memory");
#else
        atomicAdd(flag, 1);
#endif
    }
}

#: await_flag
$Q void await_flag(const int32_t *flag, index_t at_least)
{
    for (;;) {
        int32_t seen;
#if __CUDA_ARCH__ >= 700
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(__cvta_generic_to_global(flag))
                     : "memory");
#else
        seen = *(const volatile int32_t *)flag;
        __threadfence();
#endif
        if (seen >= at_least)
            break;
        __nanosleep(40);
    }
    __syncwarp();
}

#: take_block_id
// One id for the whole block; every thread reaches it.
$Q index_t take_block_id(int32_t *counter)
{
    __shared__ int32_t id;
    if (threadIdx.x == 0)
        id = atomicAdd(counter, 1);
    __syncthreads();
    const index_t block_id = id;
    __syncthreads();
    return block_id;
}

#: publish
// Publishes 32 bits with a state, in one access.
$Q void publish_$N(uint64_t *place, $T value, uint32_t state)
{
    uint32_t bits = 0;
    *reinterpret_cast<$T *>(&bits) = value;
    *(volatile uint64_t *)place = (uint64_t)state << 32 | bits;
}

#: published
// The state of what is published, and its value; 0 if there is none yet.
$Q uint32_t published_$N(const uint64_t *place, $T *value)
{
    const uint64_t word = *(const volatile uint64_t *)place;
    const uint32_t bits = (uint32_t)word;
    *value = *reinterpret_cast<const $T *>(&bits);
    return (uint32_t)(word >> 32);
}

#: publish_wide
// Publishes 64 bits, each half with a state.
$Q void publish_$N(uint64_t *place, $T value, uint32_t state)
{
    const uint64_t bits = *reinterpret_cast<const uint64_t *>(&value);
    ((volatile uint64_t *)place)[0] = (uint64_t)state << 32 | (uint32_t)bits;
    ((volatile uint64_t *)place)[1] = (uint64_t)state << 32 | bits >> 32;
}

#: published_wide
// The state of what is published, and its value; 0 if there is none yet or the halves differ.
$Q uint32_t published_$N(const uint64_t *place, $T *value)
{
    const uint64_t low = ((const volatile uint64_t *)place)[0];
    const uint64_t high = ((const volatile uint64_t *)place)[1];
    const uint64_t bits = high << 32 | (uint32_t)low;
    *value = *reinterpret_cast<const $T *>(&bits);
    return low >> 32 == high >> 32 ? (uint32_t)(low >> 32) : 0;
}

#: claim_fault
// Is this the first fault of the run?
$Q bool claim_fault(int32_t *faults, int32_t site)
{
    return atomicCAS(faults, 0, site) == 0;
}

#: put_coordinate
$Q void put_coordinate(int32_t *faults, int n, int64_t x)
{
    faults[1 + 2 * n] = (int32_t)(uint32_t)x;
    faults[2 + 2 * n] = (int32_t)(x >> 32);
}
