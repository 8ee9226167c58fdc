"""Edit distance of each pair of strings."""

import numpy

from measure import arguments, library, load, baseline

folder, threads = arguments()
a = [bytes(row).decode("latin-1") for row in load(folder, "a")]
b = [bytes(row).decode("latin-1") for row in load(folder, "b")]
process, levenshtein = library("rapidfuzz.process"), library("rapidfuzz.distance.Levenshtein")
if process:
    if len(a) == 1:
        run = lambda: levenshtein.distance(a[0], b[0])
        how = "Levenshtein.distance"
    else:
        run = lambda: process.cpdist(
            a, b, scorer=levenshtein.distance, dtype=numpy.int32, workers=threads
        )
        how = "process.cpdist"
    baseline(folder, "rapidfuzz", how, threads, run, lambda d: numpy.atleast_1d(numpy.int32(d)))
