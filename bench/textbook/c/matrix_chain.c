#include <stdint.h>

// The cheapest order of a chain of matrix products; what is below the diagonal of c stays as it is.
void matrix_chain(long n, const int64_t *restrict p, int64_t *restrict c) {
  for (long i = 0; i < n; i++)
    c[i * n + i] = 0;
  for (long length = 1; length < n; length++)
    for (long i = 0; i + length < n; i++) {
      long j = i + length;
      int64_t best = INT64_MAX;
      for (long k = i; k < j; k++) {
        int64_t cost = c[i * n + k] + c[(k + 1) * n + j] + p[i] * p[k + 1] * p[j + 1];
        if (cost < best)
          best = cost;
      }
      c[i * n + j] = best;
    }
}
