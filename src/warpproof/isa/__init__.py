"""Form notation and types of PTX; the rules that give the forms meaning are in `warpproof.semantics`."""

from warpproof.isa.forms import CLASSES, Form, Modifier, Operand, parse_form
from warpproof.isa.types import ScalarType, is_type, scalar

__all__ = ["CLASSES", "Form", "Modifier", "Operand", "ScalarType", "is_type", "parse_form", "scalar"]
