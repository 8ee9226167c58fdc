// ---- Launches ----

#include <cuda_runtime.h>

#define CHECK(call) check(call, #call)

static void check(cudaError_t error, const char *call)
{
    if (error != cudaSuccess)
        fail("%s: %s", call, cudaGetErrorString(error));
}

// Index arithmetic may go so far.
static const double most_index = sizeof(index_t) == 4 ? 2146435072.0 : 5.7e17;

// The last coordinate of a block along x, all others along y, and on in the next layer along z.
static dim3 grid_of(int64_t columns, int64_t rows, const char *kernel)
{
    const int64_t most_blocks = INT64_C(2147483647), most_rows = 65535;
    if (columns > most_blocks || rows > most_blocks / columns)
        fail("%s: %lld x %lld blocks, of at most %lld", kernel, (long long)columns, (long long)rows,
             (long long)most_blocks);
    const int64_t y = rows < most_rows ? rows : most_rows;
    return dim3((unsigned)columns, (unsigned)y, (unsigned)((rows + y - 1) / y));
}

// What a shared array takes.
[[maybe_unused]] static int64_t shared_part(int64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

// Lets a kernel have this much dynamic shared memory.
[[maybe_unused]] static unsigned shared_of(const void *kernel, int64_t bytes, const char *name)
{
    int device, most;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (bytes > most)
        fail("%s: a block needs %lld bytes of shared memory, of at most %d", name, (long long)bytes, most);
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return (unsigned)bytes;
}

static void choose_device(void)
{
    int64_t device = 0;
    int count;
    CHECK(cudaGetDeviceCount(&count));
    if (device_wanted != NULL && (!read_number(device_wanted, &device) || device < 0 || device >= count))
        fail("device=%s: there are the devices 0 to %d", device_wanted, count - 1);
    CHECK(cudaSetDevice((int)device));
}

static void *device_memory(const struct array *array)
{
    void *memory;
    const int64_t bytes = array_bytes(array);
    CHECK(cudaMalloc(&memory, (size_t)(bytes > 0 ? bytes : 1)));
    return memory;
}

static void upload(void *to, const struct array *from)
{
    CHECK(cudaMemcpy(to, from->data, (size_t)array_bytes(from), cudaMemcpyHostToDevice));
}

static void download(const struct array *to, const void *from)
{
    CHECK(cudaMemcpy(to->data, from, (size_t)array_bytes(to), cudaMemcpyDeviceToHost));
}
