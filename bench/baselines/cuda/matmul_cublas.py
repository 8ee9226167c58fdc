"""Matrix product by cuBLAS, through PyTorch, without TF32.

    python3 matmul_cublas.py SIZE
"""

import sys

from measure import report, torch_median


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    name = f"{n}³"
    try:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(1)
        with torch.no_grad():
            a, b = (torch.rand(n, n, device="cuda") * 2 - 1 for _ in range(2))
            c = a @ b
            off = (c[:8].double() - a[:8].double() @ b.double()).abs().max().item()
            if not off < 1e-2:
                raise RuntimeError(f"wrong by {off}")
            ms = torch_median(torch, lambda: torch.matmul(a, b, out=c))
        report("matmul", name, "cuBLAS", ms=ms)
    except Exception as error:
        report("matmul", name, "cuBLAS", skipped=error)


main()
