// What a CPU does in a second, one function for each kind of work, in the runtime's calling
// convention. A block of work is repeated first … last − 1; buffers[0] is read, buffers[1] is
// written, sizes[2] is their length in floats.
//
// An empty asm statement stands where the compiler is not to know what a value is, or that it is not used.

#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vector __attribute__((vector_size(VECTOR_BYTES)));
typedef float vector_anywhere __attribute__((vector_size(VECTOR_BYTES), aligned(4)));
typedef int32_t places __attribute__((vector_size(VECTOR_BYTES)));
enum { LANES = VECTOR_BYTES / sizeof(float), LINE_FLOATS = 16 };

#if defined(__x86_64__) && VECTOR_BYTES == 64
#define REGISTER "v"
#elif defined(__x86_64__)
#define REGISTER "x"
#else
#define REGISTER "w"
#endif
#define HIDE(x) __asm__ volatile("" : "+" REGISTER(x))
#define USE(x) __asm__ volatile("" ::REGISTER(x))
// Ten independent sums hide the latency of today's CPUs, and fit into the registers of all of them.
#define TIMES_10(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9)
#define TIMES_8(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7)

#define KERNEL(name)                                                                                    \
  void name(const int64_t *sizes, const int64_t *args, void *const *buffers, void *scratch, int64_t first, \
            int64_t last)
#define UNUSED (void)sizes, (void)args, (void)buffers, (void)scratch

// Additions of registers, each of which waits for the one before: one cycle each.
#if defined(__x86_64__)
#define CHAIN_OF_64 ".rept 64\n\taddq %1, %0\n\t.endr"
#else
#define CHAIN_OF_64 ".rept 64\n\tadd %0, %0, %1\n\t.endr"
#endif
KERNEL(clock_chain) {
  UNUSED;
  uint64_t x = 0, one = 1;
  for (int64_t i = first; i < last; i++) __asm__ volatile(CHAIN_OF_64 : "+r"(x) : "r"(one));
}

static vector splat(float value) {
  vector v;
  for (int i = 0; i < LANES; i++) v[i] = value;
  HIDE(v);
  return v;
}

KERNEL(fma_rate) {
  UNUSED;
  vector a = splat(0.5f), b = splat(0.25f);
#define DECLARE(n) vector s##n = b;
#define STEP(n) s##n = s##n * a + b; HIDE(s##n);
  TIMES_10(DECLARE)
  for (int64_t i = first; i < last; i++) {
    TIMES_10(STEP)
  }
}

KERNEL(fma_chain) {
  UNUSED;
  vector a = splat(0.5f), b = splat(0.25f), s = b;
  for (int64_t i = first; i < last; i++) {
#define LINK(n) s = s * a + b; HIDE(s);
    TIMES_8(LINK)
  }
}

static places neighbours(void) {
  places p;
  for (int i = 0; i < LANES; i++) p[i] = i + 1;
  return p;
}

#if defined(__clang__)
#if VECTOR_BYTES == 64
#define SHIFT(a, b) __builtin_shufflevector(a, b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
#elif VECTOR_BYTES == 32
#define SHIFT(a, b) __builtin_shufflevector(a, b, 1, 2, 3, 4, 5, 6, 7, 8)
#else
#define SHIFT(a, b) __builtin_shufflevector(a, b, 1, 2, 3, 4)
#endif
#else
#define SHIFT(a, b) __builtin_shuffle(a, b, by_one)
#endif

KERNEL(move_rate) {
  UNUSED;
  const places by_one = neighbours();
  (void)by_one;
#define START(n) vector s##n = splat(n);
#define MOVE(n) s##n = SHIFT(s##n, s##n); HIDE(s##n);
  TIMES_8(START)
  for (int64_t i = first; i < last; i++) {
    TIMES_8(MOVE)
  }
}

KERNEL(move_chain) {
  UNUSED;
  const places by_one = neighbours();
  (void)by_one;
  vector s = splat(1);
  for (int64_t i = first; i < last; i++) {
#define HOP(n) s = SHIFT(s, s); HIDE(s);
    TIMES_8(HOP)
  }
}

#define LOAD(n)                                                       \
  {                                                                   \
    vector v = *(const vector_anywhere *)(from + (n)*LINE_FLOATS);    \
    USE(v);                                                           \
  }
KERNEL(load_rate) {
  UNUSED;
  const float *from = buffers[0];
  for (int64_t i = first; i < last; i++) {
    __asm__ volatile("" : "+r"(from));
    TIMES_8(LOAD)
  }
}

