"""What each PTX instruction means: one rule per form, over any value domain; memory and threads as effects."""

from warpproof.semantics.binding import Bound, Mods, Slot, bind, candidates, execute, reason_without_rule
from warpproof.semantics.coverage import Coverage, coverage, covered_share
from warpproof.semantics.registry import Row, table

__all__ = [
    "Bound", "Coverage", "Mods", "Row", "Slot", "bind", "candidates", "coverage", "covered_share", "execute",
    "reason_without_rule", "table",
]
