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
