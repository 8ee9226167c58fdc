// ---- Equations that have no value at some point ----

struct site {
    const char *what, *owner;
    int dims;
    // One after the other, each with a zero at its end.
    const char *iterators;
};

// The first fault of a run: the number of its site, then the coordinates of the point, the lower half first.
static void check_faults(const int32_t *faults, const struct site *sites, const struct size *sizes, int n_sizes)
{
    if (faults[0] == 0)
        return;
    const struct site *const site = &sites[faults[0] - 1];
    fprintf(stderr, "error: %s, in %s at (", site->what, site->owner);
    const char *iterator = site->iterators;
    for (int n = 0; n < site->dims; n++) {
        const uint64_t low = (uint32_t)faults[1 + 2 * n], high = (uint32_t)faults[2 + 2 * n];
        fprintf(stderr, "%s%s = %lld", n ? ", " : "", iterator, (long long)(int64_t)(high << 32 | low));
        iterator += strlen(iterator) + 1;
    }
    fputc(')', stderr);
    for (int n = 0; n < n_sizes; n++)
        fprintf(stderr, "%s%s = %lld", n ? ", " : ", with ", sizes[n].name, (long long)sizes[n].value);
    fputc('\n', stderr);
    exit(1);
}
