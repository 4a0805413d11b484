"""What every live figure must do, whatever it shows: begin by itself, stay quiet, in place, bear trouble."""

import gzip
import shutil
from pathlib import Path

import figures
import pytest
import torch
from figures import LIVE

from exformer_lessons.live import live_figure, live_figures

BOX = """() => {
  const element = document.querySelector("[data-scripts]").getBoundingClientRect();
  const stage = document.querySelector(".live-stage")?.getBoundingClientRect();
  const wide = document.documentElement.scrollWidth - innerWidth;
  return { height: element.height, stage: stage?.height ?? 0, wide };
}"""
TROUBLE = "() => document.querySelector('.live-trouble')?.textContent"
#: What stands in an address by accident, or on purpose.
STATES = [
    "%E0%A4%A",
    "%00%7C%7C9e9%3E-1%2CNaN",
    "1e999,-5|x|y",
    "%F0%9F%A6%8A%E6%97%A5" * 2500,
    "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E" * 3,
]
#: A control that a finger finds, and an address that says something else than the first state.
TAPS = {
    "heads": ".take",
    "translator": ".examples button:nth-child(2)",
    "positions": ".exchange",
    "recurrence": ".other",
    "next-token": "#next-token-sample",
    "merges": ".pair",
    "lookup": "[data-sentence='1']",
}
OTHERS = {
    "heads": "Two dogs are running.|3 1|0 0",
    "translator": "Ein Hund schläft.||",
    "positions": "30,12",
    "recurrence": "a fox slept",
    "next-token": "sample|0.7,40,1,0,3|",
    "merges": "2|low low lower",
    "lookup": "1,30,10,0,50,40,20,0,0",
}
SHOWN = "() => document.querySelector('.live-stage').innerText"
SAID = "() => document.querySelector('[data-scripts] > [aria-live]').textContent"
#: The sum of all shifts of the layout that no press has caused, from now on.
SHIFTS = """() => {
    globalThis.shifts = 0;
    new PerformanceObserver((list) => {
        for (const each of list.getEntries()) if (!each.hadRecentInput) globalThis.shifts += each.value;
    }).observe({ type: "layout-shift" });
}"""
MOVING = """() => [...document.querySelectorAll("[data-scripts], [data-scripts] *")].filter((each) => {
    const { transitionDuration, transitionProperty, animationName } = getComputedStyle(each);
    const moves = transitionProperty !== "none" && parseFloat(transitionDuration) > 0;
    return moves || animationName !== "none";
}).length"""

