"""Compares results of the crate with those of isl: one line of fields in, one line of words out.

The fields of a line are a set, our two projections, its parameters, its form with floors, its
lexicographic minimum, another set, and the difference of the two, separated by tabs. A field that
is empty is not compared.
"""

import sys

import islpy as isl

# Comparisons that take isl longer than this are given up.
OPERATIONS = 300_000

DIMS = isl.dim_type.set


def compare(ctx, ours, theirs):
    ours = isl.Set(ours, context=ctx)
    ctx.reset_operations()
    ctx.set_max_operations(OPERATIONS)
    try:
        return "same" if ours.is_equal(theirs) else "differs"
    except isl.Error:
        return "gave-up"
    finally:
        ctx.set_max_operations(0)


def minimum(ctx, ours, theirs):
    """isl 0.27 loses part of the parametric minimum of very few sets (see
    `a_minimum_that_isl_loses` in brute.rs). At numeric parameters, where it does not use its
    parametric algorithm, it then agrees with us, and not with itself."""
    word = compare(ctx, ours, theirs.lexmin())
    if word != "differs":
        return word
    ours = isl.Set(ours, context=ctx)
    for p0 in range(-15, 16):
        for p1 in range(-15, 16):
            at = isl.Set(f"[p0, p1] -> {{ [x0, x1] : p0 = {p0} and p1 = {p1} }}", context=ctx)
            here = theirs.intersect(at).lexmin()
            if not ours.intersect(at).is_equal(here):
                return "differs"
    return "isl-differs"


def answer(ctx, line):
    text, first, second, params, floors, lexmin, other, difference = line.split("\t")
    theirs = isl.Set(text, context=ctx)
    words = [
        "empty" if theirs.is_empty() else "inhabited",
        compare(ctx, first, theirs.project_out(DIMS, 1, 1)),
        compare(ctx, second, theirs.project_out(DIMS, 0, 1)),
        compare(ctx, params, theirs.project_out(DIMS, 0, 2)),
        compare(ctx, floors, theirs),
        minimum(ctx, lexmin, theirs) if lexmin else "-",
    ]
    before = isl.Set(other, context=ctx) if other else None
    words.append("-" if before is None else "equal" if theirs.is_equal(before) else "unequal")
    words.append(compare(ctx, difference, theirs.subtract(before)) if difference else "-")
    return " ".join(words)


def main():
    ctx = isl.Context()
    for line in sys.stdin:
        print(answer(ctx, line.rstrip("\n")), flush=True)


main()
