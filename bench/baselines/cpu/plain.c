// What one writes in C without thinking of vectors, caches or registers: plain loops, in the order that a compiler
// can vectorise.
//
//     plain PROBLEM DIR THREADS
//
// reads the arrays of the problem in DIR, times the loops, writes the result and prints one line of JSON.

#ifdef _OPENMP
#include <omp.h>
#endif

#include "measure.h"

struct arrays {
  struct array in[3], out;
  int open, extend, steps;
};

// z(c) = sum over q of x(c + q) w(q)
static void conv1d(void *argument) {
  struct arrays *a = argument;
  const float *restrict x = a->in[0].data, *restrict w = a->in[1].data;
  float *restrict z = a->out.data;
  long n = a->out.shape[0], taps = count(&a->in[1]), chunk = 4096;
#pragma omp parallel for schedule(static)
  for (long first = 0; first < n; first += chunk) {
    long last = first + chunk < n ? first + chunk : n;
    for (long c = first; c < last; c++) z[c] = 0;
    for (long q = 0; q < taps; q++)
      for (long c = first; c < last; c++) z[c] += w[q] * x[c + q];
  }
}

// z(r, c) = sum over p, q of x(r + p, c + q) w(p, q)
static void conv2d(void *argument) {
  struct arrays *a = argument;
  const float *restrict x = a->in[0].data, *restrict w = a->in[1].data;
  float *restrict z = a->out.data;
  long rows = a->out.shape[0], columns = a->out.shape[1];
  long height = a->in[1].shape[0], width = a->in[1].shape[1], wide = a->in[0].shape[1];
#pragma omp parallel for schedule(static)
  for (long r = 0; r < rows; r++) {
    for (long c = 0; c < columns; c++) z[r * columns + c] = 0;
    for (long p = 0; p < height; p++)
      for (long q = 0; q < width; q++) {
        float weight = w[p * width + q];
        for (long c = 0; c < columns; c++) z[r * columns + c] += weight * x[(r + p) * wide + c + q];
      }
  }
}

// c = a b
static void matmul(void *argument) {
  struct arrays *m = argument;
  const float *restrict a = m->in[0].data, *restrict b = m->in[1].data;
  float *restrict c = m->out.data;
  long rows = m->out.shape[0], columns = m->out.shape[1], depth = m->in[0].shape[1];
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; i++) {
    for (long j = 0; j < columns; j++) c[i * columns + j] = 0;
    for (long k = 0; k < depth; k++)
      for (long j = 0; j < columns; j++) c[i * columns + j] += a[i * depth + k] * b[k * columns + j];
  }
}

// Each cell becomes the weighted sum of itself and its neighbours, weights row by row; the border stays as it is.
static void sweep(const struct array *shape, const float *restrict w, const float *restrict u, float *restrict v) {
  long deep = shape->rank == 3, planes = deep ? shape->shape[0] : 1;
  long rows = shape->shape[deep], columns = shape->shape[deep + 1], plane = rows * columns;
#pragma omp parallel for collapse(2) schedule(static)
  for (long z = 0; z < planes; z++)
    for (long y = 0; y < rows; y++) {
      long line = z * plane + y * columns;
      const float *at = u + line;
      float *to = v + line;
      if (y == 0 || y == rows - 1 || (deep && (z == 0 || z == planes - 1))) {
        memcpy(to, at, columns * sizeof(float));
        continue;
      }
      to[0] = at[0];
      if (deep)
        for (long x = 1; x < columns - 1; x++)
          to[x] = w[0] * at[x - plane] + w[1] * at[x - columns] + w[2] * at[x - 1] + w[3] * at[x] +
                  w[4] * at[x + 1] + w[5] * at[x + columns] + w[6] * at[x + plane];
      else
        for (long x = 1; x < columns - 1; x++)
          to[x] = w[0] * at[x - columns] + w[1] * at[x - 1] + w[2] * at[x] + w[3] * at[x + 1] +
                  w[4] * at[x + columns];
      to[columns - 1] = at[columns - 1];
    }
}

// Many sweeps to and fro between two fields; the last ends in the one that is written out.
static void stencil(void *argument) {
  struct arrays *a = argument;
  const float *from = a->in[0].data;
  for (int left = a->steps; left > 0; left--) {
    float *to = left % 2 ? a->out.data : a->in[2].data;
    sweep(&a->in[0], a->in[1].data, from, to);
    from = to;
  }
}

static inline int least(int a, int b) { return a < b ? a : b; }
static inline int most(int a, int b) { return a > b ? a : b; }

// Levenshtein's distance of each pair, one row of the table at a time.
static void edit_distance(void *argument) {
  struct arrays *s = argument;
  long pairs = s->in[0].shape[0], n = s->in[0].shape[1], m = s->in[1].shape[1];
  int32_t *distance = s->out.data;
#pragma omp parallel for schedule(static)
  for (long pair = 0; pair < pairs; pair++) {
    const uint8_t *a = (uint8_t *)s->in[0].data + pair * n, *b = (uint8_t *)s->in[1].data + pair * m;
    int *row = allocate((m + 1) * sizeof(int));
    for (long j = 0; j <= m; j++) row[j] = j;
    for (long i = 0; i < n; i++) {
      int diagonal = row[0], left = i + 1;
      row[0] = left;
      for (long j = 0; j < m; j++) {
        int above = row[j + 1];
        left = least(least(above, left) + 1, diagonal + (a[i] != b[j]));
        diagonal = above;
        row[j + 1] = left;
      }
    }
    distance[pair] = row[m];
    free(row);
  }
}

