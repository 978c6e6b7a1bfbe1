"""Seccomp filters proved equal to their policy for all system calls, and what a confined process can reach."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from warpproof.sandbox.actions import combine, describe, parse_action
    from warpproof.sandbox.assembly import assemble, disassemble
    from warpproof.sandbox.closure import Closure, Crossing, blocked_script, certificate, check_certificate, close
    from warpproof.sandbox.compiler import compile_policy
    from warpproof.sandbox.confinement import LAYERS, MODES, NEEDED, Confinement, Unconfined
    from warpproof.sandbox.decisions import Decision, Disagreement, Symbolic
    from warpproof.sandbox.inspection import Inspection, Passage, inspect, replay
    from warpproof.sandbox.instructions import Instruction, Program, decode, encode
    from warpproof.sandbox.interpreter import Call, run
    from warpproof.sandbox.live import Kernel, Loaded, Seen, held_filters, load_reader
    from warpproof.sandbox.obligations import STATEMENTS, Obligation, prove, same_filter
    from warpproof.sandbox.policy import Need, Policy, Rule, Test, parse_test
    from warpproof.sandbox.policy_files import NAMES, SHIPPED, read_policy, shipped_policy
    from warpproof.sandbox.profiles import firecracker_policy, oci_policy, read_groups, systemd_policy
    from warpproof.sandbox.sources import (
        filter_of,
        load_filter,
        load_policy,
        load_profile,
        policy_of,
        profile_of,
        read_file,
        read_input,
    )
    from warpproof.sandbox.syscalls import I386, NATIVE, Syscall, name_of, number_of, table
    from warpproof.sandbox.transition_table import Edge, Transitions, read_transitions, transitions
    from warpproof.sandbox.validity import check, fault

_HOMES: Final = {
    "actions": "combine describe parse_action",
    "assembly": "assemble disassemble",
    "closure": "Closure Crossing blocked_script certificate check_certificate close",
    "compiler": "compile_policy",
    "confinement": "LAYERS MODES NEEDED Confinement Unconfined",
    "decisions": "Decision Disagreement Symbolic",
    "inspection": "Inspection Passage inspect replay",
    "instructions": "Instruction Program decode encode",
    "interpreter": "Call run",
    "live": "Kernel Loaded Seen held_filters load_reader",
    "obligations": "STATEMENTS Obligation prove same_filter",
    "policy": "Need Policy Rule Test parse_test",
    "policy_files": "NAMES SHIPPED read_policy shipped_policy",
    "profiles": "firecracker_policy oci_policy read_groups systemd_policy",
    "sources": "filter_of load_filter load_policy load_profile policy_of profile_of read_file read_input",
    "syscalls": "I386 NATIVE Syscall name_of number_of table",
    "transition_table": "Edge Transitions read_transitions transitions",
    "validity": "check fault",
}
__all__ = [
    "I386", "LAYERS", "MODES", "NAMES", "NATIVE", "NEEDED", "SHIPPED", "STATEMENTS", "Call", "Closure", "Confinement",
    "Crossing", "Decision", "Disagreement", "Edge", "Inspection", "Instruction", "Kernel", "Loaded", "Need",
    "Obligation", "Passage", "Policy", "Program", "Rule", "Seen", "Symbolic", "Syscall", "Test", "Transitions",
    "Unconfined", "assemble", "blocked_script", "certificate", "check", "check_certificate", "close", "combine",
    "compile_policy", "decode", "describe", "disassemble", "encode", "fault", "filter_of", "firecracker_policy",
    "held_filters", "inspect", "load_filter", "load_policy", "load_profile", "load_reader", "name_of", "number_of",
    "oci_policy", "parse_action", "parse_test", "policy_of", "profile_of", "prove", "read_file", "read_groups",
    "read_input", "read_policy", "read_transitions", "replay", "run", "same_filter", "shipped_policy", "systemd_policy",
    "table", "transitions",
]


def __getattr__(name: str) -> Any:
    """Load a name's module on first use: who only confines a process needs no solver."""
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"warpproof.sandbox.{module}"), name)
    raise AttributeError(f"module 'warpproof.sandbox' has no attribute {name!r}")
