"""Reports for programs (JSON) and for people (text)."""

from warpproof.report.schema import SCHEMA, error_dict, from_dict, jsonable, to_dict, to_json
from warpproof.report.text import Line, counterexample_lines, print_lines, report_lines

__all__ = [
    "SCHEMA", "Line", "counterexample_lines", "error_dict", "from_dict", "jsonable", "print_lines", "report_lines",
    "to_dict", "to_json",
]
