"""Concrete calls, their comparison with the reference, the search for refuting runs, and their description."""

from warpproof.counterexample.concrete import (
    Call,
    Difference,
    compare,
    concrete_launch,
    expected_outputs,
    run_call,
    sample_call,
    sparse_launch,
)
from warpproof.counterexample.describe import describe_call, describe_difference, describe_finding, restore_call
from warpproof.counterexample.search import MENU, Refutation, Search

__all__ = [
    "MENU", "Call", "Difference", "Refutation", "Search", "compare", "concrete_launch", "describe_call",
    "describe_difference", "describe_finding", "expected_outputs", "restore_call", "run_call", "sample_call",
    "sparse_launch",
]
