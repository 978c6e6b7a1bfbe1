"""Executors: the bit-exact emulator of concrete launches, and the symbolic machine over all sizes."""

from warpproof.machine.emulator import emulate
from warpproof.machine.findings import KINDS, Access, Finding, Outcome
from warpproof.machine.launch import Buffer, ConcreteLaunch, Content, Pointer
from warpproof.machine.operands import Decoded, Registers, decode, step, step_pure
from warpproof.machine.schedule import SCHEDULES
from warpproof.machine.storage import Region

__all__ = [
    "KINDS", "SCHEDULES", "Access", "Buffer", "ConcreteLaunch", "Content", "Decoded", "Finding", "Outcome", "Pointer",
    "Region", "Registers", "decode", "emulate", "step", "step_pure",
]
