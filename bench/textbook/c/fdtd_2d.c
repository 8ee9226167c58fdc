// Maxwell's equations in a plane by finite differences in time, three arrays in place.
void fdtd_2d(long steps, long n, long m, double *restrict ex, double *restrict ey, double *restrict hz,
             const double *restrict source) {
  for (long t = 0; t < steps; t++) {
    for (long j = 0; j < m; j++)
      ey[j] = source[t];
    for (long i = 1; i < n; i++)
      for (long j = 0; j < m; j++)
        ey[i * m + j] -= 0.5 * (hz[i * m + j] - hz[(i - 1) * m + j]);
    for (long i = 0; i < n; i++)
      for (long j = 1; j < m; j++)
        ex[i * m + j] -= 0.5 * (hz[i * m + j] - hz[i * m + j - 1]);
    for (long i = 0; i < n - 1; i++)
      for (long j = 0; j < m - 1; j++)
        hz[i * m + j] -= 0.7 * (ex[i * m + j + 1] - ex[i * m + j] + ey[(i + 1) * m + j] - ey[i * m + j]);
  }
}
