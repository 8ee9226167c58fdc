"""Sweeps of a star of radius 1 over a field with a held border, by Devito, which has an environment of its own.

Devito sweeps the inside of the grid between two buffers whose borders are those of the field. Its time is that of its
loops alone, as it measures them.
"""

import json
import os
import statistics
import sys

folder, threads, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.environ["DEVITO_LOGGING"] = "ERROR"
os.environ["DEVITO_LANGUAGE"] = "openmp" if threads > 1 else "C"
os.environ["DEVITO_ARCH"] = "gcc"

import devito
import numpy

u = numpy.load(os.path.join(folder, "u.npy"))
w = numpy.load(os.path.join(folder, "w.npy"))
grid = devito.Grid(shape=u.shape, dtype=numpy.float32)
field = devito.TimeFunction(name="u", grid=grid, time_order=1, space_order=2)
weights = [devito.Constant(name=f"w{n}", value=x, dtype=numpy.float32) for n, x in enumerate(w)]
t, dims = grid.stepping_dim, grid.dimensions
# Weights row by row: the neighbours before a cell along each axis, the cell, those behind it.
places = [(d, -1) for d in dims] + [None] + [(d, 1) for d in reversed(dims)]
total = sum(
    weight * (field.subs({p[0]: p[0] + p[1] * p[0].spacing}) if p else field)
    for weight, p in zip(weights, places)
)
operator = devito.Operator(devito.Eq(field.forward, total, subdomain=grid.interior))


def run(autotune=False):
    for n in range(2):
        field.data[n] = u
    summary = operator.apply(time_m=0, time_M=steps - 1, autotune=autotune)
    return sum(entry.time for entry in summary.values())


# The first run also looks for the best blocks.
slow = run(autotune="basic") > 1.0
run()
samples = [run() for _ in range(3 if slow else 9)]
numpy.save(os.path.join(folder, "devito.npy"), numpy.ascontiguousarray(field.data[steps % 2]))
line = {
    "baseline": "Devito",
    "how": devito.__version__,
    "seconds": statistics.median(samples),
    "threads": threads,
    "result": "devito.npy",
}
print(json.dumps(line), flush=True)
