use crate::codes::codes;

codes! { Mistake:
    UNKNOWN_PARAM = "E0601", "a value was given for a parameter that does not exist",
"A size was given under a name that the system or program does not declare.

    system conv1d(C, Q) { … }        with   -p C=8 -p K=3

Give a value to each of the declared parameters, here `C` and `Q`, and to nothing else.";

    MISSING_PARAM = "E0602", "a parameter has no value",
"Running needs a concrete number for every parameter.

    system conv1d(C, Q) { … }        with   -p C=8

Add the missing one: `-p C=8 -p Q=3`.";

    CONTEXT_VIOLATED = "E0603", "the parameters do not satisfy the system's `where`",
"A system says which sizes it is meant for, and these are not among them.

    system conv1d(C, Q) where C >= 1, Q >= 1 { … }        with   C=8, Q=0

Choose other sizes, or relax the condition if the equations allow it.";

    MISSING_INPUT = "E0604", "an input array was not given",
"Every `input`, and every `table` without contents, must be given at a run.

    input x[N]: f32;        and no array for `x`

Give an array, or write the contents of a small table in the program.";

    UNKNOWN_INPUT = "E0605", "an array was given that is no input",
"The name of the array is not that of an `input` or a `table` without contents.

    input x[N]: f32;        with an array for `y`

Correct the name, or leave the array out.";

    WRONG_SHAPE = "E0606", "an input array has the wrong shape",
"The shape must be that of the declaration at the given parameters; where an axis starts does not
matter, so an axis `-1..N+1` is given by N+2 elements.

    input x[C + Q - 1]: f32;        with C=8, Q=3 and an array of 8 elements: 10 are needed

Give an array of the stated shape, or change the parameters.";

    WRONG_TYPE = "E0607", "an input array has the wrong element type",
"Element types never convert by themselves.

    input x[N]: f32;        with an array of f64

Convert the array, or change the declaration.";

    TOO_LARGE = "E0608", "the sizes are too large to run",
"At these parameters an index leaves 64 bits, an array has more elements than memory can address, the
values that the interpreter stores need more memory than the limit, which the message states, or the
sums have more terms than it adds up.

    index i in 0..N, j in 0..N;        with   N=10000000

Before a compiled kernel is launched, every index, guard, loop bound and distance in it is bounded
from the sizes; the message names the one that does not fit, and the value it can reach.

Use smaller parameters, or smaller numbers in index expressions. The interpreter stores every value
it computes; a compiled kernel does not.";

    UNBOUNDED = "E0609", "a domain has infinitely many points",
"Every iterator needs a lower and an upper bound, from its range or from the conditions of the
domain.

    index i, j where 0 <= i, i <= N, j <= i;        nothing bounds `j` from below

Add the missing bound: `0 <= j`.";

    UNDEFINED_READ = "E0610", "an undefined value was read",
"A `select` with two arguments leaves its variable without a value where the condition does not hold,
and an equation or an output read it there.

    var X: f32 = select(i > 0, x[i]);
    var Y: f32 = X;                        at i = 0

Give the `select` a third argument, or guard the read by the same condition.";

    OUTSIDE_DOMAIN = "E0611", "a variable was read outside its domain",
"A variable has values at the points of the index space (and of its `on`) and nowhere else.

    index i in 0..N;
    var S: f32 = S(i-1) + x[i];            at i = 0 this reads S(-1)

Guard the read: `select(i == 0, 0, S(i-1)) + x[i]`.";

    CYCLE = "E0612", "a value depends on itself",
"Following the references from a point leads back to the same variable at the same point, so there is
no value that the equations give it.

    var X: f32 = select(i == 0, Y, X(i-1));
    var Y: f32 = select(i == 0, X, Y(i-1));

The message lists the points of the cycle; one of its references has to go elsewhere.";

    DIVISION_BY_ZERO = "E0613", "an integer was divided by zero",
"`/` and `%` on integers have no value for a zero divisor (on floats they give an infinity or NaN).
Both branches of a `select` by a computed value are evaluated, so it does not protect a division.

    var Q: i32 = select(d[i] != 0, n[i] / d[i], 0);

Divide by something that is never zero: `n[i] / select(d[i] != 0, d[i], 1)`.";

    NEGATIVE_EXPONENT = "E0614", "an integer was raised to a negative power",
"`pow` on integers multiplies, wrapping, and takes non-negative exponents.

    var P: i32 = pow(a[i], i32(i) - 5);

Use floats, or keep the exponent at least zero with `max(…, 0)`.";

    INPUT_OUT_OF_RANGE = "E0615", "an input was read outside its axes",
"The index, affine or computed, is not an element of the array.

    input x[N]: f32;
    index i in 0..N;
    var D: f32 = x[i+1] - x[i];            at i = N-1 this reads x[N]

Guard the read, or give the elements outside a value: `input x[N]: f32 else 0;`.";

    OUTPUT_OUT_OF_RANGE = "E0616", "an output was written outside its axes",
"A write sends a point to an element that the output does not have.

    output y[N]: f32 = Y at [i+1];         at i = N-1 this writes y[N]

Restrict the write with `when`, or enlarge the output.";

    UNCOVERED_OUTPUT = "E0617", "an element of an output is never written",
"Every element needs a write, or the output needs a fill value.

    output y[N]: f32 = Y at [i] when i > 0;        nothing writes y[0]

Add a write for it, or a fill: `… when i > 0 else 0`.";

    DOUBLE_WRITE = "E0618", "an element of an output is written twice",
"Two points, or two writes of one output, send a value to the same element.

    index i in 0..N, k in 0..K;
    output y[N]: f32 = Y at [i];                   written once for every k

Choose one: `Y at [i] when k == K-1`.";

    EMPTY_REDUCE = "E0619", "a reduction over nothing has no value",
"The iterators of this `reduce` have no point here, and a user's function has no neutral element to
stand for an empty sum.

    reduce(argmin, k in 0..i, (d[k], k))           at i = 0

Guard the empty case with `select`.";

    ILL_TYPED = "E0620", "an operator was applied to values it is not defined on",
"Operators never convert: both operands of `+` have one type, `sqrt` takes a float, `&&` takes
bools. The text front end refuses such a program before it runs; this one was built by hand.

Insert a cast, `f32(e)`.";

    MALFORMED_NPY = "E0621", "this is not a .npy file that can be read",
"Arrays are read from NumPy's `.npy` format, versions 1 to 3, with plain element types: bool,
integers of 8 to 64 bits, floats of 16 to 64 bits, and bf16 stored as `V2`.

Write the file with `numpy.save(path, array)`; convert structured or object arrays to a plain type
first.";

    NOT_A_VALUE = "E0622", "an expression cannot be evaluated here",
"The expression refers to something that does not exist: a variable, input or function that the
system does not declare, a function that calls itself, or a port outside an array. The text front
end refuses such a program before it runs; this one was built by hand.";

    UNKNOWN_FORMAT = "E0623", "the ending of a file names no format",
"The ending of a file says how it is read or written: `.npy`, `.png`, `.pgm`, `.ppm`, `.pnm`, `.raw`, `.bin`, `.txt`, `.csv`, and for
results `.gif`. A file without an ending is NumPy's format.

    systola run gallery/conv1d/core.ure --out z=z.dat

Use a known ending, or write the format before the name: `--out z=raw:z.dat`.";

    MALFORMED_PICTURE = "E0624", "this is not a picture that can be read",
"Pictures are read from PNG (8 and 16 bits, grey or colours, with or without alpha, palettes, 1, 2 and 4 bits) and from PGM and PPM
(P2, P3, P5, P6). The message says what is wrong: the file is another format, it is damaged or cut off, or its header promises more
pixels than the file can hold.

    systola run gallery/vision/sobel.ure --in x=photo.png        where photo.png is a JPEG with a wrong name

Convert it with any program for pictures.";

    MALFORMED_NUMBERS = "E0625", "a text cannot be read as an array",
"A `.csv` file, and a `.txt` file for any input but one of u8 with one axis, holds numbers of the element type of the input, separated by
blanks, commas or semicolons; `#` starts a comment. For an input of two axes every line is a row, and all rows have one length.

    1.0, 2.0, 3.0
    4.0, five, 6.0        for an input x[N, M]: f32

The message names the line. Delete headings, and complete short rows. `--in x=text:FILE` reads the characters of a text instead.";

    WRONG_LENGTH = "E0626", "a file of elements has the wrong length",
"A `.raw` or `.bin` file holds the elements of an array one after the other, little endian, without a header. Its shape follows from the
sizes; one size that is not given follows from the length of the file.

    --in x=x.raw --set N=10        for x[N]: f32 and a file of 36 bytes: 9 elements, not 10

Give the sizes of the file with `--set`, or store the array as `.npy`, which has its shape with it.";

    NO_PICTURE = "E0627", "an array and a file do not fit each other",
"A picture is an array of two axes (rows and columns) or of three (rows, columns, and 1 to 4 channels), with at least one pixel. A `.pgm`
has no colours, neither format has an alpha channel, and the samples must be numbers of the element type.

    --in x=photo.png        for an input x[N] of one axis

Write another format, such as `.npy`, or declare the array with two or three axes.";

    NO_FRAMES = "E0628", "a run cannot be divided into frames",
"`--frames` runs a system several times. Each run takes a part of the steps, and its outputs are the inputs of the next one. So the
system needs a parameter that is the number of steps: an iterator runs from 0 to it, and no array has it in its shape. It needs outputs with the
names of inputs, plain or with a prime, of the same shape and type; stencils with `steps` have both. The number of
steps must be a multiple of the number of frames.

    systola run stencils/heat.ure --set T=100 --frames 30 --out u=heat.gif        100 is not a multiple of 30

The message says which of these is missing.";

    NO_COMPILER = "E0630", "there is no C compiler",
"Kernels for the CPU are printed as C and compiled by the C compiler of the system: the one that
`SYSTOLA_CC` names, else the one of `CC`, else `cc`, `gcc` or `clang`. None of them was found.

    SYSTOLA_CC=/no/such/cc systola run gallery/conv1d/core.ure --map sbm --target cpu

Install gcc or clang, or say where it is: `SYSTOLA_CC=/opt/llvm/bin/clang`. Until then,
`--target kernel` lets the interpreter run the same kernel, which gives the same values, slowly. The
exit status is 2: the machine lacks something, the program may be correct.";

    COMPILER_FAILED = "E0631", "the C compiler failed",
"The compiler was found and started, but produced no library. Its output follows the message.

    SYSTOLA_CC=/bin/false systola run gallery/conv1d/core.ure --map sbm --target cpu

Generated C uses the vector extensions of gcc and clang, which other compilers and very old ones
lack. Name another compiler in `SYSTOLA_CC`. If a recent gcc or clang refuses the code that
`systola emit` prints, that is a bug of Systola.";

    COMPILER_HUNG = "E0632", "the C compiler did not end",
"The compiler was stopped because it had not finished after the CPU time that the message states, or
after five times as long by the clock.

Large unrolled kernels take long to compile: unroll less in the mapping, fix fewer sizes with
`--fix`, or name another compiler in `SYSTOLA_CC`.";

    LESS_OPTIMISED = "E0656", "a kernel was compiled with less optimisation",
"With the usual optimisation, the C compiler did not finish within half of the time it is given, and
was started again with -O1. The results are the same; the kernel may be slower. This is a note, not
an error.

Large unrolled kernels take long to compile: unroll less in the mapping, fix fewer sizes with
`--fix`, or name another compiler in `SYSTOLA_CC`.";

    CACHE_UNUSABLE = "E0633", "compiled kernels cannot be cached",
"The kernel was compiled and runs, but the folder for compiled kernels cannot be written, so the next
run compiles it again. This is a note, not an error.

    SYSTOLA_CACHE=/proc systola run gallery/conv1d/core.ure --map sbm --target cpu

The folder is the one that `SYSTOLA_CACHE` names, else `systola` in `XDG_CACHE_HOME` or in
`~/.cache`. Name one that can be written, or switch the cache off with `SYSTOLA_CACHE_MB=0`.";

    LOAD_FAILED = "E0634", "a compiled kernel cannot be loaded",
"The compiler produced a library, but the system does not load it: the compiler targets another
machine, or files in that folder must not be executed.

    SYSTOLA_CC=aarch64-linux-gnu-gcc systola run gallery/conv1d/core.ure --map sbm --target cpu      on x86-64

Name a compiler for this machine in `SYSTOLA_CC`, or another folder in `SYSTOLA_CACHE`.";

    BAD_ENVIRONMENT = "E0635", "an environment variable has a value that cannot be used",
"Some settings come from the environment. `SYSTOLA_SIMD` names vector instructions: `avx512`, `avx2`,
`sse`, `neon` or `portable`, and this CPU must have them; `SYSTOLA_CACHE_MB` is a number of
megabytes.

    SYSTOLA_SIMD=avx1024 systola run gallery/conv1d/core.ure --map sbm --target cpu

Correct the variable, or remove it.";

    ALIASING = "E0636", "an output shares memory with another array",
"A kernel writes its outputs in any order while it reads its inputs, so no output may overlap an
input or another output, not even in part.

    kernel.run(&sizes, &[(\"x\", view(&buffer))], &mut [(\"z\", view_mut(&mut buffer))], …)

Give the output an array of its own.";

    OTHER_SIZES = "E0637", "a kernel was compiled for other sizes",
"Some kernels are for certain sizes only: those that were fixed at compile time, by request or
because no kernel for all sizes could be made.

    a kernel compiled with Q = 5, run with Q = 7

Compile it again for the new sizes. `systola run` always does.";

    MISSING_OUTPUT = "E0638", "an output array was not given",
"Compiled kernels write into arrays of the caller, one for each `output` of the system.

    output z[N]: f32;        and no array for `z`

Give an array of the stated shape and type.";

    GIVEN_TWICE = "E0639", "an array was given twice",
"Each input and each output is given once, by name.

    --in x=a.npy --in x=b.npy

Leave one of them out.";

    CANNOT_TOUCH_FILE = "E0640", "a file could not be read, written or run",
"Compiling a kernel writes its C to a folder for temporary files and runs the compiler there; the
message says which step failed, on which file, and what the system said.

Free space or grant permissions there, or choose another folder with `TMPDIR` and `SYSTOLA_CACHE`.";

    NO_GPU = "E0641", "there is no NVIDIA GPU that can be used",
"Running on a GPU needs one, and its driver. The message says what is missing: the driver's library,
a device, or the device with the requested number.

    systola run gallery/conv1d/core.ure --map sbm --target cuda        on a machine without a GPU

`systola devices` lists what there is. `--target cpu` compiles the same mapping for the CPU, and
`--target kernel --machine cuda` interprets the kernel that the GPU would run.";

    DRIVER_TOO_OLD = "E0642", "the driver of the GPU is older than the compiler",
"Machine code made by a version of NVRTC needs a driver of at least the same major version of CUDA.

    a driver for CUDA 12.4 and NVRTC 13.0

Update the driver, or name the folder of an older NVRTC in `SYSTOLA_NVRTC`.";

    NO_NVRTC = "E0643", "NVRTC is not installed",
"Kernels for NVIDIA GPUs are compiled by NVRTC, a library of the CUDA toolkit. It is looked for in
the folder that `SYSTOLA_NVRTC` names, in `CUDA_HOME` and `CUDA_PATH`, in `/usr/local/cuda`, and
where the system finds libraries.

    SYSTOLA_NVRTC=/no/such/folder systola emit gallery/conv1d/core.ure --map sbm --target cuda --arch sm_90

Install the toolkit, or only this library: `pip install nvidia-cuda-nvrtc`, and name the folder with
`libnvrtc.so` in `SYSTOLA_NVRTC`.";

    NVRTC_FAILED = "E0644", "NVRTC refused the code",
"The library was found, but produced no machine code. Its output follows the message.

    systola emit gallery/conv1d/core.ure --map sbm --target cuda --arch sm_10

An architecture that this version does not know is the usual reason. If it refuses code that
`systola emit` prints for one that it knows, that is a bug of Systola.";

    GPU_FAILED = "E0645", "the GPU or its driver failed",
"A call of the driver failed; the message says which one, and quotes the driver. An illegal address
or a launch that timed out ends all work of the process on that GPU.

If a kernel of a legal mapping is the reason, that is a bug of Systola; please report it.";

    GPU_MEMORY = "E0646", "the GPU has no memory left",
"The arrays of a run must all fit into the memory of the GPU. The message says how much was
requested, and how much is free.

Use smaller sizes, release arrays that are kept on the GPU, or end other programs that use it.";

    SHARED_MEMORY = "E0647", "a block needs more shared memory than there is",
"The shared arrays of a block must fit into the shared memory of one multiprocessor, 99 to 227 KB on
current GPUs.

Use smaller tiles in the mapping, or a schedule with shorter delays.";

    WRONG_PLACE = "E0648", "an array on a GPU cannot be used where it is",
"Arrays on the device start at a multiple of 16 bytes, so that several elements can be read at once,
and must be on the GPU that the program was compiled for.

    DeviceArray::from_raw(gpu, address + 4, …)

Copy the array to a place of its own.";

    NO_SUCH_DEVICE = "E0649", "no device is called that, or several are",
"`--device` takes the number of a device or a part of its name, in upper or lower case, that no other
device's name contains. Numbers change with what is installed, names do not. The message lists the
devices.

    systola run gallery/conv1d/core.ure --target opencl --device xeon        where two have `Xeon` in their names

`systola devices` lists them too.";

    NOT_SELECTED = "E0657", "nothing, or more than one thing, to run",
"A kernel of the Rust library is of one system or one program. The text has several, or none of the name that was given.

    let kernel = systola::Kernel::builder().text(TEXT).system(\"conv1d\").build()?;

Name one with `.system(…)` or `.program(…)`; the message lists them.";

    TARGET_NOT_BUILT = "E0658", "the library was built without this target",
"The Rust library is built for CPUs alone, unless its features ask for more. Devices need no library at build time, so a feature costs
only some seconds of compile time.

    systola = { version = \"0.1\", features = [\"cuda\"] }

Add the feature that the message names to `Cargo.toml`.";
}
