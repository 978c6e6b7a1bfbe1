"""Safety of a trace: memory (bounds, initialisation, write set), races, barriers, and the run's own side conditions."""

from warpproof.safety.barriers import barrier_claims
from warpproof.safety.conditions import RealConditions, condition_claims
from warpproof.safety.definedness import definedness_claims
from warpproof.safety.infinities import Infinities
from warpproof.safety.meetings import meeting_claims, rehearsed
from warpproof.safety.memory import memory_claims
from warpproof.safety.protocols import Dimensions, protocol_claims
from warpproof.safety.races import race_claims
from warpproof.safety.turns import Split
from warpproof.safety.weak_loads import WeakUse, weak_polls, weak_uses

__all__ = [
    "Dimensions", "Infinities", "RealConditions", "Split", "WeakUse", "barrier_claims", "condition_claims",
    "definedness_claims",
    "meeting_claims", "memory_claims", "protocol_claims", "race_claims", "rehearsed", "weak_polls", "weak_uses",
]
