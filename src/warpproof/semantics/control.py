"""Control flow and the instructions a machine carries out itself (PTX ISA 9.7.12, 9.7.19)."""

from __future__ import annotations

from warpproof.semantics.registry import control

_FLOW = "control-flow-instructions"
_MISC = "miscellaneous-instructions"

control("bra", "bra{.uni} target:label", manual=f"{_FLOW}-bra")
control("brx", "brx.idx{.uni} index:u32, table:label", manual=f"{_FLOW}-brx-idx")
control("call", "call{.uni} a:any{, b:any}{, c:any}{, e:any}", manual=f"{_FLOW}-call")
control("ret", "ret{.uni}", manual=f"{_FLOW}-ret")
control("exit", "exit", manual=f"{_FLOW}-exit")
control("trap", "trap", manual=f"{_MISC}-trap")
control("trap", "brkpt", manual=f"{_MISC}-brkpt")
control("nop", "nanosleep.u32 t:u32", manual=f"{_MISC}-nanosleep")
control("nop", "pmevent{.mask} a:imm", manual=f"{_MISC}-pmevent")
control("nop", "setmaxnreg.action.sync.aligned.u32 count:imm", manual=f"{_MISC}-setmaxnreg", action="inc dec")
