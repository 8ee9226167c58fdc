"""2-D convolution by cuDNN, through PyTorch: the fastest of its algorithms, without TF32.

    python3 conv2d_cudnn.py f32|f64 SIZE [HxQ ...]

The image has a border of zeros, so that the result has SIZE x SIZE elements.
"""

import sys

from measure import SQUARES, filters, image_name, report, torch_median


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "f32"
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
    wanted = filters(sys.argv[3:] or SQUARES)
    group = {"f32": "conv2d", "f64": "conv2d-f64"}[kind]
    try:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
    except Exception as error:
        for h, q in wanted:
            report(group, image_name(n, h, q), "cuDNN", skipped=error)
        return
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = {"f32": torch.float32, "f64": torch.float64}[kind]
    torch.manual_seed(1)
    for h, q in wanted:
        name = image_name(n, h, q)
        try:
            with torch.no_grad():
                x = torch.zeros(1, 1, n + h - 1, n + q - 1, dtype=dtype, device="cuda")
                top, left = h // 2, q // 2
                x[:, :, top : top + n, left : left + n].uniform_(-1, 1)
                w = torch.rand(1, 1, h, q, dtype=dtype, device="cuda") * 2 - 1
                got = torch.nn.functional.conv2d(x, w)
                corner = torch.nn.functional.conv2d(
                    x[:, :, : h + 31, : q + 31].double().cpu(), w.double().cpu()
                )
                off = (got[:, :, :32, :32].double().cpu() - corner).abs().max().item()
                if got.shape[-2:] != (n, n) or off > 1e-3:
                    report(group, name, "cuDNN", skipped=f"wrong by {off}")
                    continue
                del got
                ms = torch_median(torch, lambda: torch.nn.functional.conv2d(x, w))
                report(group, name, "cuDNN", ms=ms)
        except Exception as error:
            report(group, name, "cuDNN", skipped=error)


main()
