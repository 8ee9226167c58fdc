"""Matrix product. NumPy brings OpenBLAS with it."""

import numpy

from measure import arguments, library, load, baseline

folder, threads = arguments()
a, b = load(folder, "a"), load(folder, "b")
out = numpy.empty((a.shape[0], b.shape[1]), numpy.float32)
run = lambda: numpy.matmul(a, b, out=out)
baseline(folder, "OpenBLAS", "sgemm", threads, run)

hl = library("halide")
if hl:
    from schedules import matmul

    out = numpy.empty((a.shape[0], b.shape[1]), numpy.float32)
    run = matmul(hl, a, b, out)
    baseline(folder, "Halide", "hand schedule", threads, run, lambda _: out)
