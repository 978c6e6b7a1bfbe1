"""Decision procedures on terms: normal forms over the reals, signs, and integer positivity with certificates."""

from warpproof.algebra.cancellation import cancel, readd
from warpproof.algebra.cases import Cases, here
from warpproof.algebra.constraints import (
    DERIVED,
    FALSE,
    TRUE,
    Formula,
    at_most,
    conjunction,
    definition,
    disjunction,
    formula,
    is_data,
    lane_classes,
    monotone_trip,
    negation,
    nested_quotients,
    pred_polys,
    split_lanes,
    support,
)
from warpproof.algebra.evaluation import Undefined, evaluate, satisfies
from warpproof.algebra.forms import Form, Forms, add
from warpproof.algebra.lane_fields import FIRST_FIELD, LaneFields, affine_parts, distinct_lanes, lane_fields, vectors
from warpproof.algebra.limits import limits
from warpproof.algebra.loosening import loosened
from warpproof.algebra.normal import Normaliser
from warpproof.algebra.operands import same_extremum
from warpproof.algebra.points import Points
from warpproof.algebra.positivity import Certificate, check, contradicts, prove_le
from warpproof.algebra.quotients import cancelled
from warpproof.algebra.scaling import Scaling
from warpproof.algebra.signs import Sign, Signs
from warpproof.algebra.transcript import transcript
from warpproof.algebra.variables import Change, choose_changes, linear_text
from warpproof.algebra.weights import weighted

__all__ = [
    "DERIVED", "FALSE", "FIRST_FIELD", "TRUE", "Cases", "Certificate", "Change", "Form", "Forms", "Formula",
    "LaneFields", "Normaliser", "Points", "Scaling", "Sign", "Signs", "Undefined", "add", "affine_parts", "at_most",
    "cancel", "cancelled", "check", "choose_changes", "conjunction", "contradicts", "definition", "disjunction",
    "distinct_lanes", "evaluate", "formula", "here", "is_data", "lane_classes", "lane_fields", "limits",
    "linear_text", "loosened", "monotone_trip", "negation", "nested_quotients", "pred_polys", "prove_le", "readd",
    "same_extremum", "satisfies", "split_lanes", "support", "transcript", "vectors", "weighted",
]
