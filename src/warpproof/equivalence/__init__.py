"""Equivalence to the reference: output maps, the matcher, and one symbolic proof attempt."""

from warpproof.equivalence.outputs import Output, OutputChecker
from warpproof.equivalence.proof import Proof

__all__ = ["Output", "OutputChecker", "Proof"]
