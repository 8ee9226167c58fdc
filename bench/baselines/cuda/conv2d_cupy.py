"""2-D convolution by CuPy: `cupyx.scipy.ndimage.correlate` with zeros outside.

    python3 conv2d_cupy.py f32|f64 SIZE [HxQ ...]
"""

import sys

from measure import SQUARES, cupy_median, filters, image_name, report


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "f32"
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
    wanted = filters(sys.argv[3:] or SQUARES)
    group = {"f32": "conv2d", "f64": "conv2d-f64"}[kind]
    try:
        import cupy
        import numpy
        from cupyx.scipy import ndimage

        cupy.cuda.Device(0).compute_capability
    except Exception as error:
        for h, q in wanted:
            report(group, image_name(n, h, q), "CuPy", skipped=error)
        return
    dtype = {"f32": cupy.float32, "f64": cupy.float64}[kind]
    random = numpy.random.default_rng(1)
    x = cupy.asarray(random.uniform(-1, 1, (n, n)).astype(dtype))
    z = cupy.empty_like(x)
    for h, q in wanted:
        name = image_name(n, h, q)
        try:
            w = cupy.asarray(random.uniform(-1, 1, (h, q)).astype(dtype))

            def work():
                ndimage.correlate(x, w, output=z, mode="constant", cval=0.0)

            work()
            # A corner again in plain loops.
            part, weights = cupy.asnumpy(x[: 8 + h, : 8 + q]), cupy.asnumpy(w)
            padded = numpy.zeros((8 + 2 * h, 8 + 2 * q))
            padded[h // 2 : h // 2 + part.shape[0], q // 2 : q // 2 + part.shape[1]] = part
            off = max(
                abs(float(z[r, c]) - float((padded[r : r + h, c : c + q] * weights).sum()))
                for r in range(8)
                for c in range(8)
            )
            if off > 1e-3:
                report(group, name, "CuPy", skipped=f"wrong by {off}")
                continue
            report(group, name, "CuPy", ms=cupy_median(cupy, work))
        except Exception as error:
            report(group, name, "CuPy", skipped=error)


main()
