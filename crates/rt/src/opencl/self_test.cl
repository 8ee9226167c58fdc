// The features that generated kernels rely on, used as they use them. LINKS(S) is instantiated for
// every sub-group size that the device offers.
#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#ifdef DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// Sub-groups of a block.
#define WARPS 3

#if defined(RELATIVE)
#define UP(a, by) sub_group_shuffle_up(a, (uint)(by))
#define DOWN(a, by) sub_group_shuffle_down(a, (uint)(by))
#else
#define UP(a, by) LANE(a, ((int)get_sub_group_local_id() - (by)) & mask)
#define DOWN(a, by) LANE(a, ((int)get_sub_group_local_id() + (by)) & mask)
#endif
#if defined(INTEL)
#define LANE(a, from) intel_sub_group_shuffle(a, (uint)(from))
#else
#define LANE(a, from) sub_group_shuffle(a, (uint)(from))
#endif

// Inclusive prefix sums by doubling distances, from the lowest lane and from the highest.
#define SCANS(T, v, up, down)                                \
    T up = v, down = v;                                      \
    for (int by = 1; by < size; by *= 2) {                   \
        const T below = UP(up, by), above = DOWN(down, by);  \
        up = lane >= by ? up + below : up;                   \
        down = lane + by < size ? down + above : down;       \
    }

#ifdef DOUBLES
#define WITH_DOUBLES                                         \
    {                                                        \
        const double d = v;                                  \
        SCANS(double, d, up_d, down_d)                       \
        sum += 64 * (int)(up_d + 2 * down_d + LANE(d, mask - lane)); \
    }
#else
#define WITH_DOUBLES
#endif

#define LINKS(S)                                                                                    \
    __kernel __attribute__((reqd_work_group_size(WARPS * S, 1, 1)))                                 \
    __attribute__((intel_reqd_sub_group_size(S))) void                                              \
    links_##S(__global const int *x, __global int *z, int rounds)                                   \
    {                                                                                               \
        __local int totals[WARPS];                                                                  \
        __local int all[WARPS * S];                                                                 \
        const int size = S, mask = S - 1;                                                           \
        const int lane = (int)get_sub_group_local_id(), warp = (int)get_sub_group_id();             \
        const int at = ((int)get_group_id(0) * WARPS + warp) * S + lane;                            \
        int sum = get_sub_group_size() == S && get_num_sub_groups() == WARPS ? 0 : 1000000;         \
        for (int round = 0; round < rounds; round++) {                                              \
            const int v = x[at] + round;                                                            \
            SCANS(int, v, up, down)                                                                 \
            const float f = (float)v;                                                               \
            SCANS(float, f, up_f, down_f)                                                           \
            const long l = v;                                                                       \
            SCANS(long, l, up_l, down_l)                                                            \
            sum += up + 2 * down + 4 * (int)(up_f + 2 * down_f) + 16 * (int)(up_l + 2 * down_l);    \
            sum += LANE(v, mask - lane) + LANE(v, (lane * 3 + round) & mask) + LANE(v, 0);          \
            WITH_DOUBLES                                                                            \
            /* Lanes of a warp through local memory. */                                             \
            all[warp * S + lane] = v;                                                               \
            sub_group_barrier(CLK_LOCAL_MEM_FENCE);                                                 \
            sum += all[warp * S + ((lane + 1) & mask)];                                             \
            sub_group_barrier(CLK_LOCAL_MEM_FENCE);                                                 \
            /* Branches and loops that only some warps take. */                                     \
            if (warp != 1) {                                                                        \
                const int below = UP(v, 1);                                                         \
                sub_group_barrier(CLK_LOCAL_MEM_FENCE);                                             \
                sum += lane > 0 ? 5 * below : 0;                                                    \
            }                                                                                       \
            int carried = v;                                                                        \
            for (int i = 0; i <= warp; i++) {                                                       \
                carried = LANE(carried, (lane + 1) & mask);                                         \
                all[warp * S + lane] = carried;                                                     \
                sub_group_barrier(CLK_LOCAL_MEM_FENCE);                                             \
                sum += all[warp * S + ((lane + 2) & mask)];                                         \
                sub_group_barrier(CLK_LOCAL_MEM_FENCE);                                             \
            }                                                                                       \
            /* Warps of a block, in a loop and in a branch that all take. */                        \
            if (lane == mask)                                                                       \
                totals[warp] = up;                                                                  \
            barrier(CLK_LOCAL_MEM_FENCE);                                                           \
            for (int w = 0; w < warp; w++)                                                          \
                sum += totals[w];                                                                   \
            barrier(CLK_LOCAL_MEM_FENCE);                                                           \
            if ((round & 1) == 1) {                                                                 \
                all[(WARPS - 1 - warp) * S + lane] = v;                                             \
                barrier(CLK_LOCAL_MEM_FENCE);                                                       \
                sum += 3 * all[warp * S + lane];                                                    \
                barrier(CLK_LOCAL_MEM_FENCE);                                                       \
            }                                                                                       \
        }                                                                                           \
        z[at] = sum;                                                                                \
    }
LINKS_OF_ALL_SIZES

#ifdef FLAGS
// Each block takes a dynamic id, waits for the block before it, and adds its own value to that
// block's result.
__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void
chain(__global const int *x, __global int *z, __global int *flags)
{
    __local int id;
    if (get_local_id(0) == 0)
        id = atomic_fetch_add_explicit((volatile __global atomic_int *)flags, 1, memory_order_relaxed,
                                       memory_scope_device);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int block = id, at = block * 16 + (int)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    int before = 0;
    if (block > 0) {
        volatile __global atomic_int *const flag = (volatile __global atomic_int *)&flags[block];
        while (atomic_load_explicit(flag, memory_order_acquire, memory_scope_device) < 1)
            ;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        before = z[at - 16];
    }
    z[at] = before + x[at];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
        atomic_fetch_add_explicit((volatile __global atomic_int *)&flags[block + 1], 1, memory_order_release,
                                  memory_scope_device);
    }
}
#endif