// The best local alignment of each pair, with affine gaps, one row of the three tables at a time.
static void smith_waterman(void *argument) {
  struct arrays *s = argument;
  long pairs = s->in[0].shape[0], n = s->in[0].shape[1], m = s->in[1].shape[1];
  long letters = s->in[2].shape[1];
  const int16_t *score = s->in[2].data;
  int32_t *best = s->out.data;
  int open = s->open, extend = s->extend;
#pragma omp parallel for schedule(static)
  for (long pair = 0; pair < pairs; pair++) {
    const uint8_t *a = (uint8_t *)s->in[0].data + pair * n, *b = (uint8_t *)s->in[1].data + pair * m;
    int *h = allocate(2 * (m + 1) * sizeof(int)), *f = h + m + 1, top = 0;
    for (long j = 0; j <= m; j++) h[j] = 0, f[j] = -open;
    for (long i = 0; i < n; i++) {
      int diagonal = 0, left = 0, e = -open;
      for (long j = 0; j < m; j++) {
        e = most(e - extend, left - open);
        f[j + 1] = most(f[j + 1] - extend, h[j + 1] - open);
        left = most(most(0, diagonal + score[a[i] * letters + b[j]]), most(e, f[j + 1]));
        diagonal = h[j + 1];
        h[j + 1] = left;
        top = most(top, left);
      }
    }
    best[pair] = top;
    free(h);
  }
}

static struct array zeros(int rank, size_t first, size_t second, size_t size) {
  struct array array = {rank, {first, second}, NULL};
  array.data = allocate(count(&array) * size);
  memset(array.data, 0, count(&array) * size);
  return array;
}

// A field of the same shape whose pages are there.
static struct array like(const struct array *a) {
  struct array array = *a;
  array.data = allocate(count(a) * sizeof(float));
  memset(array.data, 0, count(a) * sizeof(float));
  return array;
}

int main(int argc, char **argv) {
  if (argc < 4) fail("usage: plain PROBLEM DIR THREADS [OPEN EXTEND | STEPS]", argv[0]);
  const char *problem = argv[1], *dir = argv[2], *type = "<f4";
  int threads = atoi(argv[3]);
#ifdef _OPENMP
  omp_set_num_threads(threads);
#else
  threads = 1;
#endif
  struct arrays a = {0};
  void (*run)(void *);
  if (!strcmp(problem, "conv1d")) {
    a.in[0] = read_array(dir, "x", type), a.in[1] = read_array(dir, "w", type);
    a.out = zeros(1, a.in[0].shape[0] - count(&a.in[1]) + 1, 1, 4);
    run = conv1d;
  } else if (!strcmp(problem, "conv2d")) {
    a.in[0] = read_array(dir, "x", type), a.in[1] = read_array(dir, "w", type);
    a.out = zeros(2, a.in[0].shape[0] - a.in[1].shape[0] + 1, a.in[0].shape[1] - a.in[1].shape[1] + 1, 4);
    run = conv2d;
  } else if (!strcmp(problem, "matmul")) {
    a.in[0] = read_array(dir, "a", type), a.in[1] = read_array(dir, "b", type);
    a.out = zeros(2, a.in[0].shape[0], a.in[1].shape[1], 4);
    run = matmul;
  } else if (!strcmp(problem, "edit_distance")) {
    a.in[0] = read_array(dir, "a", "|u1"), a.in[1] = read_array(dir, "b", "|u1");
    a.out = zeros(1, a.in[0].shape[0], 1, 4);
    type = "<i4";
    run = edit_distance;
  } else if (!strcmp(problem, "smith_waterman") && argc == 6) {
    a.in[0] = read_array(dir, "a", "|u1"), a.in[1] = read_array(dir, "b", "|u1");
    a.in[2] = read_array(dir, "sub", "<i2");
    a.open = atoi(argv[4]), a.extend = atoi(argv[5]);
    a.out = zeros(1, a.in[0].shape[0], 1, 4);
    type = "<i4";
    run = smith_waterman;
  } else if (!strcmp(problem, "stencil") && argc == 5) {
    a.in[0] = read_array(dir, "u", type), a.in[1] = read_array(dir, "w", type);
    a.steps = atoi(argv[4]);
    a.in[2] = like(&a.in[0]), a.out = like(&a.in[0]);
    run = stencil;
  } else {
    fail("no such problem", problem);
    return 1;
  }
  double seconds = median_seconds(run, &a);
  write_array(dir, "plain", type, a.out);
  report("C", "-O3 -march=native", seconds, threads, "plain");
  return 0;
}
