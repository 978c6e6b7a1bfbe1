"""What each PTX instruction means: one rule per form, over any value domain; memory and threads as effects."""

from warpproof.semantics.binding import Bound, Mods, Slot, bind, candidates, execute, reason_without_rule
from warpproof.semantics.registry import Row, table

__all__ = ["Bound", "Mods", "Row", "Slot", "bind", "candidates", "execute", "reason_without_rule", "table"]
