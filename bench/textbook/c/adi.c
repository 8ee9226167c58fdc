// Alternating directions for the heat equation in a plane: a half step along the columns, one along
// the rows, each a tridiagonal system on every line. The boundary is 1 after the first half step; v
// holds n * n, p and q hold n.
void adi(long steps, long n, double *restrict u, double r, double *restrict v, double *restrict p, double *restrict q) {
  p[0] = 0;
  for (long j = 1; j < n - 1; j++)
    p[j] = r / (1 + 2 * r - r * p[j - 1]);
  for (long t = 0; t < steps; t++) {
    for (long j = 0; j < n; j++)
      v[j] = v[(n - 1) * n + j] = v[j * n] = v[j * n + n - 1] = 1;
    for (long i = 1; i < n - 1; i++) {
      q[0] = 1;
      for (long j = 1; j < n - 1; j++)
        q[j] = p[j] / r * (r * u[j * n + i - 1] + (1 - 2 * r) * u[j * n + i] + r * u[j * n + i + 1] + r * q[j - 1]);
      for (long j = n - 2; j >= 1; j--)
        v[j * n + i] = p[j] * v[(j + 1) * n + i] + q[j];
    }
    for (long j = 0; j < n; j++)
      u[j] = u[(n - 1) * n + j] = u[j * n] = u[j * n + n - 1] = 1;
    for (long i = 1; i < n - 1; i++) {
      q[0] = 1;
      for (long j = 1; j < n - 1; j++)
        q[j] = p[j] / r * (r * v[(i - 1) * n + j] + (1 - 2 * r) * v[i * n + j] + r * v[(i + 1) * n + j] + r * q[j - 1]);
      for (long j = n - 2; j >= 1; j--)
        u[i * n + j] = p[j] * u[i * n + j + 1] + q[j];
    }
  }
}
