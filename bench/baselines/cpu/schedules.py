"""The problems in Halide, with schedules written by hand for a processor with vectors.

Each function compiles for this machine and returns what is to be timed: it runs on the given arrays and writes `out`.
The number of threads is that of HL_NUM_THREADS. Halide lists the innermost axis first.
"""


def lanes(hl):
    return hl.get_host_target().natural_vector_size(hl.Float(32))


def realiser(hl, function, out):
    function.compile_jit(hl.get_host_target())
    buffer = hl.Buffer(out)
    return lambda: function.realize(buffer)


def conv1d(hl, x, w, out):
    """Twelve vectors of sums in registers; a weight is one scalar for all of them."""
    n = lanes(hl)
    data, weights = hl.Buffer(x), hl.Buffer(w)
    c, block, strip, part = (hl.Var(name) for name in ("c", "block", "strip", "part"))
    q = hl.RDom([(0, len(w))])
    z, total = hl.Func("z"), hl.Func("total")
    total[c] += weights[q] * data[c + q]
    z[c] = total[c]
    z.split(c, strip, part, 12 * n).vectorize(part, n).unroll(part)
    z.split(strip, block, strip, 64, hl.TailStrategy.GuardWithIf).parallel(block)
    total.compute_at(z, strip).vectorize(c, n).unroll(c)
    total.update().reorder(c, q.x).vectorize(c, n).unroll(c)
    return realiser(hl, z, out)


def conv2d(hl, x, w, out):
    """Eight rows of two vectors of sums in registers. The filter is walked down its columns, so that a row of the
    image that is loaded serves all the sums that need it."""
    height, width = w.shape
    n = lanes(hl)
    data, weights = hl.Buffer(x), hl.Buffer(w)
    c, r, strip, rows, block = (hl.Var(name) for name in ("c", "r", "strip", "rows", "block"))
    taps = hl.RDom([(0, width), (0, height)])
    z, total = hl.Func("z"), hl.Func("total")
    total[c, r] += weights[taps.x, taps.y] * data[c + taps.x, r + taps.y]
    z[c, r] = total[c, r]
    z.tile(c, r, strip, block, c, r, 2 * n, 8).vectorize(c, n).unroll(c).unroll(r)
    z.split(block, block, rows, 8).reorder(c, r, strip, rows, block).parallel(block)
    total.compute_at(z, strip).vectorize(c, n).unroll(c).unroll(r)
    total.update().reorder(c, r, taps.y, taps.x).vectorize(c, n).unroll(c).unroll(r).unroll(taps.y)
    return realiser(hl, z, out)


def matmul(hl, a, b, out):
    """Six rows of four vectors of sums in registers, and the columns of b that they need packed close together."""
    n = lanes(hl)
    left, right = hl.Buffer(a), hl.Buffer(b)
    j, i, k = hl.Var("j"), hl.Var("i"), hl.RDom([(0, a.shape[1])])
    c, total, packed = hl.Func("c"), hl.Func("total"), hl.Func("packed")
    packed[j, i] = right[j, i]
    total[j, i] += left[k, i] * packed[j, k]
    c[j, i] = total[j, i]
    jo, io, ji, ii = (hl.Var(name) for name in ("jo", "io", "ji", "ii"))
    c.tile(j, i, jo, io, ji, ii, 4 * n, 6).reorder(ji, ii, io, jo)
    c.vectorize(ji, n).unroll(ji).unroll(ii).parallel(jo)
    packed.compute_at(c, jo).vectorize(j, n).unroll(j)
    total.compute_at(c, io).vectorize(j, n).unroll(j).unroll(i)
    total.update().reorder(j, i, k.x).vectorize(j, n).unroll(j).unroll(i)
    return realiser(hl, c, out)


