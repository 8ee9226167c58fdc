// Gauss-Seidel sweeps over a plane: nine points, in place.
void gauss_seidel_2d(long steps, long n, double *restrict u) {
  for (long t = 0; t < steps; t++)
    for (long i = 1; i < n - 1; i++)
      for (long j = 1; j < n - 1; j++)
        u[i * n + j] = (u[(i - 1) * n + j - 1] + u[(i - 1) * n + j] + u[(i - 1) * n + j + 1]
                        + u[i * n + j - 1] + u[i * n + j] + u[i * n + j + 1]
                        + u[(i + 1) * n + j - 1] + u[(i + 1) * n + j] + u[(i + 1) * n + j + 1]) / 9;
}
