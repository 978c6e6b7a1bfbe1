"""Safety of a trace: memory (bounds, initialisation, write set), races, barriers, and the run's own side conditions."""

from warpproof.safety.barriers import barrier_claims
from warpproof.safety.conditions import RealConditions, condition_claims
from warpproof.safety.definedness import definedness_claims
from warpproof.safety.infinities import Infinities
from warpproof.safety.memory import memory_claims
from warpproof.safety.protocols import protocol_claims
from warpproof.safety.races import race_claims

__all__ = [
    "Infinities", "RealConditions", "barrier_claims", "condition_claims", "definedness_claims", "memory_claims",
    "protocol_claims", "race_claims",
]
