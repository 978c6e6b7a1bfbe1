"""Workers that are confined before they get what they work on, which is checked where the kernel shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from warpproof.cli.boxes import Box, Guard, Stopped
from warpproof.core import Reason
from warpproof.sandbox import LAYERS, NEEDED, Program, Unconfined, held_filters

SOLVER_BYTES: Final = 2 << 30
_MAX_MILLISECONDS: Final = 1 << 31
_QUESTION: Final = {"text": str, "milliseconds": int, "rlimit": int}


@dataclass(slots=True)
class Sandbox:
    """What confines the workers of a run: layers in force for all of them, and why others are not."""

    mode: str
    layers: tuple[str, ...] = LAYERS
    missing: dict[str, str] = field(default_factory=dict)
    seen: bool = False

    def add(self, layers: Mapping[str, Any], missing: Mapping[str, Any]) -> None:
        """One more worker."""
        self.seen = True
        self.layers = tuple(name for name in self.layers if name in layers)
        self.missing |= {str(k): str(v) for k, v in missing.items()}

    def as_dict(self) -> dict[str, Any]:
        """For the report of a program."""
        return {"mode": self.mode, "layers": list(self.layers if self.seen else ()), "missing": dict(self.missing)}

    def line(self) -> str:
        """For the report of a person."""
        if self.mode == "off":
            return "sandbox: off; nothing was confined"
        if not self.seen:
            return "sandbox: nothing ran"
        without = "".join(f"; no {name}: {why}" for name, why in self.missing.items())
        return f"sandbox: {', '.join(self.layers)}{without}"


def confirm(program: Program, sandbox: Sandbox, message: Mapping[str, Any]) -> None:
    """Take a worker's word that it is confined, and compare its filter with the proved one where the kernel shows it.

    Unconfined if the kernel holds anything else than what was proved. Nothing untrusted was sent to it yet.
    """
    layers, missing = _claimed(message["confined"], sandbox.mode)
    if sandbox.mode != "off":
        held = held_filters(int(message["pid"]))
        if isinstance(held, str):
            missing["read-back"] = held
        else:
            for tid, thread in held.items():
                if thread.filters != (program,) or not thread.no_new_privs or thread.mode != "2":
                    raise Unconfined("read-back", f"thread {tid} holds {len(thread.filters)} filters, "
                                                  "not the one proved")
            if not held:
                raise Unconfined("read-back", "the process has no threads")
            layers["read-back"] = None
    sandbox.add(layers, missing)


def _claimed(said: Mapping[str, Any], mode: str) -> tuple[dict[str, None], dict[str, str]]:
    """The layers that a worker says are in force, and why others are not; Unconfined if the mode needs one of those."""
    layers, missing = said.get("layers"), said.get("missing")
    if not isinstance(layers, list) or not isinstance(missing, dict):
        raise Unconfined("filter", "the worker does not say what confines it")
    for layer in NEEDED[mode]:
        if layer not in layers:
            raise Unconfined(layer, "the worker does not say that it is in force")
    return {name: None for name in LAYERS if name in layers}, {str(k): str(v) for k, v in missing.items()}


def ready(box: Box, sandbox: Sandbox) -> Stopped | Mapping[str, Any] | None:
    """Wait until the worker is confined. None: it is; else what it said instead, or why it said nothing."""
    message = box.receive()
    match message:
        case Stopped() | {"error": dict(), "rendered": str()} | {"stopped": {"reason": str(), "detail": str()}}:
            return message
        case {"missing": str(layer), "why": str(why)}:
            return unconfined(layer, why, sandbox.mode)
        case {"confined": dict(), "pid": int()}:
            try:
                confirm(box.program, sandbox, message)
            except Unconfined as error:
                return unconfined(error.layer, error.why, sandbox.mode)
            return None
    return Stopped(Reason.CRASH, "the worker answered before it was asked", box.noise())


def unconfined(layer: str, why: str, mode: str) -> Stopped:
    """A layer is missing: nothing ran."""
    hint = "; --sandbox=auto needs less" if mode == "strict" else "; --no-sandbox would go on without any"
    return Stopped(Reason.SANDBOX, f"not run, since the layer {layer!r} is missing: {why}{hint}")


def answer(work: str, job: Mapping[str, Any], given: Mapping[str, Any], guard: Guard, sandbox: Sandbox
           ) -> Stopped | Mapping[str, Any]:
    """One piece of work in a worker of its own: its answer, or why there is none."""
    with Box(work, job, guard) as box:
        return finish(box, given, sandbox)


def finish(box: Box, given: Mapping[str, Any], sandbox: Sandbox) -> Stopped | Mapping[str, Any]:
    """The same for a worker that was started before."""
    other = ready(box, sandbox)
    if other is not None:
        return other
    box.send(given)
    return box.receive()


def converse(box: Box, solver: Solver, probe: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
             ) -> Stopped | Mapping[str, Any]:
    """The worker's answer. Meanwhile its questions are put to the solver, and to the kernel if `probe` asks that."""
    while True:
        message = box.receive()
        match message:
            case {"question": dict(question)} if is_question(question):
                box.send(solver.ask(question))
            case {"probe": dict(question)} if probe is not None:
                box.send(probe(question))
            case _:
                return message


def is_question(question: Mapping[str, Any]) -> bool:
    """Whether it can be put to a solver."""
    proper = all(type(question.get(name)) is kind for name, kind in _QUESTION.items())
    return proper and 0 <= question["milliseconds"] < _MAX_MILLISECONDS


class Solver:
    """A confined solver, started at the first question and again after a kill."""

    def __init__(self, guard: Guard, sandbox: Sandbox) -> None:
        self._guard, self._sandbox = guard, sandbox
        self._box: Box | None = None

    def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The status of a script; unknown if it takes longer than it may, or the solver dies."""
        if self._box is None:
            box = Box("ask", {}, self._guard, SOLVER_BYTES)
            self._box = box
            if ready(box, self._sandbox) is not None:
                return self._lost("the solver cannot be confined, or does not start")
        sent = self._box.send({name: question[name] for name in ("text", "milliseconds", "rlimit")})
        reply = self._box.receive(question["milliseconds"] / 1000 + 0.5) if sent else None
        if reply is None or isinstance(reply, Stopped):
            return self._lost("timeout" if reply is not None and reply.reason is Reason.TIMEOUT else "the solver died")
        result = reply.get("result")
        return result if isinstance(result, Mapping) else {"status": "unknown", "detail": "no answer of the solver"}

    def _lost(self, detail: str) -> Mapping[str, Any]:
        self.close()
        return {"status": "unknown", "detail": detail}

    def close(self) -> None:
        """End it, if one runs."""
        box, self._box = self._box, None
        if box is not None:
            box.close()