// Each access crosses a cache line.
KERNEL(split_load_rate) {
  UNUSED;
  const float *from = (const float *)buffers[0] + LINE_FLOATS - LANES / 2;
  for (int64_t i = first; i < last; i++) {
    __asm__ volatile("" : "+r"(from));
    TIMES_8(LOAD)
  }
}

#define STORE(n) *(vector_anywhere *)(to + (n)*LINE_FLOATS) = v;
KERNEL(store_rate) {
  UNUSED;
  float *to = buffers[1];
  vector v = splat(1);
  for (int64_t i = first; i < last; i++) {
    TIMES_8(STORE)
    __asm__ volatile("" : "+r"(to)::"memory");
  }
}

KERNEL(split_store_rate) {
  UNUSED;
  float *to = (float *)buffers[1] + LINE_FLOATS - LANES / 2;
  vector v = splat(1);
  for (int64_t i = first; i < last; i++) {
    TIMES_8(STORE)
    __asm__ volatile("" : "+r"(to)::"memory");
  }
}

// Element by element, three apart: loaded into a vector, and stored from it.
KERNEL(element_rate) {
  UNUSED;
  const float *from = buffers[0];
  float *to = buffers[1];
  for (int64_t i = first; i < last; i++) {
    vector v;
    for (int lane = 0; lane < LANES; lane++) v[lane] = from[3 * lane];
    HIDE(v);
    for (int lane = 0; lane < LANES; lane++) to[3 * lane] = v[lane];
    __asm__ volatile("" : "+r"(from), "+r"(to)::"memory");
  }
}

KERNEL(divide_rate) {
  UNUSED;
  vector a = splat(1.5f);
#define QUOTIENT(n) vector s##n = splat(n + 1);
#define DIVIDE(n) s##n = a / s##n; HIDE(s##n);
  TIMES_8(QUOTIENT)
  for (int64_t i = first; i < last; i++) {
    TIMES_8(DIVIDE)
  }
}

// One pass over the whole of the input for each block.
KERNEL(read_rate) {
  UNUSED;
  for (int64_t i = first; i < last; i++) {
    const float *from = buffers[0], *end = from + sizes[2];
    for (; from < end; from += 8 * LINE_FLOATS) {
      for (const float *line = from; line < from + 8 * LINE_FLOATS; line += LANES) {
        vector v = *(const vector *)line;
        USE(v);
      }
    }
  }
}

// A block is 16 pages, each of which is read from the input and written by streaming stores, four
// pages interleaved.
KERNEL(copy_rate) {
  UNUSED;
  enum { PAGE = 1024, PIECE = 16 * PAGE };
  for (int64_t i = first; i < last; i++) {
    const float *from = (const float *)buffers[0] + i * PIECE;
    float *to = (float *)buffers[1] + i * PIECE;
    for (int at = 0; at < PIECE; at += 4 * PAGE)
      for (int line = at; line < at + PAGE; line += LINE_FLOATS)
        for (int page = line; page < line + 4 * PAGE; page += PAGE)
          for (int k = page; k < page + LINE_FLOATS; k += LANES) {
            const vector v = *(const vector *)(from + k);
#if defined(__x86_64__) && VECTOR_BYTES == 64
            _mm512_stream_ps(to + k, v);
#elif defined(__x86_64__) && VECTOR_BYTES == 32
            _mm256_stream_ps(to + k, v);
#elif defined(__x86_64__)
            _mm_stream_ps(to + k, v);
#else
            *(vector *)(to + k) = v;
#endif
          }
  }
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// 512 lines that follow each other, and 512 in a page each, not all in the same set.
KERNEL(line_rate) {
  UNUSED;
  for (int64_t i = first; i < last; i++) {
    const float *from = buffers[0];
    for (int k = 0; k < 512; k++) {
      vector v = *(const vector *)(from + k * LINE_FLOATS);
      USE(v);
    }
  }
}

KERNEL(page_rate) {
  UNUSED;
  for (int64_t i = first; i < last; i++) {
    const float *from = buffers[0];
    for (int k = 0; k < 512; k++) {
      vector v = *(const vector *)(from + k * 1024 + k % 64 * LINE_FLOATS);
      USE(v);
    }
  }
}

KERNEL(nothing) {
  UNUSED;
  (void)first, (void)last;
}
