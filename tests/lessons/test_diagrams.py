"""Diagrams: each word can be read on a phone, light or dark, by all eyes; the same text each time."""

import io
import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import matplotlib
import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.ft2font import FT2Font
from test_plotting import BLINDNESS, contrast, lab, linear

from exformer_lessons.diagrams import (
    arrow,
    bars,
    blank,
    box,
    brace,
    clock,
    column,
    draw,
    frame,
    grid,
    label,
    links,
    matrix,
    operator,
    outline,
    place,
    row,
    text,
    tokens,
    vectors,
)
from exformer_lessons.diagrams.drawing import PHONE
from exformer_lessons.diagrams.lettering import runs, signed, small_size, text_width
from exformer_lessons.diagrams.routes import walk
from exformer_lessons.diagrams.theme import DARK, DASHES, LIGHT

SVG = "{http://www.w3.org/2000/svg}"
PARTS = ("query", "key", "value", "encoder", "decoder")
MANNERS = ["light", "dark"]


def stored(path):
    """Return the diagrams that a notebook shows."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [each.get("data", {}) for cell in cells for each in cell.get("outputs", [])]
    found = ["".join(each.get("image/svg+xml", "")) for each in outputs]
    return [svg for svg in found if "x-card" in svg]


#: The diagrams of the book, by notebook and number.
GALLERY = {
    f"{path.stem} {n}": svg
    for path in sorted((Path(__file__).parents[2] / "notebooks").rglob("*.ipynb"))
    for n, svg in enumerate(stored(path))
}


@pytest.mark.parametrize("name", GALLERY)
def test_diagram_is_xml_without_ids(name) -> None:
    found = ET.fromstring(GALLERY[name])
    assert not [each for each in found.iter() if "id" in each.attrib]
    written = [value for each in found.iter() for name, value in each.attrib.items() if "opacity" not in name]
    assert not [value for value in written if re.search(r"\d\.\d\d|\de-\d|nan", value)]
    inked = [each.get("fill") for each in found.iter(f"{SVG}text")]
    assert set(inked) <= {"currentColor", LIGHT.muted, "none"}


@pytest.mark.parametrize("name", GALLERY)
def test_letters_of_a_picture_are_large_enough_for_a_phone(name) -> None:
    svg = GALLERY[name]
    width = float(ET.fromstring(svg).get("viewBox").split()[2])
    written = [float(each) for each in re.findall(r'font-size="([\d.]+)"', svg)]
    assert min(written) * min(1.0, PHONE / width) > 10.75


def test_the_same_lines_draw_the_same_picture() -> None:
    def picture():
        words, cells = tokens(["a", "b"], values=[0.1, 0.9]), matrix([[0.3, 0.7]])
        return draw(column(words, cells, gap=40), arrow(words, cells, role="query"))

    assert picture().svg == picture().svg


# What a browser makes of them.

MEASURE = """() => [...document.querySelectorAll("figure")].map(figure => {
  const svg = figure.querySelector("svg"), frame = svg.getBoundingClientRect();
  const view = svg.getAttribute("viewBox").split(" ").map(Number), scale = frame.width / view[2];
  const height = e => parseFloat(getComputedStyle(e).fontSize);
  const piles = [...svg.querySelectorAll("rect, circle")].map(e => [e.getBBox(), getComputedStyle(e)])
    .filter(([b, style]) => style.display !== "none" && style.fill !== "none")
    .map(([b, style]) => [b, [style.fill, parseFloat(style.fillOpacity)]]);
  const within = (x, y, b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height;
  const under = (x, y) => piles.filter(([b]) => within(x, y, b)).map(([b, fill]) => fill);
  const texts = [...svg.querySelectorAll("text:not(.x-halo)")].map(text => {
    const b = text.getBBox(), size = height(text), base = parseFloat(text.getAttribute("y"));
    return {words: text.textContent,
      x0: b.x, x1: b.x + b.width, y0: base - 0.74 * size, y1: base + 0.2 * size,
      shown: Math.min(...[text, ...text.querySelectorAll("tspan")].map(height)) * scale,
      ink: getComputedStyle(text).fill, under: under(b.x + b.width / 2, base - 0.3 * size)};
  });
  return {name: figure.id, texts, view, width: frame.width};
})"""


def shown(browser, pictures, theme, *, width=PHONE, style=""):
    """Return what a browser measures in pictures on a page of the book's, with so much room for each."""
    paper, ink = (LIGHT.paper, LIGHT.ink) if theme == "light" else (DARK.paper, DARK.ink)
    figures = [
        f'<figure id="{name}" style="width:{width}px;margin:0">{svg}</figure>'
        for name, svg in pictures.items()
    ]
    page = browser.new_page()
    page.set_content(
        f"<!doctype html><html data-theme={theme}><style>html{{--pst-color-background:{paper}}}"
        f"body{{background:{paper};color:{ink}}}svg{{max-width:100%;height:auto}}{style}</style>{''.join(figures)}"
    )
    found = page.evaluate(MEASURE)
    page.close()
    return found, paper


def rgb(written):
    """Return a computed color as a code."""
    return "#" + "".join(f"{int(each):02x}" for each in re.findall(r"\d+", written)[:3])


def blended(layers, paper):
    """Return the color that a pile of fills has, in the browser's way of mixing."""
    mixed = np.array([int(paper[i : i + 2], 16) for i in (1, 3, 5)], dtype=float)
    for fill, part in layers:
        mixed = part * np.array([int(each) for each in re.findall(r"\d+", fill)[:3]]) + (1 - part) * mixed
    return "#" + "".join(f"{round(each):02x}" for each in mixed)


def covering(texts):
    """Return pairs of words that cover each other."""
    return [
        (a["words"], b["words"])
        for a, b in combinations(texts, 2)
        if min(a["x1"], b["x1"]) - max(a["x0"], b["x0"]) > 0.5
        and min(a["y1"], b["y1"]) - max(a["y0"], b["y0"]) > 0.5
    ]


def faults(measured_pictures, paper):
    """Return what cannot be read in pictures, in words."""
    found = []
    for each in measured_pictures:
        x, y, width, height = each["view"]
        found += [f"{each['name']}: {a!r} and {b!r} overlap" for a, b in covering(each["texts"])]
        for one in each["texts"]:
            where = f"{each['name']}, {one['words']!r}"
            if one["shown"] < 10.75:
                found.append(f"{where}: {one['shown']:.1f} px high")
            if not (x <= one["x0"] and one["x1"] <= x + width and y <= one["y0"] and one["y1"] <= y + height):
                found.append(f"{where}: beyond the edge")
            ratio = contrast(rgb(one["ink"]), blended(one["under"], paper))
            if ratio < 4.5:
                found.append(f"{where}: contrast {ratio:.2f}")
    return found


def test_without_a_style_sheet_a_picture_is_a_light_card(browser) -> None:
    bare = {name: re.sub(r"<style>.*?</style>", "", svg) for name, svg in GALLERY.items()}
    found, paper = shown(browser, bare, "light", style="body{background:black !important}")
    assert faults(found, paper) == []
    assert all(each["texts"][0]["under"][0][0] == "rgb(255, 254, 251)" for each in found)


@pytest.mark.parametrize("theme", MANNERS)
def test_every_word_can_be_read_in_a_browser(browser, theme) -> None:
    found, paper = shown(browser, GALLERY, theme)
    assert sum(len(each["texts"]) for each in found) > 2500
    assert all(each["width"] <= PHONE for each in found)
    assert faults(found, paper) == []


def test_what_cannot_be_read_is_found(browser) -> None:
    start = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 40" width="700" height="40">'
    words = '<text x="10" y="20" font-size="14" fill="#22262a">query</text>'
    bad = {
        "covered": start + words + '<text x="12" y="22" font-size="14" fill="#22262a">key</text></svg>',
        "beyond": start + words.replace('x="10"', 'x="690"') + "</svg>",
        "pale": start + words.replace("#22262a", "#999999") + "</svg>",
        "dark": start + '<rect width="90" height="40" fill="#1051a8"/>' + words + "</svg>",
    }
    found, paper = shown(browser, bad, "light")
    said = "\n".join(faults(found, paper))
    for name, fault in (
        ("covered", "overlap"),
        ("beyond", "beyond"),
        ("pale", "contrast"),
        ("dark", "contrast"),
    ):
        assert re.search(f"^{name}.*{fault}", said, flags=re.M), said
    assert said.count("7.2 px high") == 5


def test_color_scheme_of_a_diagram(browser) -> None:
    svg = draw(box("query", role="query")).svg
    for theme, colors in (("light", LIGHT), ("dark", DARK)):
        [found], _ = shown(browser, {"one": svg}, theme)
        [word] = found["texts"]
        assert rgb(word["ink"]) == colors.ink
        assert [rgb(fill) for fill, _ in word["under"]] == [colors.roles["query"].fill]
        page = browser.new_context(color_scheme=theme).new_page()
        page.set_content('<body style="margin:0"><img style="display:block">')
        page.evaluate("svg => document.images[0].src = 'data:image/svg+xml,' + encodeURIComponent(svg)", svg)
        page.evaluate("async () => await document.images[0].decode()")
        pixels = matplotlib.image.imread(io.BytesIO(page.locator("img").screenshot()), format="png")
        assert np.allclose(
            pixels[pixels.shape[0] // 2, 3, :3], [int(colors.paper[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        )
        page.context.close()


def test_in_a_page_of_others_a_picture_is_a_light_card(browser) -> None:
    page = browser.new_context(color_scheme="dark").new_page()
    page.set_content(f"<body style='background:black'>{draw(box('query')).svg}</body>")
    color = "e => getComputedStyle(e).fill"
    assert rgb(page.locator("text").evaluate(color)) == LIGHT.ink
    assert rgb(page.locator("rect").first.evaluate(color)) == LIGHT.paper
    page.context.close()


def test_widths_are_those_of_the_widest_font() -> None:
    font = FT2Font(str(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")))
    font.set_size(100, 72)
    for letter in [*map(chr, range(32, 127)), *"àèéìòùαβθλσφωΣ√−×·…–∞→₁ₖ"]:
        advance = font.load_char(ord(letter)).linearHoriAdvance / 65536 / 100
        assert text_width(letter, size=1.0) == pytest.approx(advance, abs=0.035), letter


def test_words_are_no_wider_than_their_boxes_are_made_for(browser) -> None:
    samples = [
        "Feed-forward",
        "*d*_{model}",
        "softmax(*QK*^{⊤} / √*d*_{k})",
        "WWW iii",
        "−0.52",
        "l'uomo",
        "α_{tj}",
    ]
    pictures = {f"t{n}": draw(text(sample)).svg for n, sample in enumerate(samples)}
    found, _ = shown(browser, pictures, "light", style="text{font-family:'DejaVu Sans'}")
    for sample, each in zip(samples, found, strict=True):
        [word] = each["texts"]
        estimate = text_width(sample, size=14.0)
        assert 0.9 * estimate < word["x1"] - word["x0"] < 1.04 * estimate, sample


# Colors.


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=MANNERS)
def test_text_and_lines_stand_out(theme) -> None:
    for role, colors in theme.roles.items():
        assert contrast(theme.ink, colors.fill) >= 4.5, role
        assert contrast(theme.muted, colors.fill) >= 4.5 or role in ("high", "low"), role
        assert contrast(colors.edge, theme.paper) >= 3, role
    assert contrast(theme.muted, theme.paper) >= 4.5


def test_a_note_is_muted_but_not_on_the_strong_colors() -> None:
    for role in LIGHT.roles:
        svg = draw(box("a", role=role, note="b")).svg
        assert ('class="x-muted"' in svg) == (role not in ("high", "low")), role


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=MANNERS)
@pytest.mark.parametrize("eye", BLINDNESS)
def test_roles_are_told_apart_by_all_eyes(theme, eye) -> None:
    seen = [lab(np.clip(np.array(BLINDNESS[eye]) @ linear(theme.roles[role].edge), 0, 1)) for role in PARTS]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 25


def test_dashes_of_roles_differ() -> None:
    assert len({DASHES.get(role) for role in ("query", "key", "value")}) == 3
    assert DASHES.get("encoder") != DASHES.get("decoder")


def test_both_themes_have_the_same_roles() -> None:
    assert list(LIGHT.roles) == list(DARK.roles)


def test_a_picture_carries_the_colors_of_its_own_roles_only() -> None:
    svg = draw(box("encoder", role="encoder")).svg
    assert "--encoder-edge" in svg
    assert "--query" not in svg


# In the book.


def test_the_book_takes_a_picture_into_its_page() -> None:
    from book_page import inlined

    svg = inlined(draw(box("encoder")).svg, prefix="g1-", alt="An encoder.")
    found = ET.fromstring(svg)  # an attribute given twice would be refused
    assert found.get("aria-label") == "An encoder."
    assert found.find(f"{SVG}g").get("class") == "dgm"
    assert "currentColor" in svg


# Where things are.


def where(picture, *marks):
    """Return the lines of text by their words."""
    return {each.text: each.box for each in draw(picture, *marks).texts}


def middle(found):
    return (found.x0 + found.x1) / 2, (found.y0 + found.y1) / 2


def test_words_beside_a_shape_do_not_move_it_out_of_line() -> None:
    found = where(row(label(box("a"), below="two\nlines"), box("b"), label(box("c"), above="one")))
    assert middle(found["a"])[1] == middle(found["b"])[1] == middle(found["c"])[1]
    found = where(
        column(label(box("a"), right="a long word"), box("b"), frame(box("c"), title="the frame's title"))
    )
    assert middle(found["a"])[0] == pytest.approx(middle(found["b"])[0])
    assert middle(found["c"])[0] == pytest.approx(middle(found["b"])[0])


def test_rows_and_columns_align_at_edges_too() -> None:
    low, high = box("low"), box("high", height=90)
    placed = {each: row(low, high, align=each).children for each in ("top", "bottom", "axis")}
    assert [children[0][2] for children in placed.values()] == [0, 90 - low.height, 45 - low.height / 2]


def test_a_grid_aligns_rows_and_columns() -> None:
    found = where(grid([[box("h1", width=80), box("h2")], [text("a"), text("animal")]], gap=(20, 20)))
    assert middle(found["h1"])[0] == pytest.approx(middle(found["a"])[0])
    assert middle(found["h2"])[0] == pytest.approx(middle(found["animal"])[0])
    assert middle(found["h1"])[1] == middle(found["h2"])[1]


def ends(svg):
    """Return the start of the last line of a picture, and the tip of its head."""
    *_, line, head = re.findall(r'<path[^>]* d="([^"]*)"', svg.replace("<path d", "<path x d"))
    first, tip = (tuple(float(n) for n in re.findall(r"-?[\d.]+", each)[:2]) for each in (line, head))
    return first, tip


@pytest.mark.parametrize("route", ["straight", "elbow", "curve"])
def test_an_arrow_leads_from_edge_to_edge(route) -> None:
    a, b = two_boxes()
    assert ends(draw(row(a, b, gap=50), arrow(a, b, route=route)).svg) == ((40, 15), (90, 15))
    a, b = two_boxes()
    assert ends(draw(column(a, b, gap=50), arrow(b, a, route=route)).svg) == ((20, 80), (20, 30))
    a, b = two_boxes()
    mark = arrow(a.top, b.left.moved(0, 5), route=route)
    assert ends(draw(row(a, b, gap=50), mark).svg) == ((20, 0), (90, 20))


def test_arrow_between_facing_shapes_is_straight() -> None:
    for back in (False, True):
        both = wide, narrow = box("encoder", width=200, height=30), box("h", width=40, height=30)
        picture = place([(wide, 0, 0), (narrow, 70, 80)])
        found = ends(draw(picture, arrow(*both[:: -1 if back else 1])).svg)
        assert found == ((170, 30), (170, 80))[:: -1 if back else 1]


def two_boxes():
    return box("a", width=40, height=30), box("b", width=40, height=30)


def test_an_arrow_leaves_an_edge_at_a_right_angle() -> None:
    for side, route, reach, way in (
        ("top", "elbow", 20, "M20 0L20 -13Q20 -20 27 -20L103 -20Q110 -20 110 -13L110"),
        ("top", "elbow", 8, "M20 0L20 -4Q20 -8 27 -8L"),  # corners of a short way are less round
        ("bottom", "curve", 70, "M20 30C20 100 "),
    ):
        a, b = two_boxes()
        mark = arrow(getattr(a, side), getattr(b, side), route=route, reach=reach)
        assert way in draw(row(a, b, gap=50), mark).svg


def test_even_the_least_weight_can_be_seen() -> None:
    for weight, look in ((0.0, 'stroke-width="0.7" opacity="0.35"'), (1.0, 'stroke-width="5"/>')):
        a, b = box("a"), box("b")
        assert look in draw(row(a, b, gap=50), arrow(a, b, weight=weight)).svg


def test_centered_words_and_margin() -> None:
    picture = draw(box("HEAD", width=80, height=50), padding=8)
    assert 'viewBox="-8 -8 96 66"' in picture.svg
    assert '<text fill="currentColor" x="40" y="30" font-size="14">' in picture.svg  # capitals are 10 high


def test_weights_are_thickness() -> None:
    above, below = tokens(["a", "b"]), tokens(["c", "d"])
    svg = draw(column(above, below, gap=60), links(above, below, [[1.0, 0.5], [0.04, 0.2]])).svg
    assert re.findall(r'<path class="x-high-line".*?stroke-width="([\d.]+)"', svg) == ["1.6", "3.1", "5.6"]


def test_words_beneath_any_token_have_room() -> None:
    high = tokens(["a", "b"], under=["x\ny", "z"]).height
    assert high == tokens(["a", "b"], under=["x", "y\nz"]).height
    assert tokens(["a", "b"], under=["", "z"]).height > tokens(["a", "b"]).height
    draw(tokens(["a", "b", "c", "d"], under=["", "x\ny", "", ""], width=50))  # y and d do not overlap


def test_the_least_weight_is_drawn_and_what_is_below_it_is_not() -> None:
    words, others = tokens(["a", "b"]), tokens(["c", "d"])
    assert len(links(words, others, [[0.25, 0.24], [1.0, 0.0]], least=0.25)) == 2
    assert len(links(words, others, [[0.05, 0.04], [1.0, 0.0]])) == 2  # where nothing is said
    assert len(links(words, others, [[1.0000001, -1e-7], [0.5, 0.5]])) == 3  # off by a rounding


def test_a_brace_has_its_words_beneath() -> None:
    words = tokens(["a", "b"])
    found = where(words, brace(words[0], words[1], "n"))["n"]
    assert middle(found)[0] == words.width / 2
    assert found.y0 > words.height + 10


def test_an_outline_is_around_the_cells_it_names() -> None:
    cells = matrix([[1, 2, 3], [4, 5, 6]], cell=(30, 30))
    svg = draw(cells, outline(cells[1, 2], cells[1, 0], role="query")).svg
    corners = re.search(r'<path class="x-query-line" d="([^"]*)Z"', svg)[1]
    found = np.array(re.findall(r"Q([\d.]+) ([\d.]+)", corners), dtype=float)
    assert sorted(map(tuple, found.tolist())) == [(0, 30), (0, 60), (90, 30), (90, 60)]
    assert svg.index('x-query-line" d') > svg.rindex("<rect")


def test_links_join_the_words_they_name() -> None:
    above, below = tokens(["il", "gatto"]), tokens(["the", "cat", "it"])
    svg = draw(column(below, above, gap=60, align="left"), links(above, below, [[0, 0, 1.0], [0, 0, 0]])).svg
    start, end = re.search(r'd="M([\d.]+) [\d.]+C.* ([\d.]+) [\d.]+"', svg).groups()
    assert float(start) == pytest.approx(above[0].width / 2, abs=0.06)
    assert float(end) == pytest.approx(below[0].width + below[1].width + 8 + below[2].width / 2, abs=0.06)


def test_directions_of_clocks_and_vectors() -> None:
    def tip(shape):
        [x, y] = ends(draw(shape).svg)[1]
        return x, y

    assert tip(clock(0.0, radius=50)) == (50, 7)
    assert tip(clock(math.pi / 2, radius=50)) == (93, 50)
    assert tip(clock(math.pi / 2 + math.tau, radius=50)) == (93, 50)
    (x0, y0), (x1, y1) = ends(draw(vectors([("", math.pi / 2, "query")], radius=50)).svg)
    assert (x1 - x0, y1 - y0) == pytest.approx((0, -50))


def test_the_angle_between_vectors_is_the_lesser_one() -> None:
    svg = draw(vectors([("*q*", 6.0, "query"), ("*k*", 0.4, "key")], between="39°")).svg
    arc = re.findall(r'<path d="(M[^"]*)" fill="none" stroke="currentColor" stroke-width="1.2"', svg)
    assert len(arc) == 1
    assert arc[0].count("L") == int((0.4 - 6.0 + math.tau) * 12)


def test_numbers_are_in_their_cells_whatever_their_color() -> None:
    found = draw(matrix(torch.tensor([[0.5, -1.0], [-math.inf, 0.0]]), rows=["it", "is"], columns=["a", "b"]))
    assert [each.text for each in found.texts] == ["it", "is", "a", "b", "0.50", "−1.00", "−∞", "0.00"]
    cells = re.findall(
        r'<rect class="x-(high|low|masked)(?:-heat)?"[^>]*?(?:fill-opacity="([\d.]+)"|dasharray)', found.svg
    )
    assert cells == [("high", "0.54"), ("low", "1.00"), ("masked", ""), ("high", "0.08")]


@pytest.mark.parametrize(
    ("values", "bars_of"),
    [
        (
            [[1.0, -0.5], [0.0, 0.5]],
            [("high", "11.5", "1.5"), ("low", "11.5", "16.5"), ("high", "34.5", "29.5")],
        ),
        ([[1.0, 0.0]], [("high", "21.5", "1.5")]),  # without negative ones they start at the bottom
    ],
)
def test_cells_without_numbers_have_bars(values, bars_of) -> None:
    svg = draw(matrix(values, numbers=False, cell=(20, 23))).svg
    assert re.findall(r'x-(high|low)-head" d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)L', svg) == bars_of
    assert "<text" not in svg


def test_a_long_row_of_tokens_goes_on_below() -> None:
    words = tokens(["animal"] * 9, values=np.linspace(0, 4, 9), width=300)
    assert 240 < words.width <= 300
    assert [each.text for each in draw(words).texts].count("animal") == 9
    assert words.height > 3 * 30


@pytest.mark.parametrize(
    ("shape", "strengths"),
    [
        (
            matrix([[4.0, 2.0, -0.5, -1.0, -3.0]], limits=(-1, 4)),
            "high 1.00 high 0.54 low 0.54 low 1.00 low 1.00",
        ),
        (matrix([[-9.0, 9.0]], limits=(-1, 4), numbers=False, cell=(20, 23)), "low 1.00 high 1.00"),
        (matrix([[0.0, 0.0]]), "high 0.08 high 0.08"),
        (tokens(["a", "b"], values=[1.0, 4.0], limit=2), "low 0.54 low 1.00"),
        (tokens(["a", "b"], values=[1.0, -4.0]), "low 0.31 low 1.00"),
        (tokens(["the", "cat", "it"], values=[0.0, 2.0, 4.0]), "low 0.08 low 0.54 low 1.00"),
        (
            tokens(["the", "cat", "it"], values=[0.0, 2.0, 4.0], role="query"),
            "query 0.08 query 0.54 query 1.00",
        ),
    ],
)
def test_a_color_is_the_stronger_the_larger_the_value(shape, strengths) -> None:
    found = re.findall(r'<rect class="x-(\w+)-heat".*?fill-opacity="([\d.]+)"', draw(shape).svg)
    assert " ".join(map(" ".join, found)) == strengths


@pytest.mark.parametrize(
    ("shape", "texts"),
    [
        (matrix([[1, 0], [0, 12]]), ["1", "0", "0", "12"]),
        (matrix([[0.6, 1.7]], digits=0), ["1", "2"]),
        (matrix([[1.0, -math.inf]], numbers=False), ["−∞"]),
    ],
)
def test_numbers_are_written_with_the_digits_they_need(shape, texts) -> None:
    assert [each.text for each in draw(shape).texts] == texts


def test_tokens_are_shown_as_they_are() -> None:
    assert [each.text for each in draw(tokens([" *cat*", "\n", "<s>"])).texts] == ["␣*cat*", "↵", "<s>"]
    assert "␣*cat*<" in draw(tokens([" *cat*"])).svg


def test_bars_are_as_long_as_their_values() -> None:
    svg = draw(bars({"cat": 0.6, "dog": 0.3, "sofa": 0.0}, width=120)).svg
    assert re.findall(r'<rect class="x-high"[^>]* width="([\d.]+)"', svg) == ["120", "60", "1"]


def test_direction_at_the_end_of_a_route() -> None:
    for n in range(1, 20):  # of some of these, rounding leaves a rest of the way
        end = n / 10, 7.7
        assert walk([(0.0, 0.0), (n / 10, 0.0), end, end], 1.0) == (pytest.approx(end), math.pi / 2)
    assert walk([(2.0, 3.0), (2.0, 3.0)], 0.5) == ((2.0, 3.0), 0.0)


def test_markup() -> None:
    assert [run.text for run in runs("*d*_{model}^{2} 3*4*5")] == ["d", "model", "2", " 3", "4", "5"]
    assert [run.italic for run in runs("W^{Q}_{t−1} h_{2j}")] == [
        False,
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    assert runs("a_b * c") == runs("a_b * c", literal=True)
    assert signed(-0.04, 1) == "0.0"
    assert (signed(-0.0, 1), signed(0, 2)) == ("0.0", "0.00")
    assert signed(-1234.5, 1) == "−1,234.5"


ONE = box("one")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: box("q", role="asker"), "role 'asker' is unknown: choose one of query, key"),
        (lambda: operator("+", role="x"), "role 'x' is unknown"),
        (lambda: frame(box("q"), role="x"), "role 'x' is unknown"),
        (lambda: text("a", align="left"), "align must be 'start', 'middle' or 'end', got 'left'"),
        (lambda: row(), "at least one shape"),
        (lambda: place([]), "at least one shape"),
        (lambda: row(box("q"), align="left"), "align must be 'axis', 'top' or 'bottom', got 'left'"),
        (lambda: grid([[box("a")], []]), r"rows of one length with at least one shape, got lengths \[0, 1\]"),
        (lambda: grid([[None]]), "at least one shape"),
        (lambda: matrix([]), r"rows of one length, such as \[\[1, 2\], \[3, 4\]\], got \[\]"),
        (lambda: matrix([1, 2]), "rows of one length"),
        (lambda: matrix([[1], [2, 3]]), "rows of one length"),
        (lambda: matrix(torch.zeros(2, 3, 5)), "pick one matrix"),
        (lambda: matrix([[1, 2]], rows=["a", "b"]), "2 names for 1 rows: give one for each"),
        (lambda: matrix([[1, 2]], columns=["a"]), "1 names for 2 columns: give one for each"),
        (lambda: matrix([[1, 2]], fill=["query"]), "a role for each of 2 columns or for each of 1 × 2 cells"),
        (lambda: matrix([[1, 2]], fill="asker"), "role 'asker' is unknown"),
        (lambda: matrix([[1, 2]], limits=(1, 2)), r"limits must be \(0 or less, 0 or more\)"),
        (lambda: matrix([[1, 2]], limits=(-2, -1)), r"limits must be \(0 or less, 0 or more\)"),
        (lambda: matrix([[1, 2]], limits=(0, 0)), r"limits must be \(0 or less, 0 or more\), not both 0"),
        (lambda: matrix([[]]), "rows of one length"),
        (lambda: matrix([[1, 2]])[0, 2], r"no part \(0, 2\): choose one of its parts \(\(0, 0\), \(0, 1\)\)"),
        (lambda: box("q")[0], r"no part 0: choose one of its parts \(it has none\)"),
        (lambda: tokens([]), "there is no token: give at least one"),
        (lambda: tokens(["a"], values=[1, 2]), "2 values for 1 tokens: give one for each"),
        (lambda: tokens(["a"], values=[[1]]), r"expected a row of finite numbers, got \[\[1\]\]"),
        (lambda: tokens(["a"], values=[math.inf]), r"expected a row of finite numbers, got \[inf\]"),
        (lambda: tokens(["a"], under=["x", "y"]), "2 words beneath for 1 tokens"),
        (lambda: tokens(["a", "b"], role=["query"]), "1 roles for 2 tokens"),
        (lambda: clock(math.nan), "an angle in radians, got nan"),
        (lambda: vectors([]), "at least one vector"),
        (lambda: vectors([("q", math.inf, "query")]), "at least one vector"),
        (lambda: vectors([("q", 0.0, "query")], between="60°"), "an angle is between two vectors: give two"),
        (lambda: bars({}), "one or more values of 0 or more"),
        (lambda: bars({"a": math.inf}), "one or more values of 0 or more"),
        (lambda: bars({"a": -1.0}), "one or more values of 0 or more"),
        (lambda: arrow(ONE, ONE, role="x"), "role 'x' is unknown"),
        (lambda: arrow(ONE, ONE, route="bent"), "route must be one of straight, elbow, curve, got 'bent'"),
        (lambda: arrow(ONE, ONE, weight=1.5), "weight must be between 0 and 1, got 1.5"),
        (lambda: arrow(ONE, ONE, side="top"), "side must be 'left', 'right', 'above' or 'below', got 'top'"),
        (
            lambda: links(tokens(["a"]), tokens(["b"]), [[1.0, 0.0]]),
            "expected weights of 1 × 1 tokens, got 1 × 2",
        ),
        (lambda: outline(ONE, ONE, role="x"), "role 'x' is unknown"),
        (lambda: links(tokens(["a"]), tokens(["b"]), [[2.0]]), "weights must be between 0 and 1, got 2.0"),
        (lambda: links(words := tokens(["a"]), words, [[1.0]]), "expected two rows of tokens, got one twice"),
        (lambda: draw(row(ONE, ONE)), "a shape is in the picture twice: make a second one"),
        (lambda: draw(ONE, arrow(ONE, box("two"))), "an arrow's end is not in the picture"),
        (lambda: draw(ONE, box("two")), "expected arrows, links or braces after the picture"),
        (lambda: draw(blank(40, 40)), "there is nothing to see in the picture"),
        (
            lambda: draw(place([(text("query"), 0, 0), (text("key"), 8, 0)])),
            "the texts 'query' and 'key' overlap",
        ),
        (lambda: draw(row(box("a", width=200), box("b", width=250))), "476|482 units wide, .* on a phone"),
        (lambda: draw(text("tiny", size=9)), "'tiny' is 9.0 px high on a phone: expected 11 or more"),
    ],
)
def test_what_does_not_fit_is_refused(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_the_example_for_contributors_runs() -> None:
    page = (Path(__file__).parents[2] / "book" / "maintaining.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", page.partition("### Draw a diagram")[2], flags=re.M | re.S)[
        :1
    ]
    *before, last = code.strip().splitlines()
    names = {}
    exec("\n".join(before), names)
    assert eval(last, names).width < PHONE


def curve(picture, *marks):
    """Return the points of the last curve of a picture: its start, what pulls at it, its end."""
    found = re.findall(r'd="M([^"L]*C[^"]*)"', draw(picture, *marks).svg)[-1]
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", found)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.parametrize("right", [True, False])
def test_links_join_facing_edges_of_columns(right) -> None:
    def upright(name):
        boxes = [tokens([name]), tokens([name])]
        return replace(column(*boxes), parts=dict(enumerate(boxes)))

    queries, keys = upright("q"), upright("k")
    both = (queries, keys) if right else (keys, queries)
    start, _, _, end = curve(row(*both, gap=50), links(queries, keys, [[0, 1.0], [0, 0]]))
    assert (start[0], end[0]) == ((20, 70) if right else (70, 20))


def test_columns_are_as_wide_as_the_widest_of_their_names() -> None:
    wide = text_width("animal", size=12.0) + 8
    assert matrix([[1, 2]], columns=["a", "animal"]).width == pytest.approx(2 * wide)


def test_a_line_of_tokens_is_full_when_no_unit_is_left() -> None:
    two = [(10, 10), (34, 10)]  # boxes of 20, and 4 between them
    for width, wanted in ((44, two), (43.9, [(10, 10), (10, 44)])):
        words = tokens(["a", "b"], width=width)
        assert [(x + each.width / 2) for each, x, _ in words.children] == [x for x, _ in wanted]


def test_token_lines_start_at_the_edge() -> None:
    words = tokens(["aaa", "b", "aaa", "c"], width=70)
    x = [x for _, x, _ in words.children]
    assert x[0] == x[2] == 0
    words = tokens(["a", "b", "c"], width=44)
    assert words.width == 44
    assert words.middle == (22, words.height / 2)  # of both lines


def test_bars_are_measured_by_their_limit_and_end_there() -> None:
    def widths(values, **options):
        svg = draw(bars(values, width=100, **options)).svg
        return re.findall(r'<rect class="x-high"[^>]* width="([\d.]+)"', svg)

    assert widths({"a": 1.0, "b": 3.0}, limit=2) == ["50", "100"]
    assert widths({"a": 0.0}) == ["1"]
    [a, b] = (each.box for each in draw(bars({"a": 1.0, "b": 4.0}, width=100)).texts if "." in each.text)
    assert b.x0 - a.x0 == pytest.approx(75)  # each number stands behind its bar


def test_truth_values_and_nan_are_words() -> None:
    picture = draw(matrix([[True, math.nan]]))
    assert [each.text for each in picture.texts] == ["True", "nan"]
    assert re.findall(r'<rect class="x-(\w+)"', picture.svg) == ["card", "plain", "plain"]


def test_a_side_without_numbers_has_no_limit() -> None:
    draw(matrix([[1.0, -0.5]], limits=(0, 1)))


def test_tolerance_of_overlap_and_letter_size() -> None:
    wide = text_width("a", size=14.0)
    draw(place([(text("a"), 0, 0), (text("a"), wide - 0.4, 0)]))
    with pytest.raises(ValueError, match="the texts 'a' and 'a' overlap"):
        draw(place([(text("a"), 0, 0), (text("a"), wide - 0.6, 0)]))
    draw(text("tiny", size=10.81))
    with pytest.raises(ValueError, match="high on a phone"):
        draw(text("tiny", size=10.79))


def test_a_picture_has_room_for_half_the_width_of_its_lines() -> None:
    a, b = blank(10, 10), blank(10, 10)
    picture = draw(row(a, b, gap=30), arrow(a, b, width=6, head=False), padding=8)
    assert (picture.width, picture.height) == (30 + 6 + 16, 6 + 16)  # from edge to edge, without a head


def test_subscripts_are_to_be_read_on_a_phone_too() -> None:
    draw(row(text("x"), blank(320), text("b")))
    with pytest.raises(ValueError, match=r"'x_\{1\}' is 9\.\d px high on a phone"):
        draw(row(text("x_{1}"), blank(320), text("b")))


def test_small_letters_have_subscripts_of_their_own_size() -> None:
    assert [small_size(size) for size in (8.0, 11.0, 14.0, 20.0)] == [8, 11, 11, 15]


def test_stars_and_accents_in_lettering() -> None:
    assert [run.text for run in runs("W_{*}")] == ["W", "*"]
    assert text_width("e\u0300", size=14.0) == text_width("e", size=14.0)


def test_a_hand_past_the_half_has_passed_the_larger_part() -> None:
    for quarters, large in ((1, "0"), (3, "1")):
        svg = draw(clock(quarters * math.pi / 2)).svg
        assert re.findall(r"A[\d.]+ [\d.]+ 0 (\d) 1 ", svg) == [large]


def test_a_whole_turn_is_nothing_on_a_clock() -> None:
    assert draw(clock(1.0 + math.tau)).svg == draw(clock(1.0)).svg


def test_arrow_leaves_its_shape_toward_the_target() -> None:
    wide, narrow = box("a", width=100, height=30), box("b", width=40, height=30)
    picture = place([(wide, 50, 15), (narrow, 110, 80)])
    assert ends(draw(picture, arrow(wide, narrow, route="straight")).svg) == ((50, 30), (110, 65))


def test_an_elbow_goes_around_the_wider_of_two() -> None:
    a, b = two_boxes()
    mark = arrow(a.right, b.right, route="elbow", reach=25)
    assert "L68 15Q75 15 75 22" in draw(column(a, box("c", width=60, height=30), b, gap=10), mark).svg
    for side, turn in (("right", "105"), ("left", "-25")):
        a, b = box("a", width=40, height=30), box("b", width=80, height=30)
        mark = arrow(getattr(a, side), getattr(b, side), route="elbow", reach=25)
        assert f"Q{turn} 15 {turn} " in draw(column(a, b, gap=10), mark).svg


def test_a_label_is_to_the_right_of_an_upright_arrow() -> None:
    a, b = two_boxes()
    found = where(column(a, b, gap=50), arrow(a, b, label="W", head=False))
    assert found["W"].x0 == 25
    assert middle(found["W"])[1] == pytest.approx(55, abs=1.5)


def test_axis_of_a_row_aligned_at_an_edge() -> None:
    assert row(box("a", height=30), box("b", height=90), align="top").middle[1] == 45
    assert column(box("a", width=30), box("b", width=90), align="left").middle[0] == 45


def test_width_and_parts_of_a_frame() -> None:
    words = tokens(["a", "b"])
    assert frame(words, width=150).width == 150
    assert frame(words)[1] is label(words, below="x")[1] is words[1]
