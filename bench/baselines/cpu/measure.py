"""What the scripts of this folder share: how long something takes, and how it is told.

Each script is started as `SCRIPT DIR THREADS` with the environment that holds every library to THREADS threads. It
reads its inputs from DIR, times its baselines, writes what they computed beside the inputs, and prints one line of
JSON for each. A library that is not installed is left out.
"""

import importlib
import json
import os
import statistics
import sys
import time

import numpy


def arguments():
    return sys.argv[1], int(sys.argv[2])


def load(folder, name):
    return numpy.load(os.path.join(folder, name + ".npy"))


def library(name):
    """The module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def median_seconds(run):
    """The median, by the rule of measure.h; and what the last run returned."""
    budget = float(os.environ.get("BENCH_SECONDS", "0.5"))
    start = time.perf_counter()
    run()
    slow = time.perf_counter() - start > 1.0
    if not slow:
        run()
    samples = []
    start = time.perf_counter()
    while len(samples) < (3 if slow else 5) or (
        len(samples) < 51 and time.perf_counter() - start < budget
    ):
        begin = time.perf_counter()
        result = run()
        samples.append(time.perf_counter() - begin)
    return statistics.median(samples), result


def baseline(folder, name, how, threads, run, finish=lambda result: result):
    """Times `run`; `finish` makes of what it returned what is compared, and is not timed."""
    seconds, result = median_seconds(run)
    file = (name + " " + how).replace(" ", "_").replace("/", "_").replace(".", "_") + ".npy"
    numpy.save(os.path.join(folder, file), numpy.ascontiguousarray(finish(result)))
    line = {"baseline": name, "how": how, "seconds": seconds, "threads": threads, "result": file}
    print(json.dumps(line), flush=True)
