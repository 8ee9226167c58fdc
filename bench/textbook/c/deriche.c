// Deriche's recursive filter: along the rows from both sides, then along the columns. s, l and r hold
// h * w.
void deriche(long h, long w, const float *restrict x, const float *restrict c, float *restrict y,
             float *restrict l, float *restrict r, float *restrict s) {
  for (long i = 0; i < h; i++) {
    float y1 = 0, y2 = 0, x1 = 0;
    for (long j = 0; j < w; j++) {
      l[i * w + j] = c[0] * x[i * w + j] + c[1] * x1 + c[8] * y1 + c[9] * y2;
      x1 = x[i * w + j];
      y2 = y1;
      y1 = l[i * w + j];
    }
  }
  for (long i = 0; i < h; i++) {
    float y1 = 0, y2 = 0, x1 = 0, x2 = 0;
    for (long j = w - 1; j >= 0; j--) {
      r[i * w + j] = c[2] * x1 + c[3] * x2 + c[8] * y1 + c[9] * y2;
      x2 = x1;
      x1 = x[i * w + j];
      y2 = y1;
      y1 = r[i * w + j];
    }
  }
  for (long i = 0; i < h; i++)
    for (long j = 0; j < w; j++)
      s[i * w + j] = l[i * w + j] + r[i * w + j];
  for (long i = 0; i < h; i++)
    for (long j = 0; j < w; j++)
      l[i * w + j] = c[4] * s[i * w + j] + c[5] * (i > 0 ? s[(i - 1) * w + j] : 0)
                     + c[8] * (i > 0 ? l[(i - 1) * w + j] : 0) + c[9] * (i > 1 ? l[(i - 2) * w + j] : 0);
  for (long i = h - 1; i >= 0; i--)
    for (long j = 0; j < w; j++)
      r[i * w + j] = c[6] * (i + 1 < h ? s[(i + 1) * w + j] : 0) + c[7] * (i + 2 < h ? s[(i + 2) * w + j] : 0)
                     + c[8] * (i + 1 < h ? r[(i + 1) * w + j] : 0) + c[9] * (i + 2 < h ? r[(i + 2) * w + j] : 0);
  for (long i = 0; i < h; i++)
    for (long j = 0; j < w; j++)
      y[i * w + j] = l[i * w + j] + r[i * w + j];
}
