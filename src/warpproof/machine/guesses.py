"""What a loop that is being closed was like when it was entered, and how its iterations are assumed to begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpproof.domains import Value
from warpproof.machine.trace import Mark
from warpproof.terms import IntVector, Poly, Pred


@dataclass(slots=True)
class Snapshot:
    """Registers, shared contents and trace position at a point of the run."""

    registers: dict[str, Any]
    shared: tuple[IntVector, IntVector]
    mark: Mark


@dataclass(slots=True)
class Guess:
    """How each changed register and shared cell is assumed to look at the start of iteration i.

    `shifts` are what the iteration before left, for registers; `cells` (owner, lane) likewise for shared cells.
    """

    affine: dict[str, tuple[Poly, Poly]] = field(default_factory=dict)  # name: (entry value, step)
    unknown: dict[str, Value | Pred] = field(default_factory=dict)  # name: entry value
    states: dict[str, Any] = field(default_factory=dict)  # name: the unknown put in its place
    extents: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)  # name: lanes that hold one value, as in w consecutive lanes
    shifts: dict[str, Any] = field(default_factory=dict)
    changed: IntVector = field(default_factory=lambda: np.zeros(0, np.int64))
    cells: dict[int, int] = field(default_factory=dict)  # cell: table index of its value at the start
