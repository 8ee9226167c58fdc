"""1-D convolution by cuDNN, through PyTorch: the fastest of its algorithms, without TF32.

    python3 conv1d_cudnn.py SIZE [TAPS ...]

One tap is a copy: it is timed as one.
"""

import sys

from measure import report, torch_median


def name_of(n, taps):
    size = f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else str(n)
    return f"copy {size}" if taps == 1 else f"{size}, {taps} taps"


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 28
    wanted = [int(taps) for taps in sys.argv[2:]] or [1, 5, 17, 64]
    try:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
    except Exception as error:
        for taps in wanted:
            report("conv1d", name_of(n, taps), "cuDNN", skipped=error)
        return
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    for taps in wanted:
        name = name_of(n, taps)
        try:
            with torch.no_grad():
                x = torch.empty(1, 1, n + taps - 1, device="cuda").uniform_(-1, 1)
                if taps == 1:
                    z = torch.empty_like(x)
                    ms = torch_median(torch, lambda: z.copy_(x))
                    report("conv1d", name, "cuDNN", ms=ms)
                    continue
                w = torch.rand(1, 1, taps, device="cuda") * 2 - 1
                got = torch.nn.functional.conv1d(x, w)
                for start in (0, n - 1000):
                    part = x[:, :, start : start + taps + 999].double().cpu()
                    want = torch.nn.functional.conv1d(part, w.double().cpu())
                    off = (got[:, :, start : start + 1000].double().cpu() - want).abs().max()
                    if not off.item() < 1e-3:
                        raise RuntimeError(f"wrong by {off.item()}")
                del got
                ms = torch_median(torch, lambda: torch.nn.functional.conv1d(x, w))
                report("conv1d", name, "cuDNN", ms=ms)
        except Exception as error:
            report("conv1d", name, "cuDNN", skipped=error)
        torch.cuda.empty_cache()


main()
