// What a GPU does in a second, one kernel for each kind of work. Blocks of 256 threads; TURNS and the unrolled 16 are those of cuda.rs.
//
// What a thread computes is stored where that could happen, which the compiler does not know.

typedef int int32_t;
typedef long long int64_t;

#define TURNS 512
#define KERNEL(name) extern "C" __global__ void name(const float *source, float *target, INDEX elements)

__device__ void keep(float *target, float value) {
  if (value == 12345.678f) target[threadIdx.x] = value;
}

// Sixteen sums that do not wait for each other.
KERNEL(fma_rate) {
  const float a = source[0] + 0.5f, b = source[1] + 0.25f;
  float s[16];
#pragma unroll
  for (int k = 0; k < 16; k++) s[k] = threadIdx.x + k;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) s[k] = fmaf(a, b, s[k]);
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
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) s[k] = fma(s[k], a, b);
  }
  double sum = 0;
#pragma unroll
  for (int k = 0; k < 16; k++) sum += s[k];
  keep(target, (float)sum);
}

// Minima and maxima in turns, so that none follows from another.
KERNEL(choice_rate) {
  float s[16];
#pragma unroll
  for (int k = 0; k < 16; k++) s[k] = threadIdx.x + k;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
    const float a = source[turn & 1];
#pragma unroll
    for (int k = 0; k < 16; k += 2) {
      s[k] = fminf(s[k + 1], a);
      s[k + 1] = fmaxf(s[k], s[k + 1]);
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
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) s[k] = __shfl_up_sync(0xffffffffu, s[k], 1);
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
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) sum += ((volatile float *)array)[(at + 256 * k) & 4095];
    at += 32;
  }
  keep(target, sum);
}

KERNEL(l1_rate) {
  float sum = 0;
  int at = threadIdx.x;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) sum += __ldca(source + ((at + 32 * k) & 1023));
    at += 32;
  }
  keep(target, sum);
}

KERNEL(fma_chain) {
  const float a = source[0] + 0.5f, b = source[1] + 0.25f;
  float s = threadIdx.x;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) s = fmaf(s, a, b);
  }
  keep(target, s);
}

KERNEL(shuffle_chain) {
  float s = threadIdx.x;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) s = __shfl_up_sync(0xffffffffu, s, 1);
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
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) at = ((volatile int *)array)[at];
  }
  keep(target, at);
}

// One thread; the next address depends on what was read, which is 0, and goes on by a step that visits lines far apart.
KERNEL(memory_chain) {
  if (threadIdx.x != 0) return;
  const unsigned mask = (unsigned)elements - 1;
  unsigned at = 0;
  if (elements <= 65536)
    for (unsigned k = 0; k < elements; k += 32) at += (unsigned)source[k];
  float sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) {
      const float value = __ldca(source + at);
      sum += value;
      at = (at + 32u * 10007u + (unsigned)value) & mask;
    }
  }
  keep(target, sum);
}

// The same without the load.
KERNEL(index_chain) {
  if (threadIdx.x != 0) return;
  const unsigned mask = (unsigned)elements - 1;
  const float *base = source;
  unsigned long long at = 0;
  float sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) {
      const float value = __int_as_float((int)(size_t)(base + at) & 1);
      sum += value;
      at = ((unsigned)at + 32u * 10007u + (unsigned)value) & mask;
    }
  }
  keep(target, sum);
}

KERNEL(barrier_chain) {
  float s = source[0];
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
#pragma unroll
    for (int k = 0; k < 16; k++) __syncthreads();
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
