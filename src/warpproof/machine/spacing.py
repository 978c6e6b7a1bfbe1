"""Where the symbolic machine puts shared and local variables: away from address 0 and from each other.

PTX leaves their places open, so nothing may depend on them: what lies between two variables is outside of both. The
emulator packs them; a kernel that is right in one layout only fails in the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from warpproof.ptx import Kernel
from warpproof.terms import BoolVector

_GAP: Final = 1024


class Spacing:
    """The places of one kernel's variables and of those of everything it calls."""

    def __init__(self, kernel: Kernel, shared_bytes: int) -> None:
        self._kernel = kernel
        self.shared = self._spaced(kernel.shared_layout)
        self.local = self._spaced(kernel.local_layout)
        ends = [self._end(name, shared_bytes) for name in self.shared]
        self.shared_bytes = max(ends, default=0)
        self._extents = [(self.shared[name], end) for name, end in zip(self.shared, ends, strict=True)]

    def _spaced(self, packed: Mapping[str, int]) -> dict[str, int]:
        gap = max([_GAP, *(self._kernel.variables[name].align for name in packed)])
        dynamic = [n for n in packed if n in self._kernel.dynamic_shared]
        rank = {n: k for k, n in enumerate((*(n for n in packed if n not in dynamic), *dynamic[:1]), 1)}
        return {n: at + gap * rank[dynamic[0] if n in dynamic else n] for n, at in packed.items()}

    def _end(self, name: str, shared_bytes: int) -> int:
        kernel = self._kernel
        if name in kernel.dynamic_shared:
            return self.shared[name] + shared_bytes - kernel.shared_size
        return self.shared[name] + kernel.variables[name].size

    def inside(self, unit: int) -> BoolVector:
        """Which cells of `unit` bytes lie in a shared variable, all of them."""
        out: BoolVector = np.zeros(self.shared_bytes // unit, dtype=bool)
        for start, end in self._extents:
            out[-(-start // unit) : end // unit] = True
        return out
