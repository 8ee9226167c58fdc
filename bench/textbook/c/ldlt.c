// LDL^T decomposition; what is above and on the diagonal of l is 0 before and after.
void ldlt(long n, const double *restrict a, double *restrict d, double *restrict l) {
  for (long i = 0; i < n; i++) {
    for (long j = 0; j < i; j++) {
      double x = a[i * n + j];
      for (long k = 0; k < j; k++)
        x -= l[i * n + k] * l[j * n + k] * d[k];
      l[i * n + j] = x / d[j];
    }
    double x = a[i * n + i];
    for (long k = 0; k < i; k++)
      x -= l[i * n + k] * l[i * n + k] * d[k];
    d[i] = x;
  }
}
