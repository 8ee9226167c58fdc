// ---- Sizes, arrays, files ----

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are read and written as they lie in memory, which has to be little-endian"
#endif

struct size {
    const char *name;
    int64_t value;
    // Is there a value? Can it be another one?
    bool given, fixed;
};

enum role { ROLE_INPUT, ROLE_TABLE, ROLE_OUTPUT, ROLE_TEMPORARY, ROLE_FLAGS };
enum type {
    TYPE_BOOL,
    TYPE_I8,
    TYPE_I16,
    TYPE_I32,
    TYPE_I64,
    TYPE_U8,
    TYPE_U16,
    TYPE_U32,
    TYPE_U64,
    TYPE_F32,
    TYPE_F64
};

struct array {
    const char *name;
    enum type type;
    enum role role;
    // What a table holds; what every element of an output is before the first launch, if that is stated.
    const void *contents;
    int64_t elements;
    // Of the host. A temporary of another device is there only.
    void *data;
    // The file that it is read from or written to.
    const char *file;
};

static void fail(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    fflush(stdout);
    fputs("error: ", stderr);
    vfprintf(stderr, format, words);
    fputc('\n', stderr);
    va_end(words);
    exit(1);
}

static int64_t type_bytes(enum type type)
{
    switch (type) {
    case TYPE_BOOL:
    case TYPE_I8:
    case TYPE_U8:
        return 1;
    case TYPE_I16:
    case TYPE_U16:
        return 2;
    case TYPE_I32:
    case TYPE_U32:
    case TYPE_F32:
        return 4;
    default:
        return 8;
    }
}

static int64_t array_bytes(const struct array *array)
{
    return array->elements * type_bytes(array->type);
}

// The number of indices from lo on and before hi.
static inline int64_t extent(int64_t lo, int64_t hi)
{
    return hi > lo ? hi - lo : 0;
}

static inline double magnitude(int64_t size)
{
    const double as_real = fabs((double)size);
    return as_real < 1 ? 1 : as_real;
}

// Memory at a multiple of 64 bytes, all of it zero.
static void *allocate(int64_t bytes, const char *name)
{
    const size_t whole = ((size_t)bytes + 64) / 64 * 64;
    void *const memory = aligned_alloc(64, whole);
    if (memory == NULL)
        fail("no memory for %s: %lld bytes", name, (long long)bytes);
    memset(memory, 0, whole);
    return memory;
}

static void read_array(const struct array *array)
{
    FILE *const file = fopen(array->file, "rb");
    if (file == NULL)
        fail("%s: cannot read %s: %s", array->name, array->file, strerror(errno));
    const size_t bytes = (size_t)array_bytes(array);
    const size_t got = fread(array->data, 1, bytes, file);
    const bool more = fgetc(file) != EOF;
    if (got != bytes || more)
        fail("%s: %s has %s than the %lld bytes of %lld elements", array->name, array->file,
             more ? "more" : "fewer", (long long)bytes, (long long)array->elements);
    fclose(file);
    if (array->type == TYPE_BOOL)
        for (size_t n = 0; n < bytes; n++)
            ((uint8_t *)array->data)[n] = ((uint8_t *)array->data)[n] != 0;
}

static void write_array(const struct array *array)
{
    FILE *const file = fopen(array->file, "wb");
    if (file == NULL)
        fail("%s: cannot write %s: %s", array->name, array->file, strerror(errno));
    const size_t bytes = (size_t)array_bytes(array);
    const bool written = fwrite(array->data, 1, bytes, file) == bytes;
    if (fclose(file) != 0 || !written)
        fail("%s: cannot write %s: %s", array->name, array->file, strerror(errno));
}

// Sets an element to a number.
static void put(const struct array *array, int64_t at, int64_t integer, double real)
{
    void *const data = array->data;
    switch (array->type) {
    case TYPE_BOOL:
        ((uint8_t *)data)[at] = (uint8_t)(integer & 1);
        break;
    case TYPE_I8:
    case TYPE_U8:
        ((uint8_t *)data)[at] = (uint8_t)integer;
        break;
    case TYPE_I16:
    case TYPE_U16:
        ((uint16_t *)data)[at] = (uint16_t)integer;
        break;
    case TYPE_I32:
    case TYPE_U32:
        ((uint32_t *)data)[at] = (uint32_t)integer;
        break;
    case TYPE_I64:
    case TYPE_U64:
        ((uint64_t *)data)[at] = (uint64_t)integer;
        break;
    case TYPE_F32:
        ((float *)data)[at] = (float)real;
        break;
    case TYPE_F64:
        ((double *)data)[at] = real;
        break;
    }
}

// The same values in every run: reals from -1 to 1, integers from 1 to 3.
static void random_array(const struct array *array, uint64_t seed)
{
    for (int64_t n = 0; n < array->elements; n++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t bits = seed ^ seed >> 33;
        bits = (bits * UINT64_C(0xff51afd7ed558ccd)) >> 32;
        put(array, n, (int64_t)(1 + bits % 3), (double)bits / 2147483648.0 - 1.0);
    }
}

// What an array holds before the first launch.
static void set_initial(const struct array *array)
{
    const size_t bytes = (size_t)type_bytes(array->type);
    if (array->contents == NULL)
        memset(array->data, 0, (size_t)array_bytes(array));
    else if (array->role == ROLE_TABLE)
        memcpy(array->data, array->contents, (size_t)array_bytes(array));
    else
        for (int64_t n = 0; n < array->elements; n++)
            memcpy((char *)array->data + (size_t)n * bytes, array->contents, bytes);
}

