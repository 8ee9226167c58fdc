use crate::codes::codes;

codes! { Mistake:
    NOT_CAUSAL = "E0501", "a value would be used before it is made",
"Along every dependence e = sink - source, time must grow: s·e >= 1. It may stand still only between
equations of one point, for values marked `broadcast`, and for sums whose operator may be regrouped.

    // Z(c, q) reads Z(c, q-1), so e = (0, 1)
    mapping m of conv1d { lane = c; time = -q; }   // s·e = -1

The counterexample shows a source and a sink with their times. Give the iterators along which the
dependence points a positive coefficient.";
    CONFLICT = "E0502", "two points share a place and a time",
"A PE does one point at a time. The mapping sends two points of the domain to one slot.

    mapping m of matmul { lane = i; time = j + k; }   // (0, 1, 0) and (0, 0, 1) collide

The counterexample shows two such points. Add a place coordinate, or give the points different
times: `time = (j, k)` runs them one after the other.";
    WRONG_REVERSE = "E0503", "a reverse transform that does not invert the mapping",
"A user's own reverse transform is verified: applied to the slot of any point, it must give that
point. The counterexample is a point for which it does not. Leave it out, and the compiler derives
one.";
    CROSSES_BLOCKS = "E0504", "a value crosses blocks within one launch",
"Blocks of one launch run in any order, so one cannot wait for another. Let the crossing dependence
advance `launch`, recompute the halo with `tile … overlap (lo, hi)`, or allow `flags`.";
    HALO_TOO_NARROW = "E0505", "an overlapped tile whose halo is too narrow",
"A tile with overlap recomputes a halo. Every copy that an owned point depends on within the launch
must find its own sources in the tile.

    tile t by 4 as (l, u); tile x by 64 overlap (1, 1) as (bx, xx);   // after the first, three steps of radius 1 need 3

Enlarge the overlap, or put fewer steps into a launch.";
    OVERWRITTEN = "E0507", "a value that is overwritten before it is read",
"`store` gives values places in memory. A place may be used again only when the value in it has been
read: the write must come after the read, in a later step of the same block or in a later launch.

    store U modulo (2, 0);     // U(t, x) reads U(t - 3, x)

The counterexample shows the value that is overwritten, the one that takes its place, and the point
that reads it too late. Keep more values apart; `store U;` lets the compiler choose a place.";
    TRUST_IS_WRONG = "E0506", "`trust` where a test is needed",
"`trust` says that no PE needs to test whether its point is in the domain. Here a PE outside it
would read or write memory. Use `auto`, which keeps exactly the tests that are needed.";
}
