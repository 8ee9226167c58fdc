// LU decomposition without pivoting, in place, row by row: elements below the diagonal, then above.
void lu(long n, double *restrict a) {
  for (long i = 0; i < n; i++) {
    for (long j = 0; j < i; j++) {
      for (long k = 0; k < j; k++)
        a[i * n + j] -= a[i * n + k] * a[k * n + j];
      a[i * n + j] /= a[j * n + j];
    }
    for (long j = i; j < n; j++)
      for (long k = 0; k < i; k++)
        a[i * n + j] -= a[i * n + k] * a[k * n + j];
  }
}
