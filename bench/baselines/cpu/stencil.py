"""Sweeps of a star of radius 1 over a field with a held border, so many of them as the third argument says.

OpenCV and SciPy sweep over the border too, by rules of their own; it is put back after every sweep. In Halide the
border of the fields that are swept between never changes.
"""

import sys

import numpy

from measure import arguments, library, load, baseline

folder, threads = arguments()
steps = int(sys.argv[3])
u, w = load(folder, "u"), load(folder, "w")
# The weights as a box, 0 outside of the star.
box = numpy.zeros((3,) * u.ndim, numpy.float32)
star = [o for o in numpy.ndindex(box.shape) if sum(i != 1 for i in o) <= 1]
for offset, weight in zip(star, w):
    box[offset] = weight


def hold(field):
    for axis in range(u.ndim):
        for side in (0, -1):
            at = (slice(None),) * axis + (side,)
            field[at] = u[at]


def sweeps(sweep, fields):
    """To and fro between two fields."""

    def run():
        now = u
        for n in range(steps):
            sweep(now, fields[n % 2])
            now = fields[n % 2]
        return now

    return run


cv2 = library("cv2") if u.ndim == 2 else None
if cv2:
    cv2.setNumThreads(threads)

    def filter2d(now, after):
        cv2.filter2D(now, cv2.CV_32F, box, dst=after)
        hold(after)

    run = sweeps(filter2d, [numpy.zeros_like(u), numpy.zeros_like(u)])
    baseline(folder, "OpenCV", "filter2D", threads, run)

ndimage = library("scipy.ndimage")
# Without threads of its own, and slow: many sweeps are taken for so many times one.
if ndimage and threads == 1 and steps == 1:
    out = numpy.zeros_like(u)

    def correlate():
        ndimage.correlate(u, box, output=out)
        hold(out)
        return out

    baseline(folder, "SciPy", "ndimage.correlate", 1, correlate)

hl = library("halide")
if hl:
    import schedules

    fields = [u.copy(), u.copy()]
    run = sweeps(schedules.sweep(hl, u, w, fields), fields)
    baseline(folder, "Halide", "sweep by sweep", threads, run)
    if steps > 1:
        run = schedules.sweeps(hl, u, w, fields, steps)
        baseline(folder, "Halide", "sweeps in tiles", threads, run)
