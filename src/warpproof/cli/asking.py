"""A confined worker's questions to a solver, which is a process of its own."""

from __future__ import annotations

from collections.abc import Mapping

from warpproof.cli.worker import Channel
from warpproof.solve import SmtAnswer, answer_with


def answer_through(channel: Channel) -> None:
    """Have SMT questions answered by the process outside."""

    def answer(text: str, timeout_s: float, rlimit: int) -> SmtAnswer:
        channel.say({"question": {"text": text, "milliseconds": int(timeout_s * 1000), "rlimit": rlimit}})
        reply = channel.hear()
        if not isinstance(reply, Mapping):
            return SmtAnswer("unknown", detail="no answer")
        if reply.get("status") not in ("sat", "unsat"):
            return SmtAnswer("unknown", detail=str(reply.get("detail", "")))
        return SmtAnswer(reply["status"], {k: int(v) for k, v in reply.get("model", {}).items()})

    answer_with(answer)
