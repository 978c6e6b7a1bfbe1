"""Objects that stand for a list, range or array whose length is a symbol: what would tell them from it is refused."""

from __future__ import annotations

from typing import Any

from warpproof.core import Unsupported


class StandIn:
    """Refuses every question whose answer for the real object is not known."""

    def _unknown(self, *args: Any) -> Any:
        raise Unsupported("a sequence of symbolic length", "what is asked of it depends on its length or its items",
                          hint="make an array of it, or use array operations")

    __bool__ = __len__ = __iter__ = __contains__ = __eq__ = __ne__ = __hash__ = __repr__ = __str__ = _unknown
    __format__ = _unknown
