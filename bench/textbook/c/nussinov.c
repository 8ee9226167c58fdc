#include <stdint.h>

static int32_t max(int32_t a, int32_t b) { return a > b ? a : b; }

// Nussinov's algorithm; what is below the diagonal of t is 0 before and after.
void nussinov(long n, const int32_t *restrict s, int32_t *restrict t) {
  for (long i = n - 1; i >= 0; i--) {
    t[i * n + i] = 0;
    for (long j = i + 1; j < n; j++) {
      int32_t best = max(t[(i + 1) * n + j], t[i * n + j - 1]);
      int32_t pair = s[i] + s[j] == 3;
      best = max(best, (i < j - 1 ? t[(i + 1) * n + j - 1] : 0) + pair);
      for (long k = i + 1; k < j; k++)
        best = max(best, t[i * n + k] + t[(k + 1) * n + j]);
      t[i * n + j] = best;
    }
  }
}
