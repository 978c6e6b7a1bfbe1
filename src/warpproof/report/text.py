"""Reports as lines for people: one line per property, then scope, assumptions, counterexample, time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TextIO

from warpproof.core import PROPERTIES, Reason, Verdict
from warpproof.judge import PropertyResult, Report
from warpproof.report.witness import witness_lines

Line = tuple[tuple[str, str], ...]  # (text, rich style) pieces
_STYLE: Final = {Verdict.PROVED: "bold green", Verdict.REFUTED: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SETTLE: Final = {
    Reason.TIMEOUT: "a longer --timeout may settle it",
    Reason.MEMORY: "a larger --memory may settle it",
    Reason.NEEDS_PRECONDITION: "state the precondition in the contract",
    Reason.REPLAY: "no concrete run confirmed the symbolic failure",
    Reason.CRASH: "this is a fault of warpproof; please report it",
}


def report_lines(report: Report) -> list[Line]:
    """The whole report, one entry per line."""
    lines: list[Line] = [((report.kernel, "bold"), ("  ", ""), (report.verdict.value, _STYLE[report.verdict]))]
    if report.sizes:
        narrow = report.fallback is not None and report.fallback.shown
        lines.append(((f"  {report.sizes}", "bold yellow" if narrow else "dim"),))
        if report.fallback is not None and narrow:
            lines += [((f"  {part}", ""),) for part in report.fallback.why.splitlines()]
    lines += _properties(report)
    if _may_fall_back(report):
        lines.append((("  for fixed sizes, try --check-sizes samples, or --check-sizes with values", "dim"),))
    if report.assumptions:
        lines.append((("  assuming", ""),))
        for a in report.assumptions:
            source = f"  [{a.source}]" if a.source else ""
            lines.append((("    ", ""), (a.name, "cyan"), (f": {a.text}", ""), (source, "dim")))
    if report.counterexample is not None:
        lines += counterexample_lines(report.counterexample)
    for advice in report.advice:
        source = f" ({advice.file}:{advice.line})" if advice.file else ""
        lines.append((("  advice       ", "cyan"), (
            f"PTX line {advice.ptx_line} `{advice.instruction}`{source}: {advice.text}", "")))
    if report.certificate:
        lines.append((("  certificate ", "dim"), (report.certificate, "")))
    peak = f", {report.peak_mb:.0f} MB" if report.peak_mb else ""
    lines.append(((f"  {report.time_s:.2f} s{peak}", "dim"),))
    return lines


def _may_fall_back(report: Report) -> bool:
    """True for a report on all sizes in which something stayed open that fixed sizes may settle."""
    reasons = {r.reason for r in report.properties.values() if r is not None}
    settled = {Reason.UNPROVED, Reason.UNSUPPORTED, Reason.LOOP, Reason.TIMEOUT} & reasons
    return bool(settled) and report.fallback is None and report.sizes.startswith("for all ") and (
        report.verdict is Verdict.INCONCLUSIVE)


def _properties(report: Report) -> list[Line]:
    """The properties in order; what several say of themselves is printed once, behind the last of them."""
    lines: list[Line] = []
    for k, name in enumerate(PROPERTIES):
        result = report.properties.get(name)
        following = report.properties.get(PROPERTIES[k + 1]) if k + 1 < len(PROPERTIES) else None
        own = _property_lines(name, result, report.sizes, report.fallback.why if report.fallback else "")
        lines += own[:1] if result is not None and _says_the_same(result, following) else own
    return lines


def _says_the_same(result: PropertyResult, following: PropertyResult | None) -> bool:
    return following is not None and bool(result.detail or following == result) and all(
        getattr(result, what) == getattr(following, what) for what in ("verdict", "reason", "detail", "scope"))


def _property_lines(name: str, result: PropertyResult | None, sizes: str, said: str = "") -> list[Line]:
    head = f"  {name:<12} "
    if result is None:
        return [((head, ""), ("not asked for", "dim"))]
    pieces: list[tuple[str, str]] = [(head, ""), (f"{result.verdict.value:<13}", _STYLE[result.verdict])]
    if result.reason is not None:
        pieces.append((f"{result.reason.value}  ", "yellow"))
    if result.evidence:
        kinds = ", ".join(sorted({e.kind for e in result.evidence}))
        noun = "obligation" if len(result.evidence) == 1 else "obligations"
        pieces.append((f"{len(result.evidence)} {noun}: {kinds}", "dim"))
    lines: list[Line] = [tuple(pieces)]
    if result.scope and result.scope != sizes:
        lines.append(((" " * 15 + result.scope, "dim"),))
    if result.detail and result.detail != said:
        lines += [((" " * 15 + part, ""),) for part in result.detail.splitlines()]
    if result.reason in _SETTLE:
        lines.append(((" " * 15 + _SETTLE[result.reason], "dim"),))
    return lines


def counterexample_lines(counterexample: Mapping[str, Any]) -> list[Line]:
    """A counterexample: sizes, inputs, CTA, thread, PTX line with a caret, source line, expected and actual."""
    return [((text, style),) for text, style in witness_lines(counterexample)]


def print_lines(lines: Iterable[Line], stream: TextIO) -> None:
    """Print in colour on a terminal, plainly elsewhere or under NO_COLOR; control characters show as `?`."""
    clean = [[(_CONTROL.sub("?", text), style) for text, style in line] for line in lines]
    colour = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if colour:
        _print_rich(clean, stream)
        return
    for line in clean:
        text = "".join(text for text, _ in line).rstrip()
        stream.write(text.encode(stream.encoding or "utf-8", "replace").decode(stream.encoding or "utf-8") + "\n")


def _print_rich(lines: Sequence[Sequence[tuple[str, str]]], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*line))
