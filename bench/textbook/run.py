#!/usr/bin/env python3
"""Times the loops that textbook programs of the gallery become beside plain C.

    bench/textbook/run.py [--systola target/release/systola] [--quick] [NAME ...]

Each program of c/ is a function as anybody would write it. The mapping of the gallery that has its
loop order is printed by `systola emit --target c`; both are compiled with gcc -O3 -march=native,
ours with the other options of `systola run` too, compared, and run by turns on the same memory. Needs Python and gcc only.
"""

import argparse
import array
import ctypes
import math
import mmap
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TYPES = {
    "double": ("d", ctypes.c_double),
    "float": ("f", ctypes.c_float),
    "int32_t": ("i", ctypes.c_int32),
    "int64_t": ("q", ctypes.c_int64),
}


# What `systola run` gives the compiler besides -O3 -march=native.
FLAGS = ["-std=gnu11", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
         "-mprefer-vector-width=512"]


class Buffer:
    """Memory at a multiple of 64 bytes, in large pages where the system has them."""

    def __init__(self, kind, count):
        self.code, self.ctype = TYPES[kind]
        self.count, self.bytes = count, count * ctypes.sizeof(self.ctype)
        pages = mmap.mmap(-1, self.bytes + 64)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        self.memory = (ctypes.c_char * (self.bytes + 64)).from_buffer(pages)
        self.address = (ctypes.addressof(self.memory) + 63) // 64 * 64

    def fill(self, values):
        values = array.array(self.code, values)
        repeated = values * (self.count // len(values) + 1)
        ctypes.memmove(self.address, repeated.buffer_info()[0], self.bytes)

    def view(self):
        return (self.ctype * self.count).from_address(self.address)

    def copy(self, other):
        ctypes.memmove(self.address, other.address, self.bytes)

    def clear(self):
        ctypes.memset(self.address, 0, self.bytes)


def noise(code, low=-1.0, high=1.0):
    """A prime number of values, so that rows of an array differ."""
    rng = random.Random(1)
    if code in "iq":
        return [rng.randrange(int(low), int(high)) for _ in range(10007)]
    return [rng.uniform(low, high) for _ in range(10007)]


def uniform(low, high):
    return lambda buffer, sizes: buffer.fill(noise(buffer.code, low, high))


def dominant(buffer, sizes):
    """A matrix without need for pivoting, symmetric where that is asked for."""
    n = sizes["N"]
    buffer.fill(noise(buffer.code))
    view = buffer.view()
    for i in range(n):
        view[i * n + i] = 3.0 * n


def symmetric(buffer, sizes):
    n = sizes["N"]
    buffer.fill([math.sin(d) for d in range(n)])
    view = buffer.view()
    for i in range(n):
        row = array.array("d", [math.sin(abs(i - j)) for j in range(n)])
        row[i] = 2.0 * n
        view[i * n : i * n + n] = row


def tall(buffer, sizes):
    n = sizes["N"]
    buffer.fill(noise(buffer.code))
    view = buffer.view()
    for i in range(n):
        view[i * n + i] += 3.0 * n


def toeplitz(buffer, sizes):
    buffer.fill([0.25 / (1 + i * i) for i in range(buffer.count)])


def distances(buffer, sizes):
    n = sizes["N"]
    buffer.fill(noise(buffer.code, 1.0, 100.0))
    view = buffer.view()
    for i in range(n):
        view[i * n + i] = 0.0


def filter_taps(buffer, sizes):
    buffer.fill([0.1, 0.05, 0.08, 0.04, 0.1, 0.05, 0.08, 0.04, 0.7, -0.2])


def number(value):
    return lambda buffer, sizes: buffer.fill([value])


class Program:
    """A function of c/ with its arguments, and the mapping with the same loops.

    An argument is the name of a size, `=x` for a scalar input by value, the name of an input,
    `out:x` for the output x, `out:x<a` for a buffer that holds the input a before and the output x
    after, `in:a` for an input that is overwritten, or `tmp:EXPRESSION` for room of that many
    elements.
    """

    def __init__(self, name, file, sizes, small, arguments, inputs, mapping="original", bound=1e-9,
                 plain=None):
        self.name, self.file, self.sizes, self.small = name, file, sizes, small
        self.arguments, self.inputs = arguments.split(), inputs
        self.mapping, self.bound, self.plain = mapping, bound, plain or name


PROGRAMS = [
    Program("lu", "linear-algebra/lu_textbook", dict(N=900), dict(N=37), "N out:lu<a", dict(a=dominant)),
    Program("lu_by_steps", "linear-algebra/lu_textbook", dict(N=1100), dict(N=37), "N out:lu<a", dict(a=dominant),
            mapping="elimination"),
    Program("lu_tiled", "linear-algebra/lu_textbook", dict(N=2000), dict(N=67), "N out:lu<a", dict(a=dominant),
            mapping="tiled", plain="lu_by_steps"),
    Program("cholesky", "linear-algebra/cholesky_textbook", dict(N=1000), dict(N=37), "N a out:l", dict(a=symmetric)),
    Program("cholesky_tiled", "linear-algebra/cholesky_textbook", dict(N=1000), dict(N=67), "N a out:l", dict(a=symmetric),
            mapping="tiled", plain="cholesky"),
    Program("ldlt", "linear-algebra/ldlt", dict(N=900), dict(N=37), "N a out:d out:l", dict(a=symmetric)),
    Program("triangular_solve", "linear-algebra/triangular_solve_textbook", dict(N=9000), dict(N=37), "N l b out:x",
            dict(l=dominant, b=uniform(-1, 1))),
    Program("gram_schmidt", "linear-algebra/gram_schmidt", dict(M=500, N=400), dict(M=41, N=37),
            "M N in:a out:q out:r", dict(a=tall)),
    Program("durbin", "linear-algebra/durbin", dict(N=12000), dict(N=37), "N r out:y tmp:N", dict(r=toeplitz)),
    Program("inverse", "linear-algebra/gauss_jordan_textbook", dict(N=700), dict(N=37), "N out:b<a", dict(a=dominant)),
    Program("nussinov", "dynamic-programming/nussinov_textbook", dict(N=1100), dict(N=37), "N s out:t",
            dict(s=uniform(0, 4))),
    Program("matrix_chain", "dynamic-programming/matrix_chain", dict(N=1000), dict(N=37), "N p out:c",
            dict(p=uniform(1, 30))),
    Program("floyd_warshall", "graph/floyd_warshall_textbook", dict(N=800), dict(N=37), "N out:p<d",
            dict(d=distances)),
    Program("gauss_seidel_2d", "stencil/gauss_seidel_2d", dict(T=20, N=1000), dict(T=3, N=37), "T N out:u<a",
            dict(a=uniform(-1, 1))),
    Program("gauss_seidel_3d", "stencil/gauss_seidel_3d", dict(T=20, N=120), dict(T=3, N=13), "T N out:u<a",
            dict(a=uniform(-1, 1))),
    Program("adi", "stencil/adi", dict(T=20, N=700), dict(T=3, N=37), "T N out:u<a =r tmp:N*N tmp:N tmp:N",
            dict(a=uniform(-1, 1), r=number(0.375))),
    Program("fdtd_2d", "stencil/fdtd_2d", dict(T=60, N=1000, M=1200), dict(T=3, N=37, M=41),
            "T N M in:ex0 in:ey0 out:hz<hz0 source",
            dict(ex0=uniform(-1, 1), ey0=uniform(-1, 1), hz0=uniform(-1, 1), source=uniform(-1, 1))),
    Program("jacobi", "stencil/jacobi_two_statements", dict(T=60, N=1300), dict(T=3, N=37), "T N out:z<a in:a",
            dict(a=uniform(-1, 1))),
    Program("fdtd_2d_tiled", "stencil/fdtd_2d", dict(T=60, N=1000, M=1200), dict(T=3, N=37, M=41),
            "T N M in:ex0 in:ey0 out:hz<hz0 source",
            dict(ex0=uniform(-1, 1), ey0=uniform(-1, 1), hz0=uniform(-1, 1), source=uniform(-1, 1)), mapping="tiled", plain="fdtd_2d"),
    Program("jacobi_tiled", "stencil/jacobi_two_statements", dict(T=60, N=1300), dict(T=3, N=37), "T N out:z<a in:a",
            dict(a=uniform(-1, 1)), mapping="tiled", plain="jacobi"),
    Program("deriche", "filter/deriche", dict(H=2160, W=4096), dict(H=37, W=41), "H W x c out:y tmp:H*W tmp:H*W tmp:H*W",
            dict(x=uniform(-1, 1), c=filter_taps), bound=1e-4),
    Program("lstm", "neural/lstm", dict(T=100, N=500, M=500), dict(T=3, N=37, M=41), "T N M x u w out:h tmp:4*N tmp:N",
            dict(x=uniform(-1, 1), u=uniform(-0.05, 0.05), w=uniform(-0.05, 0.05)), bound=1e-4),
    Program("attention", "neural/attention", dict(N=1500, D=64), dict(N=37, D=11), "N D q k v out:o tmp:N",
            dict(q=uniform(-1, 1), k=uniform(-1, 1), v=uniform(-1, 1)), bound=1e-4),
]


def evaluate(text, sizes):
    """A formula of the header, where a/b is rounded down."""
    return eval(text.replace("/", "//"), {"min": min, "max": max}, dict(sizes))


class Ours:
    """What `systola emit` prints, with the arrays and launches that its header names."""

    def __init__(self, source, sizes):
        head = source[: source.index("\n\n#include")] if "\n\n#include" in source else source
        head = "\n".join(line[2:].strip() for line in head.splitlines() if line.startswith("//"))
        names = re.search(r"^Sizes, of type int64_t: (.*?)\.$", head, re.M).group(1).split(", ")
        self.sizes = [sizes[name] for name in names]
        self.arrays, self.roles = {}, {}
        pattern = r"^(double|float|int32_t|int64_t) (\w+'?)((?:\[[^\]]*\])*): (input|output|temporary)"
        for kind, name, axes, role in re.findall(pattern, head, re.M):
            count = math.prod(evaluate(axis, sizes) for axis in re.findall(r"\[([^\]]*)\]", axes))
            self.arrays[name], self.roles[name] = Buffer(kind, count), role
        launches = re.search(r"^Launches.*?\n(.*?)(?:\n\n|$)", head, re.M | re.S).group(1).split("\n")
        self.kernels = []
        for kernel in (line.strip() for line in launches):
            about = head[head.index(f"\n{kernel}:\n") :]
            blocks = re.search(r"blocks: (.*?), none", about, re.S).group(1)
            args = re.search(r"^args: (.*)$", about, re.M).group(1)
            if args != "nothing":
                raise NotImplementedError(f"{kernel} takes {args}")
            buffers = re.search(r"^buffers: (.*?)^scratch", about, re.M | re.S).group(1).split(",")
            scratch = re.search(r"^scratch: (.*?) bytes", about, re.M).group(1)
            self.kernels.append((kernel, evaluate(blocks, sizes), [b.strip() for b in buffers], int(scratch)))

    def load(self, library):
        self.calls = []
        sizes = (ctypes.c_int64 * len(self.sizes))(*self.sizes)
        for kernel, blocks, buffers, scratch in self.kernels:
            function = getattr(library, kernel)
            function.restype = None
            pointers = (ctypes.c_void_p * len(buffers))(*[self.arrays[name].address for name in buffers])
            self.room = Buffer("double", scratch // 8 + 1)
            arguments = (sizes, None, pointers, ctypes.c_void_p(self.room.address), ctypes.c_int64(0), ctypes.c_int64(blocks))
            self.calls.append((function, arguments))

    def run(self):
        for function, arguments in self.calls:
            function(*arguments)


class Plain:
    """A function of c/, with arrays of its own."""

    def __init__(self, program, library, ours, sizes):
        self.function = getattr(library, program.plain)
        self.function.restype = None
        self.restores, self.outputs, self.values, self.kept = [], {}, [], []
        kinds = [ours.arrays[name] for name in program.inputs]
        kind = next(k for k, (code, _) in TYPES.items() if code == kinds[0].code)
        for argument in program.arguments:
            if argument in sizes:
                self.values.append(ctypes.c_long(sizes[argument]))
                continue
            if argument.startswith("="):
                self.values.append(ours.arrays[argument[1:]].view()[0:1][0])
                self.values[-1] = ours.arrays[argument[1:]].ctype(self.values[-1])
                continue
            role, _, rest = argument.rpartition(":")
            output, _, source = rest.partition("<")
            if role == "":
                buffer = ours.arrays[rest]
            elif role == "tmp":
                buffer = Buffer(kind, evaluate(rest, sizes))
            else:
                model = ours.arrays[output]
                buffer = Buffer(next(k for k, (code, _) in TYPES.items() if code == model.code), model.count)
                if role == "in":
                    self.restores.append((buffer, model))
                elif source:
                    self.restores.append((buffer, ours.arrays[source]))
                if role == "out":
                    self.outputs[output] = buffer
            self.kept.append(buffer)
            self.values.append(ctypes.c_void_p(buffer.address))

    def restore(self):
        for buffer, source in self.restores:
            buffer.copy(source)

    def run(self):
        self.function(*self.values)


def compile_c(source, path, flags, compiler):
    command = [compiler, "-O3", "-march=native", *flags, "-shared", "-fPIC", "-o", path, source, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(path)


def difference(mine, other):
    """The largest difference, relative to the largest element."""
    largest = max(1e-300, max(abs(x) for x in other))
    return max(abs(x - y) for x, y in zip(mine, other)) / largest


def milliseconds(run):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def measure(program, options, folder, sizes, rounds):
    file = os.path.join(ROOT, "gallery", program.file + ".ure")
    command = [options.systola, "emit", file, "--map", program.mapping, "--target", "c"]
    emitted = subprocess.run(command, capture_output=True, text=True)
    if emitted.returncode != 0:
        return f"refused: {(emitted.stderr.strip().splitlines() or ['?'])[0]}"
    ours = Ours(emitted.stdout, sizes)
    text = os.path.join(folder, program.name + "_ours.c")
    with open(text, "w") as out:
        out.write(emitted.stdout)
    stem = os.path.join(folder, f"{program.name}_{'_'.join(map(str, sizes.values()))}")
    ours.load(compile_c(text, stem + "_ours.so", FLAGS, options.cc))
    library = compile_c(os.path.join(HERE, "c", program.plain + ".c"), stem + "_plain.so", [], options.cc)
    for name, fill in program.inputs.items():
        fill(ours.arrays[name], sizes)
    plain = Plain(program, library, ours, sizes)
    plain.restore()
    plain.run()
    ours.run()
    for name, buffer in plain.outputs.items():
        found = difference(ours.arrays[name].view(), buffer.view())
        bound = 0 if buffer.code in "iq" else program.bound
        if not found <= bound:
            return f"{name} differs by {found:.1e}"
    times = ([], [])
    for _ in range(rounds):
        plain.restore()
        times[0].append(milliseconds(plain.run))
        times[1].append(milliseconds(ours.run))
    return [statistics.median(t) for t in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systola", default=os.path.join(ROOT, "target", "release", "systola"))
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that both agree")
    parser.add_argument("--keep", help="a folder for the emitted C")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    unknown = set(options.names) - {program.name for program in PROGRAMS}
    if unknown:
        sys.exit(f"no program {', '.join(sorted(unknown))}")
    print("| program | size | plain C, ms | ours, ms | ours / plain |")
    print("|---|---|---|---|---|")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or folder
        for program in PROGRAMS:
            if options.names and program.name not in options.names:
                continue
            sizes = program.small if options.quick else program.sizes
            size = ", ".join(f"{name} = {value}" for name, value in sizes.items())
            try:
                result = measure(program, options, folder, sizes, options.rounds)
            except (NotImplementedError, AttributeError, subprocess.CalledProcessError) as error:
                result = f"{type(error).__name__}: {error}"
            if isinstance(result, str):
                failed = True
                print(f"| {program.name} | {size} | {result} | | |", flush=True)
            else:
                plain, ours = result
                print(f"| {program.name} | {size} | {plain:.1f} | {ours:.1f} | {ours / plain:.2f} |", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
