"""Executors: the bit-exact emulator of concrete launches, and the symbolic machine over all sizes."""

from warpproof.machine.crossing import OPAQUE, crosses
from warpproof.machine.emulator import emulate
from warpproof.machine.findings import KINDS, Event, Finding, Outcome
from warpproof.machine.flow import Graph, Loop, control_flow
from warpproof.machine.launch import Buffer, ConcreteLaunch, Content, Pointer
from warpproof.machine.operands import Decoded, Registers, decode, step, step_pure
from warpproof.machine.schedule import SCHEDULES
from warpproof.machine.setup import BufferInfo, Setup
from warpproof.machine.storage import Region
from warpproof.machine.symbolic import SymbolicMachine
from warpproof.machine.trace import (
    Access,
    BarrierEvent,
    Handover,
    Hazard,
    Meeting,
    Obligation,
    RunningMaximum,
    Source,
    SyncEvent,
    Trace,
)
from warpproof.machine.upcoming import Upcoming, moved
from warpproof.machine.uses import reads, writes

__all__ = [
    "KINDS", "OPAQUE", "SCHEDULES", "Access", "BarrierEvent", "Buffer", "BufferInfo", "ConcreteLaunch", "Content",
    "Decoded", "Event", "Finding", "Graph", "Handover", "Hazard", "Loop", "Meeting", "Obligation", "Outcome", "Pointer",
    "Region", "Registers", "RunningMaximum", "Setup", "Source", "SymbolicMachine", "SyncEvent", "Trace", "Upcoming",
    "control_flow",
    "crosses", "decode", "emulate", "moved", "reads", "step", "step_pure", "writes",
]
