// ---- Launches ----

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define CHECK(call) check(call, #call)

// The type of indices in kernels: -DINDEX=int32_t here says so there too.
#ifdef INDEX
#define INDEX_TEXT_OF(x) #x
#define INDEX_TEXT(x) INDEX_TEXT_OF(x)
#define INDEX_OPTION " -DINDEX=" INDEX_TEXT(INDEX)
#else
#define INDEX int64_t
#define INDEX_OPTION ""
#endif
typedef INDEX index_t;

// Index arithmetic may go so far.
static const double most_index = sizeof(index_t) == 4 ? 2146435072.0 : 5.7e17;

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static void check(cl_int error, const char *call)
{
    if (error != CL_SUCCESS)
        fail("%s: error %d of OpenCL", call, (int)error);
}

// The text of a device's property.
static char *device_text(cl_device_id of, cl_device_info what)
{
    size_t bytes;
    CHECK(clGetDeviceInfo(of, what, 0, NULL, &bytes));
    char *const text = (char *)allocate((int64_t)bytes + 1, "the name of a device");
    CHECK(clGetDeviceInfo(of, what, bytes, text, NULL));
    return text;
}

// The first device; `device=1`, or a part of a name like `device=Intel`, is another one.
static void choose_device(void)
{
    cl_platform_id platforms[16];
    cl_uint n_platforms = 0;
    int64_t wanted = 0, seen = 0;
    const bool by_number = device_wanted == NULL || read_number(device_wanted, &wanted);
    if (clGetPlatformIDs(16, platforms, &n_platforms) != CL_SUCCESS || n_platforms == 0)
        fail("there is no implementation of OpenCL");
    for (cl_uint p = 0; p < n_platforms && p < 16; p++) {
        cl_device_id devices[64];
        cl_uint n_devices = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 64, devices, &n_devices) != CL_SUCCESS)
            continue;
        for (cl_uint n = 0; n < n_devices && n < 64; n++, seen++) {
            char *const name = device_text(devices[n], CL_DEVICE_NAME);
            const bool is_it = by_number ? seen == wanted : strstr(name, device_wanted) != NULL;
            if (device == NULL && is_it) {
                device = devices[n];
                printf("device %lld: %s\n", (long long)seen, name);
            }
            free(name);
        }
    }
    if (device == NULL)
        fail("device=%s: there is no such device among %lld", device_wanted ? device_wanted : "0", (long long)seen);
    cl_int error;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "clCreateCommandQueue");
}

// Ten times the newest OpenCL C of the device. CL_DEVICE_OPENCL_C_VERSION may name an old one since OpenCL 3.0.
static cl_uint newest_language(void)
{
    struct {
        cl_uint version;
        char name[64];
    } all[16];
    const cl_device_info all_versions = 0x1066;
    size_t bytes = 0;
    unsigned major = 1, minor = 0;
    // "OpenCL C 1.2 …"
    char *const text = device_text(device, CL_DEVICE_OPENCL_C_VERSION);
    if (sscanf(text, "OpenCL C %u.%u", &major, &minor) != 2)
        major = 1, minor = 0;
    free(text);
    cl_uint newest = major * 10 + minor;
    if (clGetDeviceInfo(device, all_versions, sizeof all, all, &bytes) == CL_SUCCESS)
        for (size_t n = 0; n < bytes / sizeof all[0]; n++) {
            const cl_uint own = (all[n].version >> 22) * 10 + (all[n].version >> 12 & 1023);
            newest = own > newest ? own : newest;
        }
    return newest;
}

// A device that cannot promise this number of lanes would compute something else.
static inline void need_sub_groups(size_t lanes)
{
    size_t all[16], bytes = 0;
    const cl_device_info sizes_of_sub_groups = 0x4108;
    if (clGetDeviceInfo(device, sizes_of_sub_groups, sizeof all, all, &bytes) == CL_SUCCESS)
        for (size_t n = 0; n < bytes / sizeof all[0]; n++)
            if (all[n] == lanes)
                return;
    fail("this device has no sub-groups of %d lanes; print this program with --no-sub-groups", (int)lanes);
}

static cl_program build(const char *source)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    check(error, "clCreateProgramWithSource");
    char options[128] = "";
    const cl_uint version = newest_language();
    if (version > 10)
        snprintf(options, sizeof options, "-cl-std=CL%u.%u", version / 10, version % 10);
    cl_device_fp_config floats = 0;
    CHECK(clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof floats, &floats, NULL));
    if (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
        strcat(options, " -cl-fp32-correctly-rounded-divide-sqrt");
    strcat(options, INDEX_OPTION);
    if (clBuildProgram(program, 1, &device, options, NULL, NULL) != CL_SUCCESS) {
        size_t bytes = 0;
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
        char *const log = (char *)allocate((int64_t)bytes + 1, "messages of the compiler");
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
        fail("this device does not compile the kernels:\n%s", log);
    }
    return program;
}

static cl_kernel kernel_of(cl_program program, const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    check(error, name);
    return kernel;
}

static inline void argument(cl_kernel kernel, cl_uint n, size_t bytes, const void *value)
{
    CHECK(clSetKernelArg(kernel, n, bytes, value));
}

static inline void index_argument(cl_kernel kernel, cl_uint n, int64_t value)
{
    const index_t index = (index_t)value;
    argument(kernel, n, sizeof index, &index);
}

// What an array in local memory takes.
static inline int64_t shared_part(int64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

// The last coordinate of a block along x, all others along y, and on in the next layer along z.
static void enqueue(cl_kernel kernel, const char *name, int64_t columns, int64_t rows, int64_t threads)
{
    const int64_t most_blocks = INT64_C(2147483647), most_rows = 65535;
    if (columns > most_blocks || rows > most_blocks / columns)
        fail("%s: %lld x %lld blocks, of at most %lld", name, (long long)columns, (long long)rows,
             (long long)most_blocks);
    const int64_t y = rows < most_rows ? rows : most_rows;
    const size_t all[3] = {(size_t)(columns * threads), (size_t)y, (size_t)((rows + y - 1) / y)};
    const size_t block[3] = {(size_t)threads, 1, 1};
    check(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, all, block, 0, NULL, NULL), name);
}

static cl_mem device_memory(const struct array *array)
{
    const int64_t bytes = array_bytes(array);
    cl_int error;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, (size_t)(bytes > 0 ? bytes : 1), NULL, &error);
    check(error, array->name);
    return memory;
}

static void upload(cl_mem to, const struct array *from)
{
    if (from->elements > 0)
        check(clEnqueueWriteBuffer(queue, to, CL_TRUE, 0, (size_t)array_bytes(from), from->data, 0, NULL, NULL),
              from->name);
}

static void download(const struct array *to, cl_mem from)
{
    if (to->elements > 0)
        check(clEnqueueReadBuffer(queue, from, CL_TRUE, 0, (size_t)array_bytes(to), to->data, 0, NULL, NULL),
              to->name);
}
