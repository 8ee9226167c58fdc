// CUDA C++ on a CPU, for tests: the threads of a block are fibers, each of which runs alone until
// it waits for others. So a thread is as far ahead of the others as the waits allow, and a missing
// wait shows. A context starts a fiber; from then on jumps lead in and out of it, which, unlike
// contexts, need no system calls.
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __constant__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Position {
    unsigned x, y, z;
};
static Position threadIdx, blockIdx, gridDim;

enum Wait { NEW, WARP, BLOCK, ENDED };

static const unsigned MOST_THREADS = 1024, WARP_THREADS = 32;
static const size_t STACK = 256 << 10;
static ucontext_t starts[MOST_THREADS];
static jmp_buf scheduler, fibers[MOST_THREADS];
static Wait waits[MOST_THREADS];
static const char *places[MOST_THREADS];
static void (*entry)();

__attribute__((noinline)) static void give_way(Wait wait, const char *place)
{
    const unsigned me = threadIdx.x;
    waits[me] = wait;
    places[me] = place;
    if (_setjmp(fibers[me]) == 0)
        _longjmp(scheduler, 1);
}

// Lets a thread run until it waits.
__attribute__((noinline)) static void run_thread(unsigned t)
{
    threadIdx.x = t;
    if (_setjmp(scheduler) != 0)
        return;
    if (waits[t] == NEW)
        setcontext(&starts[t]);
    _longjmp(fibers[t], 1);
}

#define __syncwarp() give_way(WARP, "__syncwarp")
#define __syncthreads() give_way(BLOCK, "__syncthreads")

alignas(16) static unsigned char travelling[MOST_THREADS][8];

template <typename T> static T shuffle(T value, int from, int width, const char *name)
{
    const int lane = threadIdx.x % WARP_THREADS, warp = threadIdx.x - lane;
    const int segment = lane / width * width;
    memcpy(travelling[threadIdx.x], &value, sizeof(T));
    give_way(WARP, name);
    T got;
    memcpy(&got, travelling[warp + segment + (from & (width - 1))], sizeof(T));
    give_way(WARP, name);
    return got;
}

template <typename T> static T __shfl_sync(unsigned, T value, int from, int width = 32)
{
    return shuffle(value, from, width, "__shfl_sync");
}

template <typename T> static T __shfl_up_sync(unsigned, T value, unsigned by, int width = 32)
{
    const int lane = threadIdx.x % width;
    const T got = shuffle(value, lane - (int)by, width, "__shfl_up_sync");
    return lane < (int)by ? value : got;
}

template <typename T> static T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32)
{
    const int lane = threadIdx.x % width;
    const T got = shuffle(value, lane + (int)by, width, "__shfl_down_sync");
    return lane + (int)by >= width ? value : got;
}

static unsigned __ballot_sync(unsigned, bool holds)
{
    const int lane = threadIdx.x % WARP_THREADS, warp = threadIdx.x - lane;
    travelling[threadIdx.x][0] = holds;
    give_way(WARP, "__ballot_sync");
    unsigned found = 0;
    for (unsigned n = 0; n < WARP_THREADS; n++)
        found |= (unsigned)(travelling[warp + n][0] != 0) << n;
    give_way(WARP, "__ballot_sync");
    return found;
}

static inline int __ffs(unsigned bits)
{
    return __builtin_ffs((int)bits);
}

static inline int atomicAdd(int *at, int by)
{
    const int before = *at;
    *at += by;
    return before;
}

static inline int atomicCAS(int *at, int expected, int wanted)
{
    const int before = *at;
    if (before == expected)
        *at = wanted;
    return before;
}

static inline void __threadfence() {}

// More than any device has: what a kernel computes does not depend on it.
alignas(16) unsigned char shared_memory[64 << 20];

static void run_fiber()
{
    entry();
    give_way(ENDED, "the end");
}

static void fail(const char *what, unsigned thread)
{
    fprintf(stderr, "%s: block (%u, %u, %u), thread %u\n", what, blockIdx.x, blockIdx.y, blockIdx.z, thread);
    exit(3);
}

// Blocks run one after another: what a block waits for has happened, or never will.
static void __nanosleep(unsigned)
{
    fail("a block waits for one that comes later", threadIdx.x);
}

// Lets count threads from first on run until they wait; all have to wait for the same.
static void run_threads(unsigned first, unsigned count, unsigned order)
{
    for (unsigned n = 0; n < count; n++) {
        // Forwards, backwards, or from the middle on.
        const unsigned k = order % 3 == 0 ? n : order % 3 == 1 ? count - 1 - n : (n * 7 + 11) % count;
        run_thread(first + k);
    }
    for (unsigned k = 1; k < count; k++)
        if (waits[first + k] != waits[first] || strcmp(places[first + k], places[first]))
            fail("threads of a warp part", first + k);
}

static void run_block(unsigned threads, unsigned shared, unsigned order)
{
    static unsigned char *stacks = nullptr;
    static ucontext_t here;
    if (!stacks) {
        stacks = (unsigned char *)malloc(MOST_THREADS * STACK);
        getcontext(&here);
    }
    // Unwritten memory must not look valid.
    memset(shared_memory, 0xa5, shared + 64 > sizeof shared_memory ? sizeof shared_memory : shared + 64);
    for (unsigned t = 0; t < threads; t++) {
        // Ended fibers stand where they gave way, and their stacks are free for others.
        starts[t] = here;
        starts[t].uc_stack.ss_sp = stacks + t * STACK;
        starts[t].uc_stack.ss_size = STACK;
        starts[t].uc_link = nullptr;
        makecontext(&starts[t], run_fiber, 0);
        waits[t] = NEW;
    }
    for (;;) {
        // Warps go on until each is at a barrier of the block, or at its end.
        for (unsigned w = 0; w < threads; w += WARP_THREADS)
            do
                run_threads(w, WARP_THREADS, order++);
            while (waits[w] == WARP);
        for (unsigned w = 0; w < threads; w += WARP_THREADS)
            if (waits[w] != waits[0])
                fail("warps of a block part", w);
        if (waits[0] == ENDED)
            return;
    }
}

// Memory that ends where nothing can be read.
static void *fenced(size_t bytes)
{
    const size_t page = 4096, whole = (bytes + 15) / 16 * 16;
    const size_t pages = (whole + page - 1) / page;
    unsigned char *start = (unsigned char *)mmap(0, (pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(start + page, pages * page, PROT_READ | PROT_WRITE);
    return start + page + pages * page - whole;
}

struct Any {
    void *address;
    template <typename T> operator T *() const { return (T *)address; }
};

static FILE *plan;

static long long number()
{
    long long value = 0;
    if (fread(&value, 8, 1, plan) != 1)
        exit(4);
    return value;
}
