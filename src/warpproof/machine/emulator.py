"""The bit-exact emulator: one kernel launch, or some CTAs of it, on the CPU, under a chosen schedule.

Lanes are the threads of a batch of CTAs; each has its own pc. A turn of the schedule takes lanes at one pc and runs
them to the end of a basic block, one NumPy operation per instruction. Races, bounds, initialisation, barriers and
deadlocks are checked on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from warpproof.core import InputError
from warpproof.machine.batch import Batch
from warpproof.machine.execution import BatchRun
from warpproof.machine.findings import Outcome
from warpproof.machine.launch import ConcreteLaunch, all_ctas, check_launch
from warpproof.machine.program import Program
from warpproof.machine.run import Run
from warpproof.machine.schedule import SCHEDULES
from warpproof.machine.storage import Region
from warpproof.ptx import Kernel

MAX_LANES: Final = 1 << 16
_MATRIX_BYTES: Final = 1 << 28
_SHARED_BYTES: Final = 1 << 25
_ALL_CTAS: Final = 1 << 18


def emulate(kernel: Kernel, launch: ConcreteLaunch, *, ctas: Sequence[tuple[int, int, int]] | None = None,
            step_limit: int = 10_000_000, schedule: str = "min-pc", seed: int = 0, races: bool = True,
            batch_ctas: int | None = None, direction: str = "", memory: Mapping[str, Region] | None = None,
            without: frozenset[int] = frozenset()) -> Outcome:
    """The outcome of running `ctas` (None: the whole grid) of the launch; the findings are facts of this one execution.

    `step_limit` counts vector instructions. `schedule` is one of `SCHEDULES`, `seed` is for the random one. `races`
    False leaves out the race checks. CTAs run in batches of `batch_ctas` (None: as many as fit 64k lanes), batches one
    after another, so a CTA that waits for a later batch runs into the step limit. Raises `InputError` for an impossible
    launch and `Unsupported` when an executed instruction has no exact meaning here. `direction` (rp, rm, rz) makes
    operations that round to nearest round that way instead: the spread of such runs shows how far rounding can move a
    result. `memory` holds buffers and variables, by name, as an earlier launch left them.
    The kernel's instructions `without` do nothing.
    """
    check_launch(launch)
    if schedule not in SCHEDULES:
        raise InputError("CLI625", f"no schedule {schedule!r}; there are {', '.join(SCHEDULES)}")
    _check_block(kernel, launch)
    chosen = _chosen(launch, ctas)
    program = Program(kernel, without)
    run = Run(program, launch, chosen, races=races, step_limit=step_limit, direction=direction,
              memory=memory or {})
    size = _batch_size(program, launch, run.shared_size, batch_ctas)
    completed = True
    for first in range(0, len(chosen), size):
        batch = Batch(launch.grid, launch.block, chosen[first:first + size], first)
        with np.errstate(over="ignore"):
            last = len(chosen) == int(np.prod(launch.grid, dtype=object)) and first + size >= len(chosen)
            completed = BatchRun(run, batch, schedule, seed + first, last).execute()
        if not completed:
            break
    return Outcome(run.recorder.findings(), run.buffers, run.steps, completed, frozenset(run.executed),
                   tuple(run.notes))


def _chosen(launch: ConcreteLaunch, ctas: Sequence[tuple[int, int, int]] | None) -> list[tuple[int, int, int]]:
    if ctas is None:
        if int(np.prod(launch.grid, dtype=object)) > _ALL_CTAS:
            raise InputError("CLI626", f"the grid {launch.grid} is too large to emulate whole", hint="choose some CTAs")
        return all_ctas(launch.grid)
    for cta in ctas:
        if not all(0 <= at < size for at, size in zip(cta, launch.grid, strict=True)):
            raise InputError("CLI627", f"CTA {cta} is not in the grid {launch.grid}")
    if len(set(ctas)) != len(ctas):
        raise InputError("CLI627", "a CTA is chosen twice")
    return list(ctas)


def _check_block(kernel: Kernel, launch: ConcreteLaunch) -> None:
    """The launch must respect the kernel's .reqntid and .maxntid (PTX ISA 11.4)."""
    required, most = kernel.directives.get("reqntid"), kernel.directives.get("maxntid")
    if required is not None and tuple(required) != tuple(launch.block):
        raise InputError("CLI628", f"block {launch.block}, but the kernel requires {tuple(required)}")
    if most is not None and launch.threads > int(np.prod(most)):
        raise InputError("CLI628", f"block {launch.block} has more threads than .maxntid {tuple(most)} admits")
    needed = [p for p in kernel.params if p.space == "param"]
    if len(launch.args) != len(needed):
        raise InputError("CLI629", f"{len(launch.args)} arguments for the {len(needed)} parameters of {kernel.name}")


def _batch_size(program: Program, launch: ConcreteLaunch, shared_size: int, wanted: int | None) -> int:
    padded = -(-launch.threads // 32) * 32
    size = max(min(MAX_LANES // padded, _SHARED_BYTES // max(shared_size, 1)), 1)
    if program.reach() == "cta":
        size = min(size, max(_MATRIX_BYTES // (4 * padded * padded), 1))
    return size if wanted is None else max(1, min(size, wanted))
