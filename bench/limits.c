// What this machine can do at most: its clock, its fused multiply-adds, and how fast it copies.
//
//     limits THREADS
//
// prints one JSON object. Every number is the best of many short measurements, so that what else runs on the
// machine disturbs it little.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64 };
#elif defined(__AVX__)
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
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

static double clock_hz(void) {
  enum { TURNS = 2000 };
  double best = 0;
  for (int n = 0; n < 1000; n++) {
    uint64_t x = n, one = 1;
    double start = now();
    for (int i = 0; i < TURNS; i++) __asm__ volatile(CHAIN_OF_64 : "+r"(x) : "r"(one));
    double hz = 64.0 * TURNS / (now() - start);
    if (hz > best) best = hz;
  }
  return best;
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

static double fma_once(void) {
  enum { TURNS = 20000 };
  vector a, b;
  for (int i = 0; i < LANES; i++) a[i] = 0.5f, b[i] = 0.25f;
  __asm__ volatile("" : IN_REGISTER(a), IN_REGISTER(b));
#define DECLARE(n) vector s##n = b;
#define STEP(n)      \
  s##n = s##n * a + b; \
  __asm__ volatile("" : IN_REGISTER(s##n));
  SUMS(DECLARE)
  double start = now();
  for (int i = 0; i < TURNS; i++) {
    SUMS(STEP)
  }
  return 2.0 * LANES * N_SUMS * TURNS / (now() - start);
}

enum { MIB = 1 << 20 };
static const size_t COPIES[] = {64ul * MIB, 128ul * MIB, 256ul * MIB};

struct worker {
  pthread_barrier_t *gate;
  int threads;
  char *from, *to;
  double fma, copy;
};

static void *work(void *argument) {
  struct worker *w = argument;
  for (int n = 0; n < 600; n++) {
    pthread_barrier_wait(w->gate);
    double rate = fma_once();
    if (rate > w->fma) w->fma = rate;
  }
  for (size_t s = 0; s < sizeof COPIES / sizeof *COPIES; s++) {
    size_t bytes = COPIES[s] / w->threads;
    for (int n = 0; n < 12; n++) {
      pthread_barrier_wait(w->gate);
      double start = now();
      memcpy(w->to, w->from, bytes);
      __asm__ volatile("" ::"r"(w->to) : "memory");
      pthread_barrier_wait(w->gate);
      double rate = 2.0 * bytes * w->threads / (now() - start);
      if (rate > w->copy) w->copy = rate;
    }
  }
  return NULL;
}

static void measure(int threads) {
  pthread_barrier_t gate;
  pthread_barrier_init(&gate, NULL, threads);
  pthread_t *ids = calloc(threads, sizeof *ids);
  struct worker *workers = calloc(threads, sizeof *workers);
  size_t most = COPIES[sizeof COPIES / sizeof *COPIES - 1] / threads;
  for (int t = 0; t < threads; t++) {
    struct worker *w = &workers[t];
    w->gate = &gate;
    w->threads = threads;
    w->from = aligned_alloc(4096, (most + 4095) / 4096 * 4096);
    w->to = aligned_alloc(4096, (most + 4095) / 4096 * 4096);
    if (!w->from || !w->to) {
      fprintf(stderr, "limits: no memory for the copies\n");
      exit(1);
    }
    memset(w->from, 1, most);
    memset(w->to, 0, most);
    if (pthread_create(&ids[t], NULL, work, w)) {
      fprintf(stderr, "limits: no thread\n");
      exit(1);
    }
  }
  double fma = 0, copy = 0;
  for (int t = 0; t < threads; t++) {
    pthread_join(ids[t], NULL);
    fma += workers[t].fma;
    if (workers[t].copy > copy) copy = workers[t].copy;
    free(workers[t].from);
    free(workers[t].to);
  }
  printf("{\"threads\": %d, \"fma_flops\": %.6e, \"copy_bytes\": %.6e}", threads, fma, copy);
  free(ids);
  free(workers);
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1) {
    fprintf(stderr, "usage: limits THREADS\n");
    return 1;
  }
  printf("{\"clock_hz\": %.6e, \"lanes\": %d, \"one\": ", clock_hz(), LANES);
  measure(1);
  printf(", \"all\": ");
  measure(threads);
  printf("}\n");
  return 0;
}
