//! Exploring.

use super::codes;

codes! { Mistake:
    ALL_LONG = "E0670", "there is no design to explore",
"`--text M` leaves only designs whose longest kernel has at most M instructions. Every design of the
system has a longer one.

    systola explore gallery/conv1d/core.ure --set C=1_000_000 --set Q=5 --survey 10 --text 1

Give --text a larger number, or leave it out.";

    BUDGET_TOO_SMALL = "E0671", "the budget ended before any candidate was ready",
"The budget of an exploration covers all of it: writing mappings, lowering them, compiling, verifying
and measuring. It ended before the first candidate was proved legal and lowered. `systola run`
without `--map` says the same where it could choose no mapping in time.

    systola explore gallery/conv1d/core.ure --set C=1_000_000 --set Q=5 --budget 1ms

Give a larger one, such as `--budget 30s`, or smaller sizes; or name a mapping with `--map`.";

    UNKNOWN_DESIGN = "E0672", "there is no design of this name",
"`--explain` takes the name of a candidate or of a mapping of the file. Candidates have their names
from the explorer; `--list` shows them.

    systola explore gallery/conv1d/core.ure --set C=1000 --set Q=5 --explain nobody";

    NAME_TAKEN = "E0673", "a mapping of this name is there already",
"`--save` adds a mapping to the file and changes no existing one.

    systola explore gallery/conv1d/core.ure --set C=1000 --set Q=5 --save sbm

Choose another name. Names are letters, digits and `_`, and do not begin with a digit.";

    NOT_SAVED = "E0674", "the mapping could not be written into the file",
"`--save` writes a new file beside the old one, reads it again, and only then lets it take the place
of the old one, so that a file is never left half-written. The message says which of the steps
failed; the file is as it was.

Check the permissions of the folder, and whether another program changed the file meanwhile.";

    TUNING_UNUSABLE = "E0675", "the tuning database cannot be read or written in full",
"The results of explorations are kept in `tuning-1.jsonl` in the cache folder, one line for each.
Where the file cannot be read or written, explorations work, but their results are not kept. A
damaged line, after a power failure or on a full disk, is skipped.

Choose another folder with `SYSTOLA_CACHE`. The file can be removed at any time: the results are
then computed again.";
}
