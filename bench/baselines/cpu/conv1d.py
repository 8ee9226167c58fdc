"""1-D convolution: z(c) = sum over q of x(c + q) w(q).

OpenCV is given a picture of one row, the middle of x; its border is not compared.
"""

import numpy

from measure import arguments, library, load, baseline

folder, threads = arguments()
x, w = load(folder, "x"), load(folder, "w").ravel()
taps = len(w)
length = len(x) - taps + 1
left = taps // 2
middle = numpy.ascontiguousarray(x[left : left + length])


def inner(z):
    return numpy.ravel(z)[left : length - left]


cv2 = library("cv2")
if cv2:
    cv2.setNumThreads(threads)
    picture, kernel = middle.reshape(1, -1), w.reshape(1, -1)
    out = numpy.empty_like(picture)
    # The anchor is what makes an even number of taps begin where z does.
    run = lambda: cv2.filter2D(picture, cv2.CV_32F, kernel, dst=out, anchor=(left, 0))
    baseline(folder, "OpenCV", "filter2D", threads, run, inner)

ndimage, signal = library("scipy.ndimage"), library("scipy.signal")
# Without threads of its own.
if ndimage and threads == 1:
    out = numpy.empty_like(middle)
    run = lambda: ndimage.correlate1d(middle, w, output=out)
    baseline(folder, "SciPy", "ndimage.correlate1d", 1, run, inner)
    flipped = numpy.ascontiguousarray(w[::-1])
    run = lambda: signal.oaconvolve(x, flipped, mode="valid")
    baseline(folder, "SciPy", "signal.oaconvolve", 1, run)

hl = library("halide")
if hl:
    from schedules import conv1d

    out = numpy.empty(length, numpy.float32)
    run = conv1d(hl, x, w, out)
    baseline(folder, "Halide", "hand schedule", threads, run, lambda _: out)
