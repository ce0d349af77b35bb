"""Line charts with bands as SVG, small enough to read in a diff; dark pages get dark charts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

#: Sizes in pixels of a panel, of the space around its axes, and of the legend above all panels.
WIDTH, HEIGHT = 380, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 30, 40
LEGEND = 26

#: About how many lines a grid has.
TICKS = 5

STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #3d444d; }
text.title { font-weight: 600; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.band { opacity: 0.16; }
.ours { stroke: #0969da; } .band.ours, .dot.ours { fill: #0969da; stroke: none; }
.other { stroke: #bc4c00; } .band.other, .dot.other { fill: #bc4c00; stroke: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #c9d1d9; } .grid { stroke: #3d444d; } .band { opacity: 0.25; }
  .ours { stroke: #58a6ff; } .band.ours, .dot.ours { fill: #58a6ff; }
  .other { stroke: #f0883e; } .band.other, .dot.other { fill: #f0883e; }
}"""


@dataclass(frozen=True)
class Line:
    """Points (x, mean, low, high) from left to right; ``style`` is ``ours`` or ``other``."""

    name: str
    style: str
    points: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes; the vertical one goes from 0 to what is needed."""

    title: str
    x_label: str
    lines: Sequence[Line]


def chart(panels: Sequence[Panel]) -> str:
    """Panels side by side under one legend, as an SVG document."""
    width, height = WIDTH * len(panels), HEIGHT + LEGEND
    top = _nice_top(high for panel in panels for line in panel.lines for *_, high in line.points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        f"<style>\n{STYLE}\n</style>",
        *_legend(panels[0].lines),
    ]
    for index, panel in enumerate(panels):
        parts.append(f'<g transform="translate({index * WIDTH} {LEGEND})">')
        parts += _panel(panel, top)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def ticks(top: float) -> list[float]:
    """Round values from 0 up to ``top``, about ``TICKS`` of them."""
    raw = top / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    return [round(step * i, 10) for i in range(math.floor(top / step + 1e-9) + 1)]


def _nice_top(values: Iterable[float]) -> float:
    highest = max(values, default=0.0) or 1.0
    step = ticks(highest)[1]
    return math.ceil(highest / step - 1e-9) * step


def _legend(lines: Sequence[Line]) -> list[str]:
    parts, x = [], LEFT
    for line in lines:
        parts.append(f'<line class="line {line.style}" x1="{x}" x2="{x + 22}" y1="14" y2="14"/>')
        parts.append(f'<text x="{x + 28}" y="18">{escape(line.name)}</text>')
        x += 60 + 7 * len(line.name)
    return parts


def _panel(panel: Panel, top: float) -> list[str]:
    right = max((x for line in panel.lines for x, *_ in line.points), default=0.0) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * x / right
        return round(across, 1), round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / top, 1)

    parts = [f'<text class="title" x="{LEFT}" y="18">{escape(panel.title)}</text>']
    for value in ticks(top):
        x, y = place(0, value)
        parts.append(f'<line class="grid" x1="{x}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{x - 6}" y="{y + 4}" text-anchor="end">{value:g}</text>')
    for value in ticks(right):
        x, y = place(value, 0)
        parts.append(f'<text x="{x}" y="{y + 17}" text-anchor="middle">{value:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(panel.x_label)}</text>'
    )
    for line in panel.lines:
        upper = [place(x, high) for x, _, _, high in line.points]
        lower = [place(x, low) for x, _, low, _ in line.points]
        parts.append(f'<polygon class="band {line.style}" points="{_path(upper + lower[::-1])}"/>')
    for line in panel.lines:
        means = [place(x, mean) for x, mean, _, _ in line.points]
        parts.append(f'<polyline class="line {line.style}" points="{_path(means)}"/>')
        parts += [f'<circle class="dot {line.style}" cx="{x}" cy="{y}" r="2.5"/>' for x, y in means]
    return parts


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
