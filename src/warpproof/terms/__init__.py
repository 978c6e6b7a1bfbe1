"""Hash-consed lane-vector terms: integer polynomials, predicates, reals, folds."""

from warpproof.terms.access import Access
from warpproof.terms.arena import Arena, TermMap
from warpproof.terms.atoms import Atom, Range
from warpproof.terms.integers import divide_monomial
from warpproof.terms.nodes import Pred, Real
from warpproof.terms.places import Leaf
from warpproof.terms.poly import ZERO, Coef, IntVector, Monomial, Poly, coefficient, const, magnitude
from warpproof.terms.predicates import BoolVector
from warpproof.terms.reals import MINUS_INF, PLUS_INF

__all__ = [
    "MINUS_INF", "PLUS_INF", "ZERO", "Access", "Arena", "Atom", "BoolVector", "Coef", "IntVector", "Leaf",
    "Monomial", "Poly", "Pred", "Range", "Real", "TermMap", "coefficient", "const", "divide_monomial", "magnitude",
]
