// LU decomposition without pivoting, in place, one elimination step after the other.
void lu_by_steps(long n, double *restrict a) {
  for (long k = 0; k < n; k++)
    for (long i = k + 1; i < n; i++) {
      a[i * n + k] /= a[k * n + k];
      for (long j = k + 1; j < n; j++)
        a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
}
