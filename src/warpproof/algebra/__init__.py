"""Decision procedures on terms: normal forms over the reals, signs, and integer positivity with certificates."""

from warpproof.algebra.evaluation import Undefined, evaluate, satisfies
from warpproof.algebra.forms import Form, Forms
from warpproof.algebra.normal import Normaliser
from warpproof.algebra.positivity import Certificate, check, prove_le
from warpproof.algebra.scaling import Scaling
from warpproof.algebra.signs import Sign, Signs

__all__ = ["Certificate", "Form", "Forms", "Normaliser", "Scaling", "Sign", "Signs", "Undefined", "check", "evaluate", "prove_le", "satisfies"]
