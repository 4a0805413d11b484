"""The pen that writes a diagram's SVG: rectangles, lines and texts in layers, and their extent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from exformer_lessons.diagrams.lettering import Number, short, small_size, spans, text_width
from exformer_lessons.diagrams.theme import DASHES, LIGHT, role_named

LAYERS = ("frames", "marks", "shapes", "texts")
Point = tuple[Number, Number]


@dataclass(frozen=True)
class Box:
    """A rectangle of the picture: left, top, right and bottom."""

    x0: Number
    y0: Number
    x1: Number
    y1: Number

    def overlaps(self, other: "Box", *, by: Number = 0.0) -> bool:
        """Return whether two boxes have more than a strip of this width in common."""
        return (
            min(self.x1, other.x1) - max(self.x0, other.x0) > by
            and min(self.y1, other.y1) - max(self.y0, other.y0) > by
        )


@dataclass(frozen=True)
class Lettered:
    """A line of text, where it is, and its smallest letter size."""

    text: str
    size: Number
    box: Box


class Pen:
    """Collects the elements of one picture.

    Examples:
        >>> pen = Pen()
        >>> pen.rectangle(0, 0, 40, 20, role="query")
        >>> pen.elements()[0][:38]
        '<rect class="x-query" x="0" y="0" widt'
        >>> pen.reach()
        Box(x0=0, y0=0, x1=40, y1=20)
    """

    def __init__(self) -> None:
        self.layers: dict[str, list[str]] = {layer: [] for layer in LAYERS}
        self.boxes: list[Box] = []
        self.texts: list[Lettered] = []
        self.roles: set[str] = set()

    def elements(self) -> list[str]:
        """Return the elements, the lowest layer first."""
        return [element for layer in LAYERS for element in self.layers[layer]]

    def reach(self) -> Box:
        """Return the box that holds all that was drawn."""
        return Box(
            min(box.x0 for box in self.boxes),
            min(box.y0 for box in self.boxes),
            max(box.x1 for box in self.boxes),
            max(box.y1 for box in self.boxes),
        )

    def rectangle(
        self,
        x: Number,
        y: Number,
        width: Number,
        height: Number,
        *,
        role: str,
        radius: Number = 0.0,
        dash: str = "",
        heat: Number | None = None,
        hollow: bool = False,
        layer: str = "shapes",
    ) -> None:
        """Draw a rectangle in a role's colors.

        Args:
            x: Of its left edge.
            y: Of its upper edge.
            width: In units.
            height: In units.
            role: Whose colors it has.
            radius: Of the corners.
            dash: Strokes and gaps of the border.
            heat: How strong its fill is, from 0 to 1; it has no border then.
            hollow: Whether it has a border only.
            layer: Where in the pile.
        """
        colors = LIGHT.roles[role_named(role)]
        self.roles.add(role)
        shape = f'x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}"'
        shape += f' rx="{short(radius)}"' if radius else ""
        if heat is None:
            dash = dash or DASHES["masked"] * (role == "masked")
            name, fill = (f"x-{role}-line", "none") if hollow else (f"x-{role}", colors.fill)
            paint = f'class="{name}" {shape} fill="{fill}" stroke="{colors.edge}"'
            paint += f' stroke-dasharray="{dash}"' if dash else ""
        else:
            paint = f'class="x-{role}-heat" {shape} fill="{colors.fill}" fill-opacity="{heat:.2f}"'
        self.layers[layer].append(f"<rect {paint}/>")
        self.boxes.append(Box(x, y, x + width, y + height))

    def path(
        self,
        points: Sequence[Point],
        *,
        steps: str = "",
        role: str = "",
        width: Number = 1.5,
        dash: str | None = None,
        opacity: Number = 1.0,
        filled: bool = False,
        layer: str = "marks",
    ) -> None:
        """Draw a line through points, or as the steps say, in ink or in the color of a role.

        Args:
            points: Where it goes; what the picture makes room for.
            steps: The path's own commands, without which the points are joined by straight lines.
            role: Whose color; without it ink.
            width: Of the line.
            dash: Strokes and gaps; without it those of the role.
            opacity: From 0 to 1.
            filled: Whether it is an area, such as the head of an arrow.
            layer: Where in the pile.
        """
        if role:
            self.roles.add(role_named(role))
        color = LIGHT.roles[role].edge if role else "currentColor"
        name = f'class="x-{role}-{"head" if filled else "line"}" ' if role else ""
        steps = steps or "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points) + "Z" * filled
        if filled:
            paint = f'fill="{color}" stroke="none"'
        else:
            dash = DASHES.get(role, "") if dash is None else dash
            paint = f'fill="none" stroke="{color}" stroke-width="{short(width)}"'
            paint += f' stroke-dasharray="{dash}"' if dash else ""
        paint += f' opacity="{opacity:.2f}"' if opacity < 1 else ""
        self.layers[layer].append(f'<path {name}d="{steps}" {paint}/>')
        xs, ys = [x for x, _ in points], [y for _, y in points]
        half = 0.0 if filled else width / 2
        self.boxes.append(Box(min(xs) - half, min(ys) - half, max(xs) + half, max(ys) + half))

    def circle(self, x: Number, y: Number, radius: Number, *, role: str, layer: str = "shapes") -> None:
        """Draw a disk in a role's colors."""
        colors = LIGHT.roles[role_named(role)]
        self.roles.add(role)
        self.layers[layer].append(
            f'<circle class="x-{role}" cx="{short(x)}" cy="{short(y)}" r="{short(radius)}"'
            f' fill="{colors.fill}" stroke="{colors.edge}"/>'
        )
        self.boxes.append(Box(x - radius, y - radius, x + radius, y + radius))

    def text(
        self,
        x: Number,
        middle: Number,
        line: str,
        *,
        size: Number,
        anchor: str = "middle",
        bold: bool = False,
        muted: bool = False,
        literal: bool = False,
        halo: bool = False,
    ) -> None:
        """Write a line whose capitals are centered on a height; a halo keeps lines off it."""
        if not line:
            return
        baseline = middle + 0.36 * size
        inside = spans(line, size=size, literal=literal)
        paint = f'class="x-muted" fill="{LIGHT.muted}"' if muted else 'fill="currentColor"'
        place = f'x="{short(x)}" y="{short(baseline)}" font-size="{short(size)}"'
        place += "" if anchor == "middle" else f' text-anchor="{anchor}"'
        place += ' font-weight="600"' if bold else ""
        if halo:
            self.layers["texts"].append(
                f'<text class="x-halo" aria-hidden="true" {place} fill="none" stroke="{LIGHT.paper}"'
                f' stroke-width="4" stroke-linejoin="round">{inside}</text>'
            )
        self.layers["texts"].append(f"<text {paint} {place}>{inside}</text>")
        width = text_width(line, size=size, bold=bold, literal=literal)
        left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        box = Box(left, baseline - 0.76 * size, left + width, baseline + 0.22 * size)
        self.boxes.append(box)
        least = small_size(size) if "font-size" in inside else size
        self.texts.append(Lettered(line, least, box))

    def head(
        self, tip: Point, heading: Number, *, role: str = "", size: Number = 8.0, opacity: Number = 1.0
    ) -> None:
        """Draw the head of an arrow at its tip; the heading is in radians, 0 to the right, clockwise."""
        back = [(-size, -0.42 * size), (-0.72 * size, 0.0), (-size, 0.42 * size)]
        cos, sin = math.cos(heading), math.sin(heading)
        turned = [(tip[0] + x * cos - y * sin, tip[1] + x * sin + y * cos) for x, y in back]
        self.path([tip, *turned], role=role, filled=True, opacity=opacity)
