#include <math.h>

// Cholesky decomposition; what is above the diagonal of l is 0 before and after.
void cholesky(long n, const double *restrict a, double *restrict l) {
  for (long i = 0; i < n; i++)
    for (long j = 0; j <= i; j++) {
      double x = a[i * n + j];
      for (long k = 0; k < j; k++)
        x -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i == j ? sqrt(x) : x / l[j * n + j];
    }
}
