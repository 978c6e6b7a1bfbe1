"""Equivalence to the reference: output maps, the matcher, and the symbolic proof of one launch or several."""

from warpproof.equivalence.advice import redundant
from warpproof.equivalence.outputs import Output, OutputChecker
from warpproof.equivalence.pipeline import Pipeline
from warpproof.equivalence.proof import GRID_LIMITS, Outcome, Proof

__all__ = ["GRID_LIMITS", "Outcome", "Output", "OutputChecker", "Pipeline", "Proof", "redundant"]
