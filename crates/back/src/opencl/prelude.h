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
