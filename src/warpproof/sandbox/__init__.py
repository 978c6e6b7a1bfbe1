"""Seccomp filters proved equal to their policy for all system calls, and what a confined process can reach."""

from warpproof.sandbox.actions import combine, describe, parse_action
from warpproof.sandbox.assembly import assemble, disassemble
from warpproof.sandbox.closure import Closure, Crossing, blocked_script, certificate, check_certificate, close
from warpproof.sandbox.compiler import compile_policy
from warpproof.sandbox.confinement import LAYERS, Unconfined, confine, isolate
from warpproof.sandbox.decisions import Decision, Disagreement, Symbolic
from warpproof.sandbox.inspection import Inspection, Passage, inspect, replay
from warpproof.sandbox.instructions import Instruction, Program, decode, encode
from warpproof.sandbox.interpreter import Call, run
from warpproof.sandbox.live import Kernel, Loaded, Seen
from warpproof.sandbox.obligations import STATEMENTS, Obligation, prove, same_filter
from warpproof.sandbox.policy import Need, Policy, Rule, Test, parse_test
from warpproof.sandbox.policy_files import SHIPPED, read_policy, shipped_policy
from warpproof.sandbox.profiles import firecracker_policy, oci_policy, read_groups, systemd_policy
from warpproof.sandbox.sources import load_filter, load_policy, load_profile
from warpproof.sandbox.syscalls import I386, NATIVE, Syscall, name_of, number_of, table
from warpproof.sandbox.transitions import Edge, Transitions, read_transitions, transitions
from warpproof.sandbox.validity import check, fault

__all__ = [
    "I386", "LAYERS", "NATIVE", "SHIPPED", "STATEMENTS", "Call", "Closure", "Crossing", "Decision", "Disagreement",
    "Edge", "Inspection", "Instruction", "Kernel", "Loaded", "Need", "Obligation", "Passage", "Policy", "Program",
    "Rule", "Seen", "Symbolic", "Syscall", "Test", "Transitions", "Unconfined", "assemble", "blocked_script",
    "certificate", "check", "check_certificate", "close", "combine", "compile_policy", "confine", "decode", "describe",
    "disassemble", "encode", "fault", "firecracker_policy", "inspect", "isolate", "load_filter", "load_policy",
    "load_profile", "name_of", "number_of", "oci_policy", "parse_action", "parse_test", "prove", "read_groups",
    "read_policy", "read_transitions", "replay", "run", "same_filter", "shipped_policy", "systemd_policy", "table",
    "transitions",
]
