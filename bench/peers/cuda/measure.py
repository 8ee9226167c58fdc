"""What the scripts of this folder share: a line of JSON, the median of warm runs, names of problems."""

import json
import statistics

WARM, REPEATS = 3, 11


def report(group, problem, peer, ms=None, skipped=None):
    """One line: a time, or why there is none."""
    line = {"group": group, "problem": problem, "peer": peer}
    if ms is not None:
        line["ms"] = ms
    if skipped is not None:
        line["skipped"] = " ".join(str(skipped).split())[:200]
    print(json.dumps(line, ensure_ascii=False), flush=True)


def filters(arguments):
    """`3x3` and `5x17` as pairs."""
    return [tuple(int(n) for n in argument.split("x")) for argument in arguments]


SQUARES = ["%dx%d" % (k, k) for k in range(2, 21)] + ["1x9", "9x1", "5x17"]


def image_name(n, h, q):
    return f"{n}², {h} × {q}"


def torch_median(torch, work):
    """Milliseconds between two events, after runs that do not count."""
    for _ in range(WARM):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def cupy_median(cupy, work):
    """The same with CuPy."""
    for _ in range(WARM):
        work()
    cupy.cuda.Device().synchronize()
    times = []
    for _ in range(REPEATS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))
    return statistics.median(times)
