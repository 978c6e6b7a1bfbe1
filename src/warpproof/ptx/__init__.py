"""PTX text: lexer, parser, syntax tree, printer, name resolution and the `.loc` line map."""

from warpproof.ptx.kernel import Kernel, Parameter, RegisterType
from warpproof.ptx.lexer import Tokens, lex, tokens
from warpproof.ptx.parser import parse
from warpproof.ptx.printer import print_instruction, print_module, print_operand
from warpproof.ptx.resolve import load, resolve
from warpproof.ptx.syntax import (
    Address,
    AddressValue,
    Block,
    Directive,
    FieldValue,
    FloatImmediate,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Label,
    LabelTable,
    ListValue,
    Minus,
    Module,
    Negated,
    Operand,
    Pair,
    Pointer,
    Register,
    RegisterDecl,
    Signature,
    Sink,
    Statement,
    Symbol,
    Text,
    Value,
    Variable,
    Vector,
)

__all__ = [
    "Address", "AddressValue", "Block", "Directive", "FieldValue", "FloatImmediate", "Function", "Group", "Guard",
    "Immediate", "Instruction", "Kernel", "Label", "LabelTable", "ListValue", "Minus", "Module", "Negated", "Operand",
    "Pair", "Parameter", "Pointer", "Register", "RegisterDecl", "RegisterType", "Signature", "Sink", "Statement",
    "Symbol", "Text", "Tokens", "Value", "Variable", "Vector", "lex", "load", "parse", "print_instruction",
    "print_module", "print_operand", "resolve", "tokens",
]
