"""Verdicts, reasons, diagnostics with spans, the assumption ledger, numbers by their bits."""

from warpproof.core.assumptions import Assumption, Ledger
from warpproof.core.claims import Advice, Claim, Status
from warpproof.core.clock import OutOfTime, check_time, time_limit
from warpproof.core.diagnostics import InputError, Span, Unsupported, WarpproofError
from warpproof.core.files import read_regular
from warpproof.core.numerals import FLOAT_FORMATS, INTEGER_WIDTHS, FloatFormat, element_width, number, ulp, ulps_apart
from warpproof.core.verdict import PROPERTIES, Reason, Verdict, worst

__all__ = [
    "FLOAT_FORMATS", "INTEGER_WIDTHS", "PROPERTIES", "Advice", "Assumption", "Claim", "FloatFormat", "InputError",
    "Ledger", "OutOfTime", "Reason", "Span", "Status", "Unsupported", "Verdict", "WarpproofError", "check_time",
    "element_width", "number", "read_regular", "time_limit", "ulp", "ulps_apart", "worst",
]
