"""What the scripts of this folder share: a line of JSON, the median of warm runs, names of problems."""

import json
import statistics

WARM, REPEATS = 3, 11


def report(group, problem, baseline, ms=None, skipped=None):
    """One line: a time, or why there is none."""
    line = {"group": group, "problem": problem, "baseline": baseline}
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


def median_of_a_row(make_event, wait, since, work):
    """Milliseconds between two events around a run: the runs follow each other, so that none waits for the host."""
    for _ in range(WARM):
        work()
    wait()
    events = []
    for _ in range(REPEATS + 1):
        begin, end = make_event(), make_event()
        begin.record()
        work()
        end.record()
        events.append((begin, end))
    wait()
    # The first began when the host had asked for it.
    return statistics.median(since(begin, end) for begin, end in events[1:])


def torch_median(torch, work):
    """With PyTorch."""
    return median_of_a_row(
        lambda: torch.cuda.Event(enable_timing=True),
        torch.cuda.synchronize,
        lambda begin, end: begin.elapsed_time(end),
        work,
    )


def cupy_median(cupy, work):
    """With CuPy."""
    return median_of_a_row(
        cupy.cuda.Event,
        cupy.cuda.Device().synchronize,
        cupy.cuda.get_elapsed_time,
        work,
    )
