// ---- Launches ----

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1
#define omp_get_thread_num() 0
#endif

// Index arithmetic may go so far.
static const double most_index = 5.7e17;

typedef void kernel_function(const int64_t *sizes, const int64_t *args, void *const *buffers, void *scratch,
                             int64_t first, int64_t last);

// What an array that the lanes of a block share takes.
static inline int64_t scratch_of(int64_t bytes)
{
    return (bytes + 127) / 64 * 64;
}

// All blocks of a launch, shared out among the threads. `one_by_one`: blocks wait for each other, so each thread ends its block
// before it takes the next one.
static void launch(kernel_function *kernel, const int64_t *sizes, const int64_t *args, void *const *buffers,
                   int64_t blocks, int64_t scratch_bytes, bool one_by_one)
{
    static char *scratch = NULL;
    static int64_t scratch_held = 0;
    const int64_t threads = omp_get_max_threads();
    if (scratch_bytes * threads > scratch_held) {
        free(scratch);
        scratch_held = scratch_bytes * threads;
        scratch = (char *)allocate(scratch_held, "what a block shares");
    }
    const int64_t most = 8 * threads;
    const int64_t parts = one_by_one || blocks < most ? blocks : most;
#pragma omp parallel for schedule(monotonic : dynamic, 1) if (parts > 1)
    for (int64_t part = 0; part < parts; part++) {
        const int64_t more = blocks % parts, each = blocks / parts;
        const int64_t first = part * each + (part < more ? part : more);
        kernel(sizes, args, buffers, scratch + omp_get_thread_num() * scratch_bytes, first,
               first + each + (part < more));
    }
}
