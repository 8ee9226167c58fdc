// Forward substitution.
void triangular_solve(long n, const double *restrict l, const double *restrict b, double *restrict x) {
  for (long i = 0; i < n; i++) {
    double rest = b[i];
    for (long k = 0; k < i; k++)
      rest -= l[i * n + k] * x[k];
    x[i] = rest / l[i * n + i];
  }
}
