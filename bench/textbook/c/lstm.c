#include <math.h>

static float sigmoid(float a) { return 1 / (1 + expf(-a)); }

// A layer of long short-term memory. z holds 4 * n, c holds n.
void lstm(long steps, long n, long m, const float *restrict x, const float *restrict u,
          const float *restrict w, float *restrict h, float *restrict z, float *restrict c) {
  for (long t = 0; t < steps; t++) {
    for (long g = 0; g < 4; g++)
      for (long i = 0; i < n; i++) {
        float sum = 0;
        for (long k = 0; k < m; k++)
          sum += u[(g * n + i) * m + k] * x[t * m + k];
        if (t > 0)
          for (long k = 0; k < n; k++)
            sum += w[(g * n + i) * n + k] * h[(t - 1) * n + k];
        z[g * n + i] = sum;
      }
    for (long i = 0; i < n; i++) {
      c[i] = sigmoid(z[i]) * tanhf(z[3 * n + i]) + (t > 0 ? sigmoid(z[n + i]) * c[i] : 0);
      h[t * n + i] = sigmoid(z[2 * n + i]) * tanhf(c[i]);
    }
  }
}
