// Wraps the OpenCL library, counts objects, and fails where FAULT says so.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wants(const char *fault)
{
    const char *said = getenv("FAULT");
    return said && strcmp(said, fault) == 0;
}

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static long alive[5];
static const char *const kinds[5] = {"queues", "memory", "events", "programs", "kernels"};

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAULT_COUNTS");
    FILE *file = path ? fopen(path, "w") : NULL;
    for (int n = 0; file && n < 5; n++)
        fprintf(file, "%s %ld\n", kinds[n], alive[n]);
    if (file)
        fclose(file);
}

#define RELEASED(name, kind)                                 \
    int32_t name(void *object)                               \
    {                                                        \
        alive[kind]--;                                       \
        return ((int32_t(*)(void *))real(#name))(object);    \
    }

RELEASED(clReleaseCommandQueue, 0)
RELEASED(clReleaseMemObject, 1)
RELEASED(clReleaseEvent, 2)
RELEASED(clReleaseProgram, 3)
RELEASED(clReleaseKernel, 4)

int32_t clGetPlatformIDs(uint32_t n, void **platforms, uint32_t *count)
{
    if (wants("no platform")) {
        if (count)
            *count = 0;
        return -1001;
    }
    return ((int32_t(*)(uint32_t, void **, uint32_t *))real("clGetPlatformIDs"))(n, platforms, count);
}

int32_t clGetDeviceIDs(void *platform, uint64_t type, uint32_t n, void **devices, uint32_t *count)
{
    if (wants("no device"))
        return -1;
    return ((int32_t(*)(void *, uint64_t, uint32_t, void **, uint32_t *))real("clGetDeviceIDs"))(platform, type, n,
                                                                                              devices, count);
}

int32_t clGetDeviceInfo(void *device, uint32_t which, size_t size, void *value, size_t *needed)
{
    int32_t status = ((int32_t(*)(void *, uint32_t, size_t, void *, size_t *))real("clGetDeviceInfo"))(
        device, which, size, value, needed);
    // Local memory.
    if (which == 0x1023 && value && wants("little local memory"))
        *(uint64_t *)value = 64;
    return status;
}

void *clCreateCommandQueue(void *context, void *device, uint64_t properties, int32_t *status)
{
    void *made = ((void *(*)(void *, void *, uint64_t, int32_t *))real("clCreateCommandQueue"))(context, device,
                                                                                              properties, status);
    alive[0] += made != NULL;
    return made;
}

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int32_t *status)
{
    if (wants("no memory")) {
        *status = -4;
        return NULL;
    }
    void *made = ((void *(*)(void *, uint64_t, size_t, void *, int32_t *))real("clCreateBuffer"))(context, flags, size,
                                                                                                host, status);
    alive[1] += made != NULL;
    return made;
}

int32_t clEnqueueMarkerWithWaitList(void *queue, uint32_t n, void *const *list, void **event)
{
    int32_t status = ((int32_t(*)(void *, uint32_t, void *const *, void **))real("clEnqueueMarkerWithWaitList"))(
        queue, n, list, event);
    alive[2] += status == 0;
    return status;
}

void *clCreateProgramWithSource(void *context, uint32_t n, const char **texts, const size_t *lengths, int32_t *status)
{
    const char *broken = "__kernel void k() { nothing_of_the_kind(); }";
    const size_t length = strlen(broken);
    if (wants("build failure")) {
        texts = &broken;
        lengths = &length;
    }
    // In one block of five, lanes get their own value back. Inside a macro of the same name, the name
    // refers to the function.
    const char *wrong = "#define LAX(a, b) (get_group_id(0) % 5 == 3 ? (a) : (b))\n"
                        "#define sub_group_shuffle(a, n) LAX(a, sub_group_shuffle(a, n))\n"
                        "#define sub_group_shuffle_up(a, n) LAX(a, sub_group_shuffle_up(a, n))\n"
                        "#define sub_group_shuffle_down(a, n) LAX(a, sub_group_shuffle_down(a, n))\n"
                        "#define intel_sub_group_shuffle(a, n) LAX(a, intel_sub_group_shuffle(a, n))\n";
    const char *both[2] = {wrong, texts[0]};
    const size_t both_lengths[2] = {strlen(wrong), lengths && lengths[0] ? lengths[0] : strlen(texts[0])};
    if (wants("wrong shuffles") && n == 1) {
        n = 2;
        texts = both;
        lengths = both_lengths;
    }
    void *made = ((void *(*)(void *, uint32_t, const char **, const size_t *, int32_t *))real(
        "clCreateProgramWithSource"))(context, n, texts, lengths, status);
    alive[3] += made != NULL;
    return made;
}

void *clCreateProgramWithBinary(void *context, uint32_t n, void *const *devices, const size_t *lengths,
                                const unsigned char **binaries, int32_t *each, int32_t *status)
{
    void *made = ((void *(*)(void *, uint32_t, void *const *, const size_t *, const unsigned char **, int32_t *,
                             int32_t *))real("clCreateProgramWithBinary"))(context, n, devices, lengths, binaries, each,
                                                                           status);
    alive[3] += made != NULL;
    return made;
}

void *clCreateKernel(void *program, const char *name, int32_t *status)
{
    void *made =
        ((void *(*)(void *, const char *, int32_t *))real("clCreateKernel"))(program, name, status);
    alive[4] += made != NULL;
    return made;
}

int32_t clEnqueueNDRangeKernel(void *queue, void *kernel, uint32_t dims, const size_t *offset, const size_t *global,
                               const size_t *local, uint32_t n, void *const *list, void **event)
{
    // The device stops answering here.
    if (wants("lost device"))
        return -2;
    return ((int32_t(*)(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,
                        void *const *, void **))real("clEnqueueNDRangeKernel"))(queue, kernel, dims, offset, global,
                                                                               local, n, list, event);
}
