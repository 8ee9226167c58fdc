// The inverse by Gauss-Jordan elimination without pivoting, in place.
void inverse(long n, double *restrict a) {
  for (long k = 0; k < n; k++) {
    double pivot = a[k * n + k];
    a[k * n + k] = 1;
    for (long j = 0; j < n; j++)
      a[k * n + j] /= pivot;
    for (long i = 0; i < n; i++) {
      if (i == k)
        continue;
      double factor = a[i * n + k];
      a[i * n + k] = 0;
      for (long j = 0; j < n; j++)
        a[i * n + j] -= factor * a[k * n + j];
    }
  }
}
