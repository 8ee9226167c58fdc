// What this machine can do at most: its clock, its fused multiply-adds, and how fast it copies.
//
//     limits THREADS [MIB]
//
// prints one JSON object. Every number is the best of many short measurements, so that what else runs on the
// machine disturbs it little. The largest copy has this size, 256 MiB if none is given.
//
//     limits serve THREADS [MIB]
//
// answers each line that it reads with one measurement, again a JSON object: what the machine does now. It is meant
// to alternate with something else, and sleeps in between. A copy has this size, 64 MiB if none is given.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
enum { LANES = VECTOR_BYTES / sizeof(float) };
typedef float vector __attribute__((vector_size(VECTOR_BYTES)));

#if defined(__x86_64__)
#define IN_REGISTER "+v"
#elif defined(__aarch64__)
#define IN_REGISTER "+w"
#else
#error "the limits of this processor are not known how to measure"
#endif

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

// Additions of registers, each of which waits for the one before: one cycle each. An immediate operand would
// not do, since some processors add small constants without executing anything; nor would a loop of the
// compiler's, which may take more than a cycle to turn.
#if defined(__x86_64__)
#define CHAIN_OF_64 ".rept 64\n\taddq %1, %0\n\t.endr"
#else
#define CHAIN_OF_64 ".rept 64\n\tadd %0, %0, %1\n\t.endr"
#endif

static double clock_once(void) {
  enum { TURNS = 1000 };
  uint64_t x = 0, one = 1;
  double start = now();
  for (int i = 0; i < TURNS; i++) __asm__ volatile(CHAIN_OF_64 : "+r"(x) : "r"(one));
  return 64.0 * TURNS / (now() - start);
}

// Sixteen sums that do not depend on each other hide the latency of any processor of today, and fit beside the two
// factors into the registers of all of them but those with sixteen, which get twelve.
#if VECTOR_BYTES == 32 || (VECTOR_BYTES == 16 && defined(__x86_64__))
#define SUMS(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11)
enum { N_SUMS = 12 };
#else
#define SUMS(op)                                                                                 \
  op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) op(14) \
      op(15)
enum { N_SUMS = 16 };
#endif

enum { FMA_TURNS = 20000 };
static const double FMA_FLOPS = 2.0 * LANES * N_SUMS * FMA_TURNS;

