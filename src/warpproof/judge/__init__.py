"""Verdicts from evidence: the report dataclasses and the only maker of PROVED."""

from warpproof.judge.result import REQUIRED, Evidence, Fallback, PropertyResult, Report, undecided
from warpproof.judge.verdicts import judge, restrict

__all__ = ["REQUIRED", "Evidence", "Fallback", "PropertyResult", "Report", "judge", "restrict", "undecided"]
