#: shuffle
$Q $T lane_$N($T a, int from)
{
    return ($T)$G(($C)a, (uint)(from & $K));
}

#: shuffle_relative
$Q $T $F_$N($T a, int by)
{
    return ($T)$G(($C)a, (uint)by);
}

#: shuffle_indexed
$Q $T $F_$N($T a, int by)
{
    return lane_$N(a, (int)get_sub_group_local_id() $O by);
}

#: signal_flag
// Signals after all writes of the block; every thread reaches it.
$Q void signal_flag(__global int32_t *flag, bool when)
{
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (when && get_local_id(0) == 0) {
        atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
        atomic_fetch_add_explicit((volatile __global atomic_int *)flag, 1, memory_order_release, memory_scope_device);
    }
}

#: await_flag
$Q void await_flag(const __global int32_t *flag, index_t at_least, bool when)
{
    volatile __global atomic_int *const place = (volatile __global atomic_int *)flag;
    while (when && atomic_load_explicit(place, memory_order_acquire, memory_scope_device) < at_least)
        ;
    $M
}

#: take_block_id
// One id for the whole block; every thread reaches it.
$Q index_t take_block_id(__global int32_t *counter, __local int32_t *id)
{
    if (get_local_id(0) == 0)
        *id = atomic_fetch_add_explicit((volatile __global atomic_int *)counter, 1, memory_order_relaxed,
                                        memory_scope_device);
    barrier(CLK_LOCAL_MEM_FENCE);
    const index_t block_id = *id;
    barrier(CLK_LOCAL_MEM_FENCE);
    return block_id;
}

#: publish
// Publishes 32 bits with a state, in one access.
$Q void publish_$N(__global uint64_t *place, $T value, uint32_t state)
{
    union {
        uint32_t bits;
        $T value;
    } both;
    both.bits = 0;
    both.value = value;
    atom_xchg((volatile __global ulong *)place, (uint64_t)state << 32 | both.bits);
}

#: published
// The state of what is published, and its value; 0 if there is none yet.
$Q uint32_t published_$N(__global uint64_t *place, $T *value)
{
    const uint64_t word = atom_add((volatile __global ulong *)place, 0);
    union {
        uint32_t bits;
        $T value;
    } both;
    both.bits = (uint32_t)word;
    *value = both.value;
    return (uint32_t)(word >> 32);
}

#: publish_wide
// Publishes 64 bits, each half with a state.
$Q void publish_$N(__global uint64_t *place, $T value, uint32_t state)
{
    union {
        uint64_t bits;
        $T value;
    } both;
    both.value = value;
    atom_xchg((volatile __global ulong *)place, (uint64_t)state << 32 | (uint32_t)both.bits);
    atom_xchg((volatile __global ulong *)place + 1, (uint64_t)state << 32 | both.bits >> 32);
}

#: published_wide
// The state of what is published, and its value; 0 if there is none yet or the halves differ.
$Q uint32_t published_$N(__global uint64_t *place, $T *value)
{
    const uint64_t low = atom_add((volatile __global ulong *)place, 0);
    const uint64_t high = atom_add((volatile __global ulong *)place + 1, 0);
    union {
        uint64_t bits;
        $T value;
    } both;
    both.bits = high << 32 | (uint32_t)low;
    *value = both.value;
    return low >> 32 == high >> 32 ? (uint32_t)(low >> 32) : 0;
}

#: claim_fault
// Is this the first fault of the run?
$Q bool claim_fault(__global int32_t *faults, int32_t site)
{
    return atomic_cmpxchg((volatile __global int *)faults, 0, site) == 0;
}

#: put_coordinate
$Q void put_coordinate(__global int32_t *faults, int n, int64_t x)
{
    faults[1 + 2 * n] = (int32_t)(uint32_t)x;
    faults[2 + 2 * n] = (int32_t)(x >> 32);
}
