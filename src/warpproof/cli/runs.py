"""The outcome of `run` and `replay` as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from warpproof.report import Line, counterexample_lines

SHOWN: Final = 5
_REPLAYED: Final = {
    "same": "reproduced: the saved counterexample, bit for bit",
    "changed": "still fails, but not as it was saved: the kernel, the contract or the compiler has changed",
    "gone": "no longer fails",
}
_WORDS: Final = {
    True: ("agrees with the reference", "bold green"), False: ("does not agree", "bold red"),
    None: ("has no fault; its outputs were not compared", "bold yellow"),
}


def run_lines(result: Mapping[str, Any]) -> list[Line]:
    """Sizes, then what every output and every fault of the run says."""
    word = _WORDS[result["agrees"]]
    sizes = ", ".join(f"{k} = {v}" for k, v in result["sizes"].items())
    lines: list[Line] = [((result["kernel"], "bold"), ("  ", ""), word)]
    if "ctas" in result:
        ran = ", ".join(f"({', '.join(map(str, c))})" for c in result["ctas"])
        lines.append(((f"  only CTA {ran} was run; outputs of this size are not compared", "yellow"),))
    lines.append(((f"  {sizes or 'no sizes'}; grid {tuple(result['grid'])}, block {tuple(result['block'])}; "
                   f"{result['steps']} instructions", "dim"),))
    if "replay" in result:
        lines.append(((f"  {_REPLAYED[result['replay']]}", "bold"),))
    if not result["completed"]:
        lines.append((("  the run did not come to its end; values are not final", "yellow"),))
    for output in result["outputs"]:
        lines += _output(output)
    for finding in result["findings"][:SHOWN]:
        lines += [((f"  {finding['kind']}: {finding['summary']}", "red"),)]
        lines += counterexample_lines({"accesses": finding["accesses"]})[1:]
    more = len(result["findings"]) - SHOWN
    if more > 0:
        lines.append(((f"  and {more} more faults", "red"),))
    return lines + [((f"  note: {note}", "dim"),) for note in result["notes"]]


def _output(output: Mapping[str, Any]) -> list[Line]:
    if output["mismatched"] == 0:
        return [((f"  {output['output']}: {output['total']} elements agree", "green"),)]
    lines: list[Line] = [((f"  {output['output']} differs", "red"),)]
    lines += counterexample_lines(output)[1:]
    if output.get("unwritten"):
        lines.append(((f"    {output['unwritten']} elements were never written", "red"),))
    return lines
