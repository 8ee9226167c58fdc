// Gauss-Seidel sweeps over a cube: seven points, in place.
void gauss_seidel_3d(long steps, long n, double *restrict u) {
  for (long t = 0; t < steps; t++)
    for (long i = 1; i < n - 1; i++)
      for (long j = 1; j < n - 1; j++)
        for (long k = 1; k < n - 1; k++)
          u[(i * n + j) * n + k] =
              (u[((i - 1) * n + j) * n + k] + u[(i * n + j - 1) * n + k] + u[(i * n + j) * n + k - 1]
               + u[(i * n + j) * n + k] + u[(i * n + j) * n + k + 1] + u[(i * n + j + 1) * n + k]
               + u[((i + 1) * n + j) * n + k]) / 7;
}
