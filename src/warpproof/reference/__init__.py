"""Contracts, launch manifests, and NumPy references traced with symbolic arrays."""

from warpproof.reference.concrete import integer
from warpproof.reference.contracts import (
    Argument,
    Contract,
    DataType,
    In,
    InOut,
    Out,
    Scalar,
    Size,
    SizeExpression,
    bf16,
    bool_,
    call,
    cdiv,
    contract,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from warpproof.reference.expressions import Expression, parse_expression
from warpproof.reference.facts import Facts
from warpproof.reference.limits import uniform_contents
from warpproof.reference.loading import load_contract, load_spec, source_of
from warpproof.reference.manifest import (
    ConcreteShape,
    Launch,
    LaunchOptions,
    Param,
    dtype_range,
    load_launch,
    row_major,
    with_check_sizes,
)
from warpproof.reference.replay import evaluate
from warpproof.reference.roundings import Roundings, roundings
from warpproof.reference.signature import check_signature
from warpproof.reference.symbolic import ElementFact, FloatFact, SymbolicBuffer, SymbolicLaunch, symbolic_launch
from warpproof.reference.tracing import SymbolicArray, depends_on_inputs, trace
from warpproof.reference.wording import describe

__all__ = [
    "Argument", "ConcreteShape", "Contract", "DataType", "ElementFact", "Expression", "Facts", "FloatFact", "In",
    "InOut", "Launch", "LaunchOptions", "Out", "Param", "Roundings", "Scalar", "Size", "SizeExpression",
    "SymbolicArray", "SymbolicBuffer", "SymbolicLaunch", "bf16", "bool_", "call", "cdiv", "check_signature",
    "contract", "depends_on_inputs", "describe", "dtype_range", "evaluate", "f16", "f32", "f64", "i16", "i32", "i64",
    "i8", "integer", "load_contract", "load_launch", "load_spec", "parse_expression", "roundings", "row_major",
    "source_of", "symbolic_launch", "trace", "u16", "u32", "u64", "u8", "uniform_contents", "with_check_sizes",
]
