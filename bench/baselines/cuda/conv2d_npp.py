"""2-D convolution by NPP: `nppiFilter_32f_C1R_Ctx`, called from a small program that nvcc compiles.

    python3 conv2d_npp.py SIZE [HxQ ...]

The image has a border, so that the result has SIZE x SIZE elements.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from measure import REPEATS, SQUARES, WARM, filters, image_name, report

PROGRAM = r"""
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <npp.h>
#include <vector>

// Arguments: size, rows and columns of the filter, runs that do not count, runs that do. Prints milliseconds.
int main(int count, char **words) {
  if (count != 6) return 2;
  const int n = atoi(words[1]), h = atoi(words[2]), q = atoi(words[3]);
  const int warm = atoi(words[4]), repeats = atoi(words[5]);
  const int rows = n + 2 * h - 2, columns = n + 2 * q - 2;
  std::vector<float> x((size_t)rows * columns), w(h * q), z((size_t)n * n);
  unsigned state = 1;
  auto next = [&] { state = state * 1664525u + 1013904223u; return (state >> 8) / 8388608.0f - 1.0f; };
  for (auto &v : x) v = next();
  for (auto &v : w) v = next();
  float *dx, *dw, *dz;
  if (cudaMalloc(&dx, x.size() * 4) || cudaMalloc(&dw, w.size() * 4) || cudaMalloc(&dz, z.size() * 4)) return 3;
  cudaMemcpy(dx, x.data(), x.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dw, w.data(), w.size() * 4, cudaMemcpyHostToDevice);
  NppStreamContext ctx{};
  cudaDeviceProp props;
  int device = 0;
  cudaGetDevice(&device);
  cudaGetDeviceProperties(&props, device);
  ctx.hStream = 0;
  ctx.nCudaDeviceId = device;
  ctx.nMultiProcessorCount = props.multiProcessorCount;
  ctx.nMaxThreadsPerMultiProcessor = props.maxThreadsPerMultiProcessor;
  ctx.nMaxThreadsPerBlock = props.maxThreadsPerBlock;
  ctx.nSharedMemPerBlock = props.sharedMemPerBlock;
  ctx.nCudaDevAttrComputeCapabilityMajor = props.major;
  ctx.nCudaDevAttrComputeCapabilityMinor = props.minor;
  cudaStreamGetFlags(0, &ctx.nStreamFlags);
  // Windows lie within a filter's size of the pixel, whatever the anchor means: the border is as wide.
  const NppiSize roi{n, n}, size{q, h};
  const NppiPoint anchor{q - 1, h - 1};
  const float *from = dx + (size_t)(h - 1) * columns + (q - 1);
  auto once = [&] { return nppiFilter_32f_C1R_Ctx(from, columns * 4, dz, n * 4, roi, dw, size, anchor, ctx); };
  NppStatus status = once();
  if (status != NPP_SUCCESS || cudaDeviceSynchronize()) {
    fprintf(stderr, "NPP status %d\n", (int)status);
    return 4;
  }
  cudaMemcpy(z.data(), dz, z.size() * 4, cudaMemcpyDeviceToHost);
  // How far a window starts before its pixel, and whether the filter is turned: same work, told by the result.
  auto off = [&](int dy, int dx0, bool turned, int points) {
    double worst = 0;
    for (int i = 0; i < points; i++) {
      const int r = (int)((long long)i * 7919 % n), c = (int)((long long)i * 104729 % n);
      double sum = 0;
      for (int p = 0; p < h; p++)
        for (int k = 0; k < q; k++) {
          const int tap = turned ? h * q - 1 - (p * q + k) : p * q + k;
          sum += (double)x[(size_t)(r + h - 1 - dy + p) * columns + c + q - 1 - dx0 + k] * w[tap];
        }
      worst = std::max(worst, std::fabs(sum - z[(size_t)r * n + c]));
    }
    return worst;
  };
  double best = 1e30;
  for (int dy = 0; dy < h; dy++)
    for (int dx0 = 0; dx0 < q; dx0++)
      for (int turned = 0; turned < 2; turned++)
        if (off(dy, dx0, turned, 5) < 1e-3) best = std::min(best, off(dy, dx0, turned, 200));
  if (!(best < 1e-3)) {
    fprintf(stderr, "wrong results\n");
    return 5;
  }
  // The runs follow each other, so that none waits for the host.
  std::vector<cudaEvent_t> events(2 * (warm + repeats));
  for (cudaEvent_t &event : events) cudaEventCreate(&event);
  for (int run = 0; run < warm + repeats; run++) {
    cudaEventRecord(events[2 * run]);
    once();
    cudaEventRecord(events[2 * run + 1]);
  }
  cudaDeviceSynchronize();
  std::vector<float> times;
  for (int run = warm; run < warm + repeats; run++) {
    float ms = 0;
    cudaEventElapsedTime(&ms, events[2 * run], events[2 * run + 1]);
    times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  printf("%g\n", times[times.size() / 2]);
  return 0;
}
"""


def build(folder):
    """The program, or an error."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    source, program = os.path.join(folder, "npp.cu"), os.path.join(folder, "npp")
    with open(source, "w") as file:
        file.write(PROGRAM)
    done = subprocess.run(
        [nvcc, "-O2", "-o", program, source, "-lnppif", "-lnppc"],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1:] or "nvcc failed")
    return program


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
    wanted = filters(sys.argv[2:] or SQUARES)
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = build(folder)
        except Exception as error:
            for h, q in wanted:
                report("conv2d", image_name(n, h, q), "NPP", skipped=error)
            return
        for h, q in wanted:
            words = [program] + [str(v) for v in (n, h, q, WARM, REPEATS)]
            done = subprocess.run(words, capture_output=True, text=True)
            name = image_name(n, h, q)
            if done.returncode == 0:
                report("conv2d", name, "NPP", ms=float(done.stdout))
            else:
                why = done.stderr.strip() or f"ended with {done.returncode}"
                report("conv2d", name, "NPP", skipped=why)


main()
