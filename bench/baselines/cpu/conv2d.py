"""2-D convolution: z(r, c) = sum over p, q of x(r + p, c + q) w(p, q).

OpenCV and SciPy return an image of the size of the one they are given; they are given the middle of x, of the size
of z, and the border, which they fill up by rules of their own, is not compared.
"""

import numpy

from measure import arguments, library, load, baseline

folder, threads = arguments()
x, w = load(folder, "x"), load(folder, "w")
height, width = w.shape
rows, columns = x.shape[0] - height + 1, x.shape[1] - width + 1
top, left = height // 2, width // 2
middle = numpy.ascontiguousarray(x[top : top + rows, left : left + columns])


def inner(z):
    return z[top : rows - top, left : columns - left]


cv2 = library("cv2")
if cv2:
    cv2.setNumThreads(threads)
    out = numpy.empty_like(middle)
    run = lambda: cv2.filter2D(middle, cv2.CV_32F, w, dst=out)
    baseline(folder, "OpenCV", "filter2D", threads, run, inner)

ndimage, signal = library("scipy.ndimage"), library("scipy.signal")
# Without threads of its own, and far behind: it is timed once.
if ndimage and threads == 1:
    out = numpy.empty_like(middle)
    if height <= 5:
        run = lambda: ndimage.correlate(middle, w, output=out)
        baseline(folder, "SciPy", "ndimage.correlate", 1, run, inner)
    flipped = numpy.ascontiguousarray(w[::-1, ::-1])
    run = lambda: signal.oaconvolve(x, flipped, mode="valid")
    baseline(folder, "SciPy", "signal.oaconvolve", 1, run)

hl = library("halide")
if hl:
    from schedules import conv2d

    out = numpy.empty((rows, columns), numpy.float32)
    run = conv2d(hl, x, w, out)
    baseline(folder, "Halide", "hand schedule", threads, run, lambda _: out)
