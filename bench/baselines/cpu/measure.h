// What the programs of this folder share: arrays in files, and the time that something takes.

#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct array {
  int rank;
  size_t shape[3];
  void *data;
};

static void fail(const char *what, const char *name) {
  fprintf(stderr, "%s: %s\n", name, what);
  exit(1);
}

static size_t count(const struct array *a) {
  size_t n = 1;
  for (int i = 0; i < a->rank; i++) n *= a->shape[i];
  return n;
}

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (!memory) fail("no memory", "allocate");
  return memory;
}

static FILE *open_in(const char *dir, const char *name, const char *mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.npy", dir, name);
  FILE *file = fopen(path, mode);
  if (!file) fail("cannot open", path);
  return file;
}

// Reads a .npy file of version 1, at most three axes, row by row, of this element type (such as "<f4").
static struct array read_array(const char *dir, const char *name, const char *type) {
  FILE *file = open_in(dir, name, "rb");
  unsigned char head[10];
  if (fread(head, 1, 10, file) != 10 || head[6] != 1) fail("no .npy file of version 1", name);
  size_t length = head[8] | head[9] << 8;
  char text[65536];
  if (fread(text, 1, length, file) != length) fail("the header is cut off", name);
  text[length] = 0;
  char quoted[16];
  snprintf(quoted, sizeof quoted, "'%s'", type);
  if (!strstr(text, quoted)) fail("another element type", name);
  const char *at = strstr(text, "'shape':");
  at = at ? strchr(at, '(') : NULL;
  if (!at) fail("no shape", name);
  struct array array = {0, {1, 1, 1}, NULL};
  for (at++; *at != ')' && array.rank < 3;) {
    char *end;
    size_t extent = strtoull(at, &end, 10);
    if (end == at) break;
    array.shape[array.rank++] = extent;
    for (at = end; *at == ',' || *at == ' ';) at++;
  }
  size_t bytes = count(&array) * (size_t)(type[2] - '0');
  array.data = allocate(bytes);
  if (fread(array.data, 1, bytes, file) != bytes) fail("the data is cut off", name);
  fclose(file);
  return array;
}

static void write_array(const char *dir, const char *name, const char *type, struct array array) {
  char text[256], shape[64] = "";
  for (int i = 0; i < array.rank; i++)
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%zu, ", array.shape[i]);
  int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                        type, shape);
  while ((10 + length + 1) % 64) text[length++] = ' ';
  text[length++] = '\n';
  unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, length & 255, length >> 8};
  FILE *file = open_in(dir, name, "wb");
  size_t n = count(&array), size = (size_t)(type[2] - '0');
  if (fwrite(head, 1, 10, file) != 10 || fwrite(text, 1, length, file) != (size_t)length ||
      fwrite(array.data, size, n, file) != n)
    fail("cannot write", name);
  fclose(file);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The median: twice to warm up, then for BENCH_SECONDS, but at least 5 and at most 51 times; 3 times, and after one
// to warm up, where once takes more than a second. measure.py and the Rust side do the same.
static double median_seconds(void (*run)(void *), void *argument) {
  const char *budget = getenv("BENCH_SECONDS");
  double start = now(), samples[51], seconds = budget ? atof(budget) : 0.5;
  run(argument);
  int slow = now() - start > 1.0, n = 0;
  if (!slow) run(argument);
  start = now();
  while (n < (slow ? 3 : 5) || (n < 51 && now() - start < seconds)) {
    double from = now();
    run(argument);
    samples[n++] = now() - from;
  }
  qsort(samples, n, sizeof *samples, ascending);
  return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

static void report(const char *baseline, const char *how, double seconds, int threads, const char *result) {
  printf("{\"baseline\": \"%s\", \"how\": \"%s\", \"seconds\": %.9f, \"threads\": %d, \"result\": \"%s.npy\"}\n", baseline,
         how, seconds, threads, result);
}

#endif
