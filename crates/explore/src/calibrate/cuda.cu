// What a GPU does in a second, one kernel for each kind of work. Blocks of 256 threads; ITERATIONS and UNROLLED are those of cuda.rs.
//
// What a thread computes is stored where that could happen, which the compiler does not know.

typedef int int32_t;
typedef long long int64_t;

#define ITERATIONS 64
#define UNROLLED 128
#define KERNEL(name) extern "C" __global__ void name(const float *source, float *target, INDEX elements)

__device__ void keep(float *target, float value) {
  if (value == 12345.678f) target[threadIdx.x] = value;
}

// Sixteen independent sums.
KERNEL(fma_rate) {
  const float a = source[0] + 0.5f, b = source[1] + 0.25f;
  float s[16];
#pragma unroll
  for (int k = 0; k < 16; k++) s[k] = threadIdx.x + k;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) s[k % 16] = fmaf(a, b, s[k % 16]);
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 16; k++) sum += s[k];
  keep(target, sum);
}

KERNEL(double_rate) {
  const double a = source[0] + 0.5, b = source[1] + 0.25;
  double s[16];
#pragma unroll
  for (int k = 0; k < 16; k++) s[k] = threadIdx.x + k;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) s[k % 16] = fma(a, b, s[k % 16]);
  }
  double sum = 0;
#pragma unroll
  for (int k = 0; k < 16; k++) sum += s[k];
  keep(target, (float)sum);
}

// Minima and maxima alternate, so that none follows from another.
KERNEL(choice_rate) {
  float s[16];
#pragma unroll
  for (int k = 0; k < 16; k++) s[k] = threadIdx.x + k;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    const float a = source[iteration & 1];
#pragma unroll
    for (int k = 0; k < UNROLLED; k += 2) {
      s[k % 16] = fminf(s[(k + 1) % 16], a);
      s[(k + 1) % 16] = fmaxf(s[k % 16], s[(k + 3) % 16]);
    }
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 16; k++) sum += s[k];
  keep(target, sum);
}

KERNEL(shuffle_rate) {
  float s[16];
#pragma unroll
  for (int k = 0; k < 16; k++) s[k] = threadIdx.x + k;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) s[k % 16] = __shfl_up_sync(0xffffffffu, s[k % 16], 1);
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 16; k++) sum += s[k];
  keep(target, sum);
}

KERNEL(shared_rate) {
  __shared__ float array[4096];
  for (int k = threadIdx.x; k < 4096; k += blockDim.x) array[k] = source[k & 1];
  __syncthreads();
  float sum = 0;
  int at = threadIdx.x;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) sum += ((volatile float *)array)[(at + 256 * k) & 4095];
    at += 32;
  }
  keep(target, sum);
}

KERNEL(l1_rate) {
  float sum = 0;
  int at = threadIdx.x;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) sum += __ldca(source + ((at + 32 * k) & 1023));
    at += 32;
  }
  keep(target, sum);
}

KERNEL(fma_chain) {
  const float a = source[0] + 0.5f, b = source[1] + 0.25f;
  float s = threadIdx.x;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) s = fmaf(s, a, b);
  }
  keep(target, s);
}

KERNEL(shuffle_chain) {
  float s = threadIdx.x;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) s = __shfl_up_sync(0xffffffffu, s, 1);
  }
  keep(target, s);
}

// Each element says where the next is: itself.
KERNEL(shared_chain) {
  __shared__ int array[4096];
  for (int k = threadIdx.x; k < 4096; k += blockDim.x) array[k] = k + (int)source[0];
  __syncthreads();
  if (threadIdx.x >= 32) return;
  int at = threadIdx.x;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) at = ((volatile int *)array)[at];
  }
  keep(target, at);
}

// One thread; the next address depends on what was read, which is 0, and goes on by a step that visits lines far apart.
KERNEL(memory_chain) {
  if (threadIdx.x != 0) return;
  const unsigned *words = (const unsigned *)source;
  const unsigned mask = (unsigned)elements - 1;
  unsigned at = 0;
  if (elements <= 65536)
    for (unsigned k = 0; k < elements; k += 32) at += __ldca(words + k);
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) at = (at + 32u * 10007u + __ldca(words + at)) & mask;
  }
  keep(target, __uint_as_float(at));
}

// The same without the load.
KERNEL(index_chain) {
  if (threadIdx.x != 0) return;
  const unsigned mask = (unsigned)elements - 1;
  unsigned at = 0;
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) at = (at + 32u * 10007u + (unsigned)((size_t)(source + at) >> 63)) & mask;
  }
  keep(target, __uint_as_float(at));
}

KERNEL(barrier_chain) {
  float s = source[0];
#pragma unroll 1
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma unroll
    for (int k = 0; k < UNROLLED; k++) __syncthreads();
  }
  keep(target, s);
}

// All blocks together read the whole sixteen times, each time from another place on.
KERNEL(read_rate) {
  const INDEX threads = (INDEX)gridDim.x * blockDim.x;
  const INDEX vectors = elements / 4;
  float sum = 0;
#pragma unroll 1
  for (int pass = 0; pass < 16; pass++) {
    INDEX at = (INDEX)((blockIdx.x + 37 * pass) % gridDim.x) * blockDim.x + threadIdx.x;
#pragma unroll 4
    for (; at < vectors; at += threads) {
      const float4 v = __ldcg((const float4 *)source + at);
      sum += v.x + v.y + v.z + v.w;
    }
  }
  keep(target, sum);
}

KERNEL(nothing) {}
