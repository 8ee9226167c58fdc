#include <math.h>

// One head of attention. s holds n.
void attention(long n, long d, const float *restrict q, const float *restrict k, const float *restrict v,
               float *restrict o, float *restrict s) {
  for (long i = 0; i < n; i++) {
    float most = -INFINITY, sum = 0;
    for (long j = 0; j < n; j++) {
      float x = 0;
      for (long e = 0; e < d; e++)
        x += q[i * d + e] * k[j * d + e];
      s[j] = x / sqrtf(d);
      if (s[j] > most)
        most = s[j];
    }
    for (long j = 0; j < n; j++) {
      s[j] = expf(s[j] - most);
      sum += s[j];
    }
    for (long e = 0; e < d; e++) {
      float x = 0;
      for (long j = 0; j < n; j++)
        x += s[j] * v[j * d + e];
      o[i * d + e] = x / sum;
    }
  }
}
