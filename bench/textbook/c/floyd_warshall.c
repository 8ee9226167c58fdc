// All-pairs shortest paths, in place.
void floyd_warshall(long n, float *restrict d) {
  for (long k = 0; k < n; k++)
    for (long i = 0; i < n; i++)
      for (long j = 0; j < n; j++) {
        float through = d[i * n + k] + d[k * n + j];
        d[i * n + j] = d[i * n + j] < through ? d[i * n + j] : through;
      }
}