// Seconds for FMA_FLOPS multiplications and additions, about 60 microseconds.
static double fma_once(void) {
  vector a, b;
  for (int i = 0; i < LANES; i++) a[i] = 0.5f, b[i] = 0.25f;
  __asm__ volatile("" : IN_REGISTER(a), IN_REGISTER(b));
#define DECLARE(n) vector s##n = b;
#define STEP(n)      \
  s##n = s##n * a + b; \
  __asm__ volatile("" : IN_REGISTER(s##n));
  SUMS(DECLARE)
  double start = now();
  for (int i = 0; i < FMA_TURNS; i++) {
    SUMS(STEP)
  }
  return now() - start;
}

// How often that is done in a time, whatever happens in it.
static double fma_for(double seconds) {
  double start = now(), times = 0;
  do {
    fma_once();
    times++;
  } while (now() - start < seconds);
  return times;
}

// Two ways to copy. memcpy writes through the cache where it takes the cache for large enough, and then
// reads what it overwrites; the other writes past it, on four pages at a time.
enum { LINE = 64, PAGE = 4096, PAGES = 4, COPY_STEP = PAGE * PAGES };
typedef void (*copier)(char *restrict to, const char *restrict from, size_t bytes);

static void by_memcpy(char *restrict to, const char *restrict from, size_t bytes) {
  memcpy(to, from, bytes);
  __asm__ volatile("" ::"r"(to) : "memory");
}

#if defined(__x86_64__)
#if VECTOR_BYTES == 64
#define STREAM _mm512_stream_ps
#elif VECTOR_BYTES == 32
#define STREAM _mm256_stream_ps
#else
#define STREAM _mm_stream_ps
#endif
static void by_streams(char *restrict to, const char *restrict from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += COPY_STEP)
    for (size_t line = at; line < at + PAGE; line += LINE)
      for (size_t page = line; page < line + COPY_STEP; page += PAGE)
        for (size_t i = page; i < page + LINE; i += VECTOR_BYTES)
          STREAM((float *)(to + i), *(const vector *)(from + i));
  _mm_sfence();
}
static const copier COPIERS[] = {by_memcpy, by_streams};
#else
static const copier COPIERS[] = {by_memcpy};
#endif
enum { N_COPIERS = sizeof COPIERS / sizeof *COPIERS };

enum { MIB = 1 << 20 };
// The best copy is searched among the largest size and its halves.
enum { N_COPIES = 3 };

// Threads that sleep until all are to do the same; the first of them is the one that gives the orders.
struct crew {
  int threads;
  struct worker *workers;
  pthread_barrier_t gate;
  void (*task)(struct worker *);
  atomic_int arrived, turn;
  char *from, *to;
  copier copy;
  size_t bytes;
  atomic_size_t copied;
};

struct worker {
  struct crew *crew;
  pthread_t id;
  double start, end, done;
  double clock, fma, copy;
};

// As many threads as processors get one each: two that the system wakes on one would share it for a while.
static void settle(const struct worker *w) {
  const struct crew *crew = w->crew;
  cpu_set_t all, one;
  if (crew->threads == 1 || sched_getaffinity(0, sizeof all, &all)) return;
  if (CPU_COUNT(&all) != crew->threads) return;
  int before = w - crew->workers;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &all) || before-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

static void *work(void *argument) {
  struct worker *w = argument;
  settle(w);
  for (;;) {
    pthread_barrier_wait(&w->crew->gate);
    w->crew->task(w);
    pthread_barrier_wait(&w->crew->gate);
  }
  return NULL;
}

static void all_do(struct crew *crew, void (*task)(struct worker *)) {
  crew->task = task;
  pthread_barrier_wait(&crew->gate);
  task(&crew->workers[0]);
  pthread_barrier_wait(&crew->gate);
}

// Waits for all others without sleeping, so that what follows begins at the same moment. Whoever yields at once may
// lose the processor to another program for longer than a copy takes.
static void meet(struct crew *crew) {
  int turn = atomic_load(&crew->turn);
  if (atomic_fetch_add(&crew->arrived, 1) == crew->threads - 1) {
    atomic_store(&crew->arrived, 0);
    atomic_store(&crew->turn, turn + 1);
  } else {
    double start = now();
    while (atomic_load(&crew->turn) == turn)
      if (now() - start > 1e-3) sched_yield();
  }
}

// Bytes read and written per second, from the first start to the last end. The threads draw pieces, as ours draw
// blocks, so that one which another program holds up has fewer.
static double copy_once(struct worker *w, size_t bytes) {
  struct crew *crew = w->crew;
  size_t piece = crew->threads == 1 ? bytes : MIB, at;
  if (w == crew->workers) atomic_store(&crew->copied, 0);
  meet(crew);
  w->start = now();
  while ((at = atomic_fetch_add(&crew->copied, piece)) < bytes)
    crew->copy(crew->to + at, crew->from + at, piece);
  w->end = now();
  meet(crew);
  const struct worker *each = crew->workers;
  double start = each->start, end = each->end;
  for (int t = 0; t < crew->threads; t++) {
    if (each[t].start < start) start = each[t].start;
    if (each[t].end > end) end = each[t].end;
  }
  return 2.0 * bytes / (end - start);
}

// What all multiply and add together, each by its own clock.
static double fma_together(struct worker *w, double seconds) {
  meet(w->crew);
  w->start = now();
  w->done = FMA_FLOPS * fma_for(seconds);
  w->end = now();
  meet(w->crew);
  double rate = 0;
  for (const struct worker *each = w->crew->workers; each < w->crew->workers + w->crew->threads; each++)
    rate += each->done / (each->end - each->start);
  return rate;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The clock is that of the moments in which it multiplies fastest, the median right after them: a processor that is
// slower with wide vectors stays so for a while.
static void best_fma(struct worker *w) {
  enum { TIMES = 600 };
  double rates[TIMES], clocks[TIMES];
  for (int n = 0; n < TIMES; n++) {
    meet(w->crew);
    rates[n] = FMA_FLOPS / fma_once();
    clocks[n] = clock_once();
    if (rates[n] > w->fma) w->fma = rates[n];
  }
  int kept = 0;
  for (int n = 0; n < TIMES; n++)
    if (rates[n] > 0.99 * w->fma) clocks[kept++] = clocks[n];
  qsort(clocks, kept, sizeof *clocks, ascending);
  w->clock = clocks[kept / 2];
}

static void best_copy(struct worker *w) {
  for (int s = 0; s < N_COPIES; s++) {
    for (int n = 0; n < 12; n++) {
      double rate = copy_once(w, w->crew->bytes >> s);
      if (rate > w->copy) w->copy = rate;
    }
  }
}

// The rates of this moment. What others left in the caches, threads that others let run on for some microseconds,
// and a clock that rises slowly have no part in them: each is done for nothing before it is measured. A cache that cores
// share takes several copies to hold what they read.
static void rates_now(struct worker *w) {
  enum { WARM_UP = 5, TIMES = 4 };
  fma_together(w, 0.5e-3);
  w->fma = fma_together(w, 3e-3);
  double seconds_per_byte = 0;
  for (int n = 0; n < WARM_UP; n++) copy_once(w, w->crew->bytes);
  for (int n = 0; n < TIMES; n++) seconds_per_byte += 1 / copy_once(w, w->crew->bytes);
  w->copy = TIMES / seconds_per_byte;
}

// On large pages where the system has them, as the arrays of the kernels.
static void *memory(size_t bytes, int byte) {
  void *memory = aligned_alloc(PAGE, bytes);
  if (!memory) {
    fprintf(stderr, "limits: no memory for the copies\n");
    exit(1);
  }
#ifdef MADV_HUGEPAGE
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memset(memory, byte, bytes);
}

static void hire(struct crew *crew, int threads, size_t bytes) {
  memset(crew, 0, sizeof *crew);
  crew->threads = threads;
  crew->copy = by_memcpy;
  crew->bytes = bytes;
  crew->workers = calloc(threads, sizeof *crew->workers);
  pthread_barrier_init(&crew->gate, NULL, threads);
  crew->from = memory(bytes, 1);
  crew->to = memory(bytes, 0);
  for (int t = 0; t < threads; t++) {
    struct worker *w = &crew->workers[t];
    w->crew = crew;
    if (t > 0 && pthread_create(&w->id, NULL, work, w)) {
      fprintf(stderr, "limits: no thread\n");
      exit(1);
    }
  }
  settle(&crew->workers[0]);
}

static void leave(struct worker *w) {
  if (w != w->crew->workers) pthread_exit(NULL);
}

static void dismiss(struct crew *crew) {
  crew->task = leave;
  pthread_barrier_wait(&crew->gate);
  for (int t = 1; t < crew->threads; t++) pthread_join(crew->workers[t].id, NULL);
  free(crew->from);
  free(crew->to);
  free(crew->workers);
}

static void print_rates(const struct crew *crew, double fma) {
  printf("{\"threads\": %d, \"fma_flops\": %.6e, \"copy_bytes\": %.6e}", crew->threads, fma,
         crew->workers[0].copy);
}

// Returns the clock.
static double print_best(int threads, size_t bytes) {
  struct crew crew;
  hire(&crew, threads, bytes);
  all_do(&crew, best_fma);
  for (int c = 0; c < N_COPIERS; c++) {
    crew.copy = COPIERS[c];
    all_do(&crew, best_copy);
  }
  double fma = 0, clock = crew.workers[0].clock;
  for (int t = 0; t < threads; t++) fma += crew.workers[t].fma;
  print_rates(&crew, fma);
  dismiss(&crew);
  return clock;
}

static void serve(int threads, size_t bytes) {
  struct crew crew;
  hire(&crew, threads, bytes);
  double best = 0;
  copier fastest = by_memcpy;
  for (int n = 0; n < 4 * N_COPIERS; n++) {
    crew.copy = COPIERS[n % N_COPIERS];
    all_do(&crew, rates_now);
    if (crew.workers[0].copy > best) {
      best = crew.workers[0].copy;
      fastest = crew.copy;
    }
  }
  crew.copy = fastest;
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    all_do(&crew, rates_now);
    print_rates(&crew, crew.workers[0].fma);
    putchar('\n');
    fflush(stdout);
  }
  dismiss(&crew);
}

int main(int argc, char **argv) {
  int serving = argc > 1 && strcmp(argv[1], "serve") == 0;
  int threads = argc > 1 + serving ? atoi(argv[1 + serving]) : 1;
  int mib = argc > 2 + serving ? atoi(argv[2 + serving]) : serving ? 64 : 256;
  if (threads < 1 || threads > 1024 || mib < 1 || mib > 65536) {
    fprintf(stderr, "usage: limits THREADS [MIB], limits serve THREADS [MIB]\n");
    return 1;
  }
  if (serving) {
    serve(threads, (size_t)mib * MIB);
    return 0;
  }
  printf("{\"one\": ");
  double clock = print_best(1, (size_t)mib * MIB);
  printf(", \"all\": ");
  print_best(threads, (size_t)mib * MIB);
  printf(", \"clock_hz\": %.6e, \"lanes\": %d}\n", clock, LANES);
  return 0;
}
