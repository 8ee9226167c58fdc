// Durbin's recursion: T y = -r for a symmetric Toeplitz matrix with ones on its diagonal. z holds n.
void durbin(long n, const double *restrict r, double *restrict y, double *restrict z) {
  double alpha = -r[0], beta = 1;
  y[0] = -r[0];
  for (long k = 1; k < n; k++) {
    beta = (1 - alpha * alpha) * beta;
    double sum = 0;
    for (long i = 0; i < k; i++)
      sum += r[k - i - 1] * y[i];
    alpha = -(r[k] + sum) / beta;
    for (long i = 0; i < k; i++)
      z[i] = y[i] + alpha * y[k - i - 1];
    for (long i = 0; i < k; i++)
      y[i] = z[i];
    y[k] = alpha;
  }
}
