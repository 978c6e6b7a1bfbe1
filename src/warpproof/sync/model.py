"""The PTX memory consistency model's versions and the named switches that change single rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from warpproof.core import InputError


class Scope(IntEnum):
    """The scopes of PTX 8.5, narrow to wide. A warp is no scope; weak operations have none."""

    CTA = 0
    CLUSTER = 1
    GPU = 2
    SYS = 3


@dataclass(frozen=True, slots=True)
class Model:
    """One version of the model: its number as (major, minor) and the rules that a switch may turn.

    `base_has_po` (bare program order in base causality order, since 7.5), `proxies` (proxy-preserved order, 7.5),
    `clusters` (7.8), `async_proxy` (8.0), `one_sided_fences` (8.6), `sc_per_location` (PTX 8.10.5),
    `red_acquires` (the read of a `red` may open an acquire pattern; PTX 8.11.1 says no), `identity` (causality is
    irreflexive by itself and against coherence, as the public Alloy text of 7.5 has it).
    """

    name: str
    version: tuple[int, int]
    base_has_po: bool = True
    proxies: bool = True
    clusters: bool = False
    async_proxy: bool = False
    one_sided_fences: bool = False
    sc_per_location: bool = True
    red_acquires: bool = False
    identity: bool = False

    def with_switches(self, switches: Iterable[str]) -> Model:
        """The model with each named switch turned; InputError SYN209 for an unknown name."""
        changed = self
        for switch in switches:
            if switch not in SWITCHES:
                raise InputError("SYN209", f"no switch {switch!r}", hint=f"known: {', '.join(SWITCHES)}")
            changed = replace(SWITCHES[switch](changed), name=f"{changed.name}+{switch}")
        return changed


SWITCHES: Final[dict[str, Callable[[Model], Model]]] = {
    "red-acquires": lambda m: replace(m, red_acquires=True),
    "causality-identity": lambda m: replace(m, identity=True),
    "no-sc-per-location": lambda m: replace(m, sc_per_location=False),
}
MODELS: Final[dict[str, Model]] = {m.name: m for m in (
    Model("6.0", (6, 0), base_has_po=False, proxies=False),
    Model("7.5", (7, 5)),
    Model("7.8", (7, 8), clusters=True),
    Model("8.0", (8, 0), clusters=True, async_proxy=True),
    Model("8.6", (8, 6), clusters=True, async_proxy=True, one_sided_fences=True),
)}
LATEST: Final = MODELS["8.6"]


def model_named(name: str, switches: Iterable[str] = ()) -> Model:
    """The model of that version, with the switches turned; InputError SYN209 for an unknown name."""
    if name not in MODELS:
        raise InputError("SYN209", f"no memory model {name!r}", hint=f"known: {', '.join(MODELS)}")
    return MODELS[name].with_switches(switches)
