"""Verdicts from evidence: the report dataclasses and the only maker of PROVED."""

from warpproof.judge.result import REQUIRED, Evidence, PropertyResult, Report, undecided
from warpproof.judge.verdicts import judge

__all__ = ["REQUIRED", "Evidence", "PropertyResult", "Report", "judge", "undecided"]