def star(w, field, at):
    """The weighted sum over the star of radius 1 around a place, weights row by row, the outermost axis first."""
    rank = len(at)
    offsets = [(axis, -1) for axis in reversed(range(rank))] + [None]
    offsets += [(axis, 1) for axis in range(rank)]
    total = None
    for n, offset in enumerate(offsets):
        place = list(at)
        if offset:
            axis, by = offset
            place[axis] = place[axis] + by
        term = w[n] * field[tuple(place)]
        total = term if total is None else total + term
    return total


def sweep(hl, u, w, fields):
    """One sweep from field to field: vectors along a row, and rows or planes on all threads. The border of `fields`
    is never written."""
    n, rank = lanes(hl), u.ndim
    data, weights = hl.ImageParam(hl.Float(32), rank), hl.Buffer(w)
    at = [hl.Var(name) for name in ("x", "y", "z")[:rank]]
    after, block = hl.Func("after"), hl.Var("block")
    # The result begins one cell inside of the border.
    after[tuple(at)] = star(weights, data, [a + 1 for a in at])
    if rank == 2:
        after.split(at[1], block, at[1], 8).unroll(at[1]).split(block, block, hl.Var("rows"), 8)
        after.reorder(at[1], at[0], hl.Var("rows"), block).vectorize(at[0], n).parallel(block)
    else:
        after.split(at[1], hl.Var("rows"), at[1], 4).unroll(at[1])
        after.reorder(at[1], at[0], hl.Var("rows"), at[2]).vectorize(at[0], n).parallel(at[2])
    after.compile_jit(hl.get_host_target())
    inner = (slice(1, -1),) * rank
    sources = {id(f): hl.Buffer(f) for f in [u, *fields]}
    targets = {id(f): hl.Buffer(f[inner]) for f in fields}

    def run(now, then):
        data.set(sources[id(now)])
        after.realize(targets[id(then)])

    return run


def sweeps(hl, u, w, fields, steps):
    """Several sweeps of a tile while it is in the cache: every sweep but the last is computed for the tile and what
    the later ones need around it."""
    n, rank = lanes(hl), u.ndim
    together = 4 if rank == 2 else 2
    data, weights = hl.ImageParam(hl.Float(32), rank), hl.Buffer(w)
    at = [hl.Var(name) for name in ("x", "y", "z")[:rank]]
    extents = list(reversed(u.shape))
    before = hl.BoundaryConditions.repeat_edge(data, [(0, e) for e in extents])

    def fused(count):
        chain, last = [], before
        for k in range(count):
            stage = hl.Func(f"stage{count}_{k}")
            inside = None
            for a, e in zip(at, extents):
                test = (a > 0) & (a < e - 1)
                inside = test if inside is None else inside & test
            stage[tuple(at)] = hl.select(hl.likely(inside), star(weights, last, at), last[tuple(at)])
            chain.append(stage)
            last = stage
        outer = [hl.Var(name) for name in ("xo", "yo", "zo")[:rank]]
        final = chain[-1]
        if rank == 2:
            sides = [min(512, extents[0]), min(64, extents[1])]
            final.tile(at[0], at[1], outer[0], outer[1], at[0], at[1], *sides)
            final.vectorize(at[0], n).parallel(outer[1])
        else:
            final.split(at[2], outer[2], at[2], 16).split(at[1], outer[1], at[1], 16)
            final.reorder(at[0], at[1], at[2], outer[1], outer[2])
            final.vectorize(at[0], n).parallel(outer[2])
        inmost = outer[0] if rank == 2 else outer[1]
        for stage in chain[:-1]:
            stage.compute_at(final, inmost).vectorize(at[0], n)
        final.compile_jit(hl.get_host_target())
        return final

    counts = [together] * (steps // together) + ([steps % together] if steps % together else [])
    kernels = {count: fused(count) for count in set(counts)}
    buffers = {id(f): hl.Buffer(f) for f in [u, *fields]}

    def run():
        now = u
        for i, count in enumerate(counts):
            data.set(buffers[id(now)])
            kernels[count].realize(buffers[id(fields[i % 2])])
            now = fields[i % 2]
        return now

    return run
