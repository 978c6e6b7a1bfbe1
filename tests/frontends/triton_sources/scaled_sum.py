"""out = alpha * x + y over a flat array, BLOCK elements per program."""

import triton
import triton.language as tl

print("this goes to standard error")


@triton.jit
def scaled_sum(x, y, out, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, alpha * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)
