//! Running on OpenCL devices.

use super::codes;

codes! { Mistake:
    NO_OPENCL = "E0660", "there is no OpenCL device that can be used",
"Running on an OpenCL device needs the library that finds the implementations of a machine
(`libOpenCL.so.1`, on Debian and Ubuntu in the package `ocl-icd-libopencl1`), an implementation, and
a device. The message says what is missing.

    systola run gallery/conv1d/core.ure --map sbm --target opencl        on a machine without OpenCL

`systola devices` lists what there is. GPUs bring an implementation with their driver;
`pocl-opencl-icd` is one for CPUs. `SYSTOLA_OPENCL` names the library where it is not in a usual
place. `--target cpu` needs none of this.";

    OPENCL_BUILD = "E0661", "the compiler of an OpenCL device refused the code",
"Every OpenCL device compiles kernels itself. The output of the compiler follows the message.

If it refuses code that `systola emit --target opencl` prints for it, that is a bug of Systola or of
the implementation; please report it.";

    OPENCL_FAILED = "E0662", "an OpenCL device failed",
"A call failed; the message says which one, and quotes the implementation.

If a kernel of a legal mapping is the reason, that is a bug of Systola; please report it.";

    DEVICE_LOST = "E0663", "an OpenCL device was lost",
"The device no longer answers: it was removed or reset, or its driver was restarted. The data on it
is lost; nothing was written to outputs of the host.

Run it again when the device is back. If it is lost each time, a kernel may be the reason; please
report it.";
}
