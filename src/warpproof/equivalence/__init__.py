"""Equivalence to the reference: output maps, the matcher, and one symbolic proof attempt."""

from warpproof.equivalence.advice import redundant
from warpproof.equivalence.outputs import Output, OutputChecker
from warpproof.equivalence.proof import Outcome, Proof

__all__ = ["Outcome", "Output", "OutputChecker", "Proof", "redundant"]