pytestmark = pytest.mark.parametrize("name", live_figures())


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Make pages with one figure each, once."""
    folder = tmp_path_factory.mktemp("figures")
    made = {}

    def page(name, *attributes, before=0):
        key = (name, attributes, before)
        if key not in made:
            made[key] = figures.write_page(folder / str(len(made)), name, *attributes, before=before)
        return made[key]

    return page


def test_it_runs_quietly(either, pages, name: str) -> None:
    page = figures.opened(either.page(), pages(name))
    assert page.messages == []
    assert {each.split(":")[0] for each in page.requests} <= {"file", "data"}
    assert page.run("() => getComputedStyle(document.querySelector('.live-still')).display") == "none"
    page.close()


def test_nothing_is_loaded_before_it_is_near(chromium, pages, name: str) -> None:
    page = chromium.page()
    page.open(pages(name, before=5000))
    page.raw.wait_for_timeout(300)
    loaded = [each.rsplit("/", 1)[-1] for each in page.requests]
    assert not [each for each in loaded if each.endswith(".js") and not each.startswith("start.")]
    page.run("() => document.querySelector('[data-scripts]').scrollIntoView()")
    page.wait(LIVE)
    page.close()


def test_on_request_it_waits_for_a_touch(chromium, pages, name: str) -> None:
    page = chromium.page()
    page.open(pages(name, "wait"))
    page.raw.wait_for_timeout(200)
    assert not page.run("() => 'Figure' in (window.exformer ?? {})")
    page.press("Tab", "Enter")  # the button is what the keyboard finds first
    page.wait(LIVE)
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_when_it_begins(chromium, pages, name: str, width: int) -> None:
    page = chromium.page(width=width, touch=width == 390)
    page.open(pages(name, before=5000))
    before = page.run(BOX)
    page.run(SHIFTS)
    page.run("() => document.querySelector('[data-scripts]').scrollIntoView()")
    page.wait(LIVE)
    page.raw.wait_for_timeout(100)
    after = page.run(BOX)
    assert page.run("() => globalThis.shifts") < 0.001
    page.tap(TAPS[name]) if width == 390 else page.click(TAPS[name])
    page.raw.wait_for_timeout(700)  # longer than a shift is owed to the press
    assert page.run("() => globalThis.shifts") < 0.001
    assert after["stage"] <= before["height"] + 0.5, "reserve more height in the figure's style sheet"
    assert after["height"] == before["height"]
    assert after["wide"] <= 0, "the page can be scrolled sideways"
    page.close()


def test_it_is_accessible(chromium, pages, name: str) -> None:
    """As it waits and as it begins, on a desk, and after a press on a phone; in dark, its colors are."""
    page = chromium.page()
    page.open(pages(name, "wait"))
    assert figures.faults(page) == []
    page.click(".live-begin")
    page.wait(LIVE)
    assert figures.faults(page) == []
    page.resize(390, 844)
    page.click(TAPS[name])
    assert figures.faults(page) == []
    page.close()


def test_a_finger_changes_it(chromium, pages, name: str) -> None:
    page = figures.opened(chromium.page(width=390, height=844, touch=True), pages(name))
    before = page.run(SHOWN)
    page.tap(TAPS[name])
    page.wait(f"(before) => ({SHOWN})() !== before", before)
    assert page.messages == []
    page.close()


def test_it_says_nothing_before_the_reader_acts(chromium, pages, name: str) -> None:
    page = figures.opened(chromium.page(), pages(name))
    page.raw.wait_for_timeout(900)  # longer than it waits before it speaks
    assert page.run(SAID) == ""
    page.close()


def test_an_address_that_is_pasted_is_followed(chromium, pages, name: str) -> None:
    """In the page that is open; the state is that which the address alone brings."""
    page = figures.opened(chromium.page(), pages(name))
    first = page.run(SHOWN)
    page.run("(hash) => { location.hash = hash; }", f"{name}={OTHERS[name]}")
    page.wait(f"(first) => ({SHOWN})() !== first", first)
    page.raw.wait_for_timeout(300)
    state, found = page.run("() => document.querySelector('[data-scripts]').state"), page.run(SHOWN)
    figures.opened(page, pages(name), f"{name}={OTHERS[name]}")
    page.raw.wait_for_timeout(300)
    assert (page.run("() => document.querySelector('[data-scripts]').state"), page.run(SHOWN)) == (
        state,
        found,
    )
    page.press("Tab")  # nothing that listened before listens still
    assert page.messages == []
    page.close()


def test_who_wants_no_motion_has_none(chromium, pages, name: str) -> None:
    page = figures.opened(chromium.page(), pages(name))
    page.raw.emulate_media(reduced_motion="reduce")
    assert page.run(MOVING) == 0
    page.close()


def test_a_garbled_address_does_no_harm(chromium, pages, name: str) -> None:
    for state in STATES:
        page = figures.opened(chromium.page(), pages(name), f"{name}={state}")
        assert page.messages == []
        assert page.run("() => document.querySelectorAll('.live-stage img').length") == 0
        assert page.run(TROUBLE) is None, state
        assert page.run("() => document.querySelector('.live-stage').textContent.trim()")
        page.close()


def test_a_file_that_is_cut_is_told(chromium, pages, name: str, tmp_path: Path) -> None:
    if not live_figure(name).figure.models:
        pytest.skip("it has no model")
    shutil.copytree(pages(name).parent, tmp_path / "site")
    model = live_figure(name).figure.models[0]
    [file] = (tmp_path / "site" / "live").glob(f"{model}.*.js")
    whole = file.read_text()
    page = chromium.page()
    end = whole.rindex('"')
    for cut in (whole[:-1000], whole[: end - 9] + "!" * 9 + whole[end:], whole[: end - 8] + whole[end:]):
        file.write_text(cut)
        page.open(tmp_path / "site" / pages(name).name)
        assert "damaged" in page.wait(TROUBLE)
    assert page.run("() => getComputedStyle(document.querySelector('.live-still')).display") != "none"
    file.unlink()
    page.open(tmp_path / "site" / pages(name).name)
    assert "could not be loaded" in page.wait(TROUBLE)
    file.write_text(whole)
    page.click(".live-trouble button")
    page.wait(LIVE)
    assert page.run(TROUBLE) is None
    page.close()


def test_without_webassembly_it_runs_as_well(chromium, pages, name: str) -> None:
    page = figures.opened(chromium.page(script="delete globalThis.WebAssembly;"), pages(name))
    assert page.messages == []
    page.close()


def test_an_old_browser_is_told(chromium, pages, name: str) -> None:
    for script in (
        "window.Function = function () { throw new SyntaxError('old'); };",
        "delete Array.prototype.with;",  # understood, but not there
    ):
        page = chromium.page(script=script)
        page.open(pages(name))
        assert "too old" in page.wait(TROUBLE)
        page.close()


def test_without_javascript_and_in_print_the_picture_stands(chromium, pages, name: str) -> None:
    plain = chromium.page(java_script_enabled=False)
    plain.open(pages(name))
    assert plain.raw.locator(".live-still svg").is_visible()
    empty = plain.raw.locator("[data-scripts]").bounding_box()["height"]
    empty -= plain.raw.locator(".live-still").bounding_box()["height"]
    assert empty < 1, "a place is kept for what never comes"
    plain.close()
    page = figures.opened(chromium.page(), pages(name))
    page.raw.emulate_media(media="print")
    assert page.raw.locator(".live-still svg").is_visible()
    assert not page.raw.locator(".live-stage").is_visible()
    page.close()


def test_its_scripts_are_small(name: str) -> None:
    """Engine, frame and figure, compressed as servers send them."""
    loaded = [figures.live.script("start")[1], figures.live.bundle(name)[1]]
    assert sum(len(gzip.compress(text.encode())) for text in loaded) < 40_000


def test_its_words(name: str) -> None:
    figure = live_figure(name).figure
    assert len(figure.alt.split()) > 8
    assert len(figure.caption.split()) > 15


def test_what_a_lesson_samples_next_does_not_depend_on_it(name: str) -> None:
    """A claim that is run alone leaves pictures out: they must not draw random numbers."""
    before = torch.get_rng_state()
    assert "<svg" in live_figure(name)._repr_html_()
    assert torch.equal(torch.get_rng_state(), before)
