// Parasail's local alignments of each pair, without Python between them.
//
//     parasail LIBRARY DIR THREADS OPEN EXTEND
//
// The library is loaded by its path, since its Python package does not name the file as linkers expect. A pair has a query of its own, so making its profile is part of the time.

#ifdef _OPENMP
#include <omp.h>
#endif
#include <dlfcn.h>
#include <parasail.h>

#include "measure.h"

static const char LETTERS[] = "ACDEFGHIKLMNPQRSTVWYBZXJOU";

#define NEEDED(of)                                                                         \
  of(parasail_matrix_create) of(parasail_matrix_set_value) of(parasail_lookup_function) \
      of(parasail_result_get_score) of(parasail_result_free)
#define DECLARE(name) static __typeof__(&name) its_##name;
#define FIND(name) \
  if (!(its_##name = (__typeof__(&name))dlsym(library, #name))) fail("not in the library", #name);
NEEDED(DECLARE)

struct batch {
  long pairs, n, m;
  char *a, *b;
  int open, extend;
  parasail_matrix_t *matrix;
  parasail_function_t *align;
  int32_t *score;
};

static void run(void *argument) {
  struct batch *s = argument;
#pragma omp parallel for schedule(static)
  for (long pair = 0; pair < s->pairs; pair++) {
    parasail_result_t *result =
        s->align(s->a + pair * s->n, s->n, s->b + pair * s->m, s->m, s->open, s->extend, s->matrix);
    s->score[pair] = its_parasail_result_get_score(result);
    its_parasail_result_free(result);
  }
}

static char *spelled(struct array a) {
  char *text = allocate(count(&a));
  for (size_t i = 0; i < count(&a); i++) text[i] = LETTERS[((uint8_t *)a.data)[i]];
  return text;
}

int main(int argc, char **argv) {
  if (argc != 6) fail("usage: parasail LIBRARY DIR THREADS OPEN EXTEND", argv[0]);
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) fail(dlerror(), argv[0]);
  NEEDED(FIND)
  const char *dir = argv[2];
  int threads = atoi(argv[3]);
#ifdef _OPENMP
  omp_set_num_threads(threads);
#else
  threads = 1;
#endif
  struct array a = read_array(dir, "a", "|u1"), b = read_array(dir, "b", "|u1");
  struct array sub = read_array(dir, "sub", "<i2");
  int letters = sub.shape[0];
  char alphabet[sizeof LETTERS] = "";
  if (letters >= (int)sizeof LETTERS) fail("more letters than the alphabet has", "sub");
  memcpy(alphabet, LETTERS, letters);
  struct batch s = {
      .pairs = a.shape[0],
      .n = a.shape[1],
      .m = b.shape[1],
      .a = spelled(a),
      .b = spelled(b),
      .open = atoi(argv[4]),
      .extend = atoi(argv[5]),
      .matrix = its_parasail_matrix_create(alphabet, 1, -1),
  };
  for (int i = 0; i < letters; i++)
    for (int j = 0; j < letters; j++)
      its_parasail_matrix_set_value(s.matrix, i, j, ((int16_t *)sub.data)[i * letters + j]);
  static const char *const WAYS[] = {"sw_striped_16", "sw_striped_sat", "sw_scan_16"};
  for (size_t way = 0; way < sizeof WAYS / sizeof *WAYS; way++) {
    s.align = its_parasail_lookup_function(WAYS[way]);
    if (!s.align) continue;
    struct array score = {1, {s.pairs, 1}, allocate(s.pairs * 4)};
    s.score = score.data;
    double seconds = median_seconds(run, &s);
    write_array(dir, WAYS[way], "<i4", score);
    report("parasail", WAYS[way], seconds, threads, WAYS[way]);
  }
  return 0;
}
