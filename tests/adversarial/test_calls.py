"""Attacks through device functions: arguments, early returns, barriers and stores inside, local variables of a call."""

from __future__ import annotations

import pytest
from attempt import HEAD, REGISTERS, Case, function, verdict
from elementwise_cases import ELEMENTWISE, FULL, IN, OUT

_REGISTERS = ".reg .pred %p<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;"
TWICE = f""".func (.param .f32 r) g(.param .f32 a) {{ {_REGISTERS} ld.param.f32 %f1, [a]; add.f32 %f1, %f1, %f1;
            st.param.f32 [r], %f1; ret; }}"""
RAMP = f""".func (.param .f32 r) g(.param .f32 a) {{ {_REGISTERS} ld.param.f32 %f1, [a]; st.param.f32 [r], %f1;
           setp.gt.f32 %p1, %f1, 0f00000000; @%p1 bra X; st.param.f32 [r], 0f00000000; X: ret; }}"""
LEAVE = f""".func (.param .f32 r) g(.param .f32 a) {{ {_REGISTERS} ld.param.f32 %f1, [a]; st.param.f32 [r], %f1;
            setp.gt.f32 %p1, %f1, 0f00000000; @%p1 exit; ret; }}"""
STALE = f""".func (.param .f32 r) g(.param .f32 a) {{ .local .align 4 .b8 m[4]; {_REGISTERS} mov.u64 %rd1, m;
            ld.param.f32 %f1, [a]; ld.local.f32 %f2, [%rd1]; st.local.f32 [%rd1], %f1; st.param.f32 [r], %f2; ret; }}"""
MEET = ".func g() { bar.sync 0; ret; }"
PUT = f""".func g(.param .b64 p, .param .f32 v) {{ {_REGISTERS} ld.param.u64 %rd1, [p]; ld.param.f32 %f1, [v];
          st.global.f32 [%rd1], %f1; ret; }}"""
SPOIL = f".func g(.param .b64 p) {{ {_REGISTERS} ld.param.u64 %rd1, [p]; st.local.u8 [%rd1+1], 7; ret; }}"
CALL = "{ .param .f32 a0; .param .f32 r0; st.param.f32 [a0], %f1; call.uni (r0), g, (a0); ld.param.f32 %f1, [r0]; }"
STORE = "{ .param .b64 p0; .param .f32 v0; st.param.b64 [p0], %rd5; st.param.f32 [v0], %f1; call.uni g, (p0, v0); }"
LOCAL = """.local .align 4 .b8 frame[4]; mov.u64 %rd9, frame; st.local.f32 [%rd9], %f1;
           { .param .b64 p0; st.param.b64 [p0], %rd9; call.uni g, (p0); } ld.local.f32 %f1, [%rd9];"""

CASES = [
    (TWICE, Case("argument and result", True, IN + CALL + OUT, "y=x * 2.0")),
    (TWICE, Case("result ignored", False, IN + CALL + OUT)),
    (TWICE, Case("registers of the caller stay", True, IN + "mov.f32 %f2, %f1;" + CALL + "st.global.f32 [%rd5], %f2;")),
    (TWICE, Case("argument not set", False, IN + CALL.replace("st.param.f32 [a0], %f1;", "") + OUT, "y=x * 2.0")),
    (RAMP, Case("two ways out", True, IN + CALL + OUT, "y=np.maximum(x, 0)")),
    (RAMP, Case("one of two ways out", False, IN + CALL + OUT)),
    (LEAVE, Case("threads end inside", False, IN + CALL + OUT)),
    (STALE, Case("local variable of the call before", False, IN + CALL + CALL.replace("0;", "1;").replace("0]", "1]")
                 .replace("r0", "r1").replace("a0", "a1") + OUT)),
    (MEET, Case("barrier inside", True, IN + "call.uni g;" + OUT, pre=FULL)),
    (MEET, Case("barrier inside, some call", False, IN + "setp.gt.f32 %p3, %f1, %f0; @%p3 bra Q; call.uni g;\nQ:" + OUT,
                pre=FULL)),
    (PUT, Case("store inside", True, IN + STORE)),
    (PUT.replace("[%rd1]", "[%rd1+4]"), Case("store inside, out of bounds", False, IN + STORE)),
    (SPOIL, Case("local variable overwritten inside", False, IN + LOCAL + OUT)),
    (SPOIL.replace("st.local.u8 [%rd1+1], 7;", ""), Case("local variable kept", True, IN + LOCAL + OUT)),
]


@pytest.mark.parametrize(("functions", "case"), CASES, ids=[c.name for _, c in CASES])
def test_verdict(functions: str, case: Case) -> None:
    text = (f"{HEAD}{functions}\n.visible .entry k(.param .u64 px, .param .u64 py, .param .u32 pn)\n{{ {REGISTERS}\n"
            f"{ELEMENTWISE.prologue}\n{case.body}\nDONE: ret;\n}}\n")
    manifest = {"kernel": "k", "dynamic_shared": "0", **ELEMENTWISE.launch}
    if case.pre:
        manifest["preconditions"] = list(case.pre)
    found = verdict(text, manifest, function(ELEMENTWISE.arguments, case.reference or ELEMENTWISE.reference))
    assert (found == "PROVED") is case.good, found