// Integers add up without an end: what does not fit into 64 bits is left away.
static void print_checksum(const struct array *array)
{
    const void *const data = array->data;
    uint64_t integer = 0;
    double real = 0;
    for (int64_t n = 0; n < array->elements; n++)
        switch (array->type) {
        case TYPE_BOOL:
        case TYPE_U8:
            integer += ((const uint8_t *)data)[n];
            break;
        case TYPE_I8:
            integer += (uint64_t)((const int8_t *)data)[n];
            break;
        case TYPE_I16:
            integer += (uint64_t)((const int16_t *)data)[n];
            break;
        case TYPE_U16:
            integer += ((const uint16_t *)data)[n];
            break;
        case TYPE_I32:
            integer += (uint64_t)((const int32_t *)data)[n];
            break;
        case TYPE_U32:
            integer += ((const uint32_t *)data)[n];
            break;
        case TYPE_I64:
        case TYPE_U64:
            integer += ((const uint64_t *)data)[n];
            break;
        case TYPE_F32:
            real += ((const float *)data)[n];
            break;
        case TYPE_F64:
            real += ((const double *)data)[n];
            break;
        }
    if (array->type == TYPE_F32 || array->type == TYPE_F64)
        printf("%s: %lld elements, sum %.9g\n", array->name, (long long)array->elements, real);
    else if (array->type == TYPE_U64)
        printf("%s: %lld elements, sum %llu\n", array->name, (long long)array->elements, (unsigned long long)integer);
    else
        printf("%s: %lld elements, sum %lld\n", array->name, (long long)array->elements, (long long)integer);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static bool read_number(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    const long long read = strtoll(text, &end, 10);
    *number = read;
    return errno == 0 && end != text && *end == '\0';
}

// How often it is run, and on which device.
static int64_t times = 5;
static const char *device_wanted = NULL;

// Words like `N=100`, `x=x.bin`, `times=20`.
static void read_words(int count, char **words, struct size *sizes, int n_sizes, struct array *arrays, int n_arrays,
                       const char *usage)
{
    for (int w = 1; w < count; w++) {
        const char *const value = strchr(words[w], '=');
        const size_t length = value == NULL ? 0 : (size_t)(value - words[w]);
        bool known = false;
        if (length == 0)
            fail("`%s` is no name=value\n%s", words[w], usage);
        for (int n = 0; n < n_sizes; n++)
            if (!known && strlen(sizes[n].name) == length && strncmp(words[w], sizes[n].name, length) == 0) {
                int64_t number;
                known = true;
                if (!read_number(value + 1, &number))
                    fail("%s: a whole number of 64 bits is needed", words[w]);
                if (sizes[n].fixed && number != sizes[n].value)
                    fail("%s: this code is for %s = %lld only", words[w], sizes[n].name, (long long)sizes[n].value);
                sizes[n].value = number;
                sizes[n].given = true;
            }
        for (int n = 0; n < n_arrays; n++) {
            const bool named = arrays[n].role == ROLE_INPUT || arrays[n].role == ROLE_OUTPUT;
            if (!known && named && strlen(arrays[n].name) == length &&
                strncmp(words[w], arrays[n].name, length) == 0) {
                known = true;
                arrays[n].file = value + 1;
            }
        }
        if (!known && length == 5 && strncmp(words[w], "times", 5) == 0) {
            known = true;
            if (!read_number(value + 1, &times) || times < 1 || times > 1000000)
                fail("%s: a number from 1 to 1000000 is needed", words[w]);
        }
        if (!known && length == 6 && strncmp(words[w], "device", 6) == 0) {
            known = true;
            device_wanted = value + 1;
        }
        if (!known)
            fail("`%s`: there is no such name\n%s", words[w], usage);
    }
    for (int n = 0; n < n_sizes; n++)
        if (!sizes[n].given)
            fail("%s is not given\n%s", sizes[n].name, usage);
    // Before anything is computed: can the results be written? This creates files and leaves their contents.
    for (int n = 0; n < n_arrays; n++)
        if (arrays[n].role == ROLE_OUTPUT && arrays[n].file != NULL) {
            FILE *const file = fopen(arrays[n].file, "ab");
            if (file == NULL)
                fail("%s: cannot write %s: %s", arrays[n].name, arrays[n].file, strerror(errno));
            fclose(file);
        }
}

// Memory of the host for all arrays that it holds, with what they hold before the first launch.
static void make_arrays(struct array *arrays, int n_arrays, bool temporaries)
{
    for (int n = 0; n < n_arrays; n++) {
        struct array *const array = &arrays[n];
        if (array->role == ROLE_TEMPORARY && !temporaries)
            continue;
        array->data = allocate(array_bytes(array), array->name);
        if (array->role != ROLE_INPUT)
            set_initial(array);
        else if (array->file != NULL)
            read_array(array);
        else
            random_array(array, (uint64_t)n + 1);
    }
}

// What a run took, and what it made.
static void report(double *seconds, struct array *arrays, int n_arrays)
{
    printf("%.3f ms, the median of %lld runs\n", median(seconds, times) * 1e3, (long long)times);
    for (int n = 0; n < n_arrays; n++)
        if (arrays[n].role == ROLE_OUTPUT) {
            print_checksum(&arrays[n]);
            if (arrays[n].file != NULL)
                write_array(&arrays[n]);
        }
}
