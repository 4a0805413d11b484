"""The colors of diagrams: one per role through the whole book, on light pages and on dark ones."""

from dataclasses import dataclass

FONT = "system-ui,-apple-system,'Segoe UI','Noto Sans','DejaVu Sans',sans-serif"


@dataclass(frozen=True)
class Colors:
    """The fill of a role's boxes and the color of its borders, lines and arrows."""

    fill: str
    edge: str


@dataclass(frozen=True)
class Theme:
    """The colors of one kind of page.

    Args:
        ink: Text and lines.
        muted: Text that comes second.
        paper: The page itself.
        roles: The colors of each role.
    """

    ink: str
    muted: str
    paper: str
    roles: dict[str, Colors]


LIGHT = Theme(
    ink="#22262a",
    muted="#595f66",
    paper="#fffefb",
    roles={
        "query": Colors("#d5e4f8", "#1051a8"),
        "key": Colors("#f8e3b5", "#a67310"),
        "value": Colors("#cdeee0", "#1f9870"),
        "encoder": Colors("#e8dafd", "#741af2"),
        "decoder": Colors("#f4d5e6", "#7d1857"),
        "plain": Colors("#f3f1ea", "#70767c"),
        "masked": Colors("#e3e1da", "#84888c"),
        "focus": Colors("#fffefb", "#22262a"),
        "high": Colors("#79b4dc", "#2a78b0"),
        "low": Colors("#f0a15e", "#c25a00"),
    },
)
DARK = Theme(
    ink="#dfe1e0",
    muted="#a9b0b0",
    paper="#14171a",
    roles={
        "query": Colors("#1b3358", "#6a9bf5"),
        "key": Colors("#4a2a10", "#eb8536"),
        "value": Colors("#1d4a3a", "#b3eec0"),
        "encoder": Colors("#3f3152", "#dbbcf2"),
        "decoder": Colors("#521637", "#ef4d98"),
        "plain": Colors("#262b30", "#8d9499"),
        "masked": Colors("#32373b", "#787e83"),
        "focus": Colors("#14171a", "#dfe1e0"),
        "high": Colors("#236491", "#5fa9da"),
        "low": Colors("#8f4505", "#f08c3c"),
    },
)
ROLES = tuple(LIGHT.roles)
#: The second cue of a line's role, for whom colors do not tell apart: lengths of strokes and gaps.
DASHES = {"key": "6 3", "value": "1.5 3.5", "decoder": "9 3 2 3", "masked": "3 3"}


def role_named(name: str) -> str:
    """Return a role's name as it is.

    Raises:
        ValueError: If there is no such role.
    """
    if name not in ROLES:
        raise ValueError(f"role {name!r} is unknown: choose one of {', '.join(ROLES)}")
    return name


def style_sheet(roles: set[str]) -> str:
    """Return the rules that a picture of these roles carries, for a page of its own and for the book's.

    A picture that is a document of its own (JupyterLab and GitHub show it so) follows the reader's system; in
    the book it follows the page's theme and has no background; elsewhere it is a light card.
    """
    named = [role for role in ROLES if role in roles]
    rules = [
        f".dgm{{{_variables(LIGHT, named)}}}",
        f"@media (prefers-color-scheme:dark){{svg:root .dgm{{{_variables(DARK, named)}}}}}",
        f"html[data-theme=dark] .dgm{{{_variables(DARK, named)}}}",
        "html[data-theme] .dgm{color:inherit;--paper:var(--pst-color-background)}",
        "html[data-theme] .dgm .x-card{display:none}",
        ".dgm .x-card{fill:var(--paper)}.dgm .x-muted{fill:var(--muted)}.dgm .x-halo{stroke:var(--paper)}",
    ]
    rules += [
        f".dgm .x-{role}{{fill:var(--{role});stroke:var(--{role}-edge)}}"
        f".dgm .x-{role}-heat{{fill:var(--{role})}}"
        f".dgm .x-{role}-line{{stroke:var(--{role}-edge)}}"
        f".dgm .x-{role}-head{{fill:var(--{role}-edge)}}"
        for role in named
    ]
    return "".join(rules)


def _variables(theme: Theme, roles: list[str]) -> str:
    own = "".join(f";--{r}:{theme.roles[r].fill};--{r}-edge:{theme.roles[r].edge}" for r in roles)
    return f"color:{theme.ink};--muted:{theme.muted};--paper:{theme.paper}{own}"
