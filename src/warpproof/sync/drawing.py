"""An execution as a self-contained SVG: one column per thread, one arrow per relation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from warpproof.sync.execution import Execution, races
from warpproof.sync.frame import bits
from warpproof.sync.printing import event_text
from warpproof.sync.program import Litmus

_COLUMN: Final = 290
_ROW: Final = 62
_BOX: Final = (196, 28)
_TOP: Final = 96
_COLOURS: Final = {"rf": "#15803d", "co": "#a16207", "fr": "#b91c1c", "sync": "#1d4ed8", "sc": "#7e22ce",
                   "bar": "#0e7490", "race": "#db2777"}
_LEGEND: Final = {"rf": "reads from", "co": "coherence", "fr": "from read", "sync": "synchronises",
                  "sc": "Fence-SC", "bar": "barrier", "race": "data race"}


@dataclass(frozen=True, slots=True)
class Arrow:
    """One pair of a relation, by event numbers."""

    relation: str
    source: int
    target: int


def arrows(execution: Execution) -> list[Arrow]:
    """The pairs of the execution's relations worth drawing: coherence and from-read without what follows from it."""
    frame = execution.frame
    found = [Arrow("rf", w, r) for r, w in execution.reads_from.items()]
    found += [Arrow("co", a, b) for a in bits(frame.writes) for b in _next(execution, a)
              if a >= frame.first or a in execution.reads_from.values()]
    found += [Arrow("fr", r, b) for r, w in execution.reads_from.items() for b in _next(execution, w)
              if frame.partner.get(r) != b]
    found += [Arrow("sync", a, b) for a, b in execution.synchronises]
    found += [Arrow("sc", a, b) for a, b in execution.fence_sc]
    found += [Arrow("bar", a, b) for a, b in execution.meeting.edges if a < b or (b, a) not in execution.meeting.edges]
    found += [Arrow("race", a, b) for a, b in races(execution)]
    return found


def _next(execution: Execution, write: int) -> Iterator[int]:
    later = execution.coherence[write]
    for b in bits(later):
        if not any(execution.coherence[x] >> b & 1 for x in bits(later)):
            yield b


def draw(test: Litmus, execution: Execution, title: str = "") -> str:
    """The SVG text. Initial writes are shown only where something reads them."""
    frame = execution.frame
    place: dict[int, tuple[int, int]] = {}
    used = [i for i in range(frame.first) if i in execution.reads_from.values()]
    for slot, i in enumerate(used):
        place[i] = (_COLUMN * slot + _COLUMN // 2, _TOP)
    first_row = _TOP + (_ROW + 20 if used else 0) + 20
    depth = [0] * len(test.threads)
    for i in range(frame.first, len(frame.events)):
        thread = frame.thread[i]
        place[i] = (_COLUMN * thread + _COLUMN // 2, first_row + _ROW * depth[thread])
        depth[thread] += 1
    shown = [a for a in arrows(execution) if a.source in place and a.target in place]
    width = _COLUMN * max(len(test.threads), len(used), 2)
    height = first_row + _ROW * max([1, *depth]) + 20
    parts = [_head(width, height), f'<text class="title" x="20" y="30">{escape(title or test.name)}</text>']
    parts += _legend(shown)
    for t, owner in enumerate(test.threads):
        cluster = "" if owner.cluster is None else f", cluster {owner.cluster}"
        label = escape(f"{owner.name} · cta {owner.cta}{cluster}, gpu {owner.gpu}")
        parts.append(f'<text class="thread" x="{_COLUMN * t + _COLUMN // 2}" y="{first_row - 26}">{label}</text>')
    parts += [_line(place[i], place[i + 1]) for i in range(frame.first, len(frame.events) - 1)
              if frame.thread[i] == frame.thread[i + 1]]
    parts += [_curve(a, place, number) for number, a in enumerate(shown)]
    parts += [_box(*place[i], event_text(execution, i)) for i in place]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _head(width: int, height: int) -> str:
    markers = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>' for name, colour in {**_COLOURS, "po": "#6b7280"}.items())
    style = ("text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#111827}.title{font-size:15px;font-weight:600}"
             ".thread{text-anchor:middle;font-weight:600}.event{text-anchor:middle}.relation{font-size:11px;"
             "paint-order:stroke;stroke:#fff;stroke-width:3px}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img"><style>{style}</style><defs>{markers}</defs>'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>')


def _legend(shown: list[Arrow]) -> list[str]:
    parts = []
    x = 20
    for name in dict.fromkeys(a.relation for a in shown):
        parts.append(f'<path d="M{x} 52h22" stroke="{_COLOURS[name]}" stroke-width="2" fill="none"/>'
                     f'<text x="{x + 28}" y="56">{_LEGEND[name]}</text>')
        x += 46 + 8 * len(_LEGEND[name])
    return parts


def _box(x: int, y: int, text: str) -> str:
    w, h = max(_BOX[0], 8 * len(text) + 12), _BOX[1]
    return (f'<rect x="{x - w // 2}" y="{y - h // 2}" width="{w}" height="{h}" rx="5" fill="#f9fafb" '
            f'stroke="#6b7280"/><text class="event" x="{x}" y="{y + 4}">{escape(text)}</text>')


def _line(a: tuple[int, int], b: tuple[int, int]) -> str:
    return (f'<path d="M{a[0]} {a[1] + _BOX[1] // 2}L{b[0]} {b[1] - _BOX[1] // 2 - 2}" stroke="#6b7280" fill="none" '
            'marker-end="url(#po)"/>')


def _curve(arrow: Arrow, place: dict[int, tuple[int, int]], number: int) -> str:
    (x1, y1), (x2, y2) = place[arrow.source], place[arrow.target]
    half, shift = _BOX[0] // 2, (number % 3 - 1) * 7
    if x1 == x2:
        # Both ends in one column: around the side.
        bulge = 46 + 8 * (number % 3)
        points = (x1 + half, y1 + shift, x1 + half + bulge, y1 + shift, x2 + half + bulge, y2 + shift, x2 + half + 2,
                  y2 + shift)
    else:
        side = 1 if x2 > x1 else -1
        points = (x1 + side * half, y1 + shift, x1 + side * (half + 50), y1 + shift, x2 - side * (half + 50),
                  y2 + shift, x2 - side * (half + 2), y2 + shift)
    a, b, c, d, e, f, g, h = points
    middle = ((a + 3 * c + 3 * e + g) // 8, (b + 3 * d + 3 * f + h) // 8)
    colour, dash = _COLOURS[arrow.relation], ' stroke-dasharray="5 3"' if arrow.relation in ("fr", "race") else ""
    return (f'<path d="M{a} {b}C{c} {d} {e} {f} {g} {h}" stroke="{colour}" stroke-width="1.6" fill="none"{dash} '
            f'marker-end="url(#{arrow.relation})"/><text class="relation" x="{middle[0]}" y="{middle[1] - 3}" '
            f'style="fill:{colour}">{arrow.relation}</text>')
