use crate::codes::codes;

codes! { Mistake:
    NOT_THERE = "E0651", "a value was not there when it was due",
"An array was run in which a link does not deliver: the queue is shorter than the delay, the source
did not compute at that step, or another value is in its place. The compiler builds no such array,
but one that was changed by hand can fail like this.";
    NO_LINK = "E0652", "no link, or more than one, delivers at a point",
"The links of a port have guards that exclude each other and cover all points at which the port is
read. In this array they do not.";
    SLOT_TAKEN = "E0653", "two points in one slot",
"Two points of the domain have the same place and time. `systola check` refuses such a mapping.";
    WRONG_SLOT = "E0654", "a reverse transform that leads to another point",
"The reverse transform of the array, applied to the slot of a point, gives another point.";
    UNORDERED = "E0659", "two accesses to one place in memory that nothing orders",
"A point writes to a place in memory that another point reads or writes, and neither comes first: they
are in one step, or in different blocks of one launch. The compiler builds no such array, but one that
was changed by hand can fail like this.";
    HOLE = "E0655", "a don't-care value reached an output",
"A copy in a halo whose sources are outside its tile has no value. It reached an owned point, so the
halo is too narrow.";
}
