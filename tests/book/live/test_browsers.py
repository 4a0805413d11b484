"""What the drivers of both browsers tell of a page is what happens there."""

import pytest
from browsers import BrowserError

PAGE = """<!doctype html><meta charset="utf-8"><title>none</title>
<button onclick="event.detail && (document.title = event.pointerType)">go</button><input>
<script>
  console.warn("a word");
  document.querySelector("input").onkeydown = ({ key }) => { if (key === "Escape") document.title = key; };
  setTimeout(() => { throw new Error("boo") });
  addEventListener("pointermove", (event) => window.moved = (window.moved ?? 0) + event.buttons);
</script><img src="https://nowhere.invalid/none.png" alt="">"""


@pytest.fixture
def opened(page, tmp_path):
    """Open a page that says what is done to it."""
    path = tmp_path / "page with ä.html"
    path.write_text(PAGE, encoding="utf-8")
    return page.open(path)


def test_values_go_in_and_out(opened) -> None:
    """Text is any text, numbers have all digits, promises are waited for."""
    text = 'é😀\u2028"\\ </script>'
    assert opened.run("async (a, b) => ({ both: [a, b], none: null })", text, 0.1 + 0.2) == {
        "both": [text, 0.1 + 0.2],
        "none": None,
    }
    assert opened.run("() => undefined") is None


def test_an_error_is_an_error(opened) -> None:
    """What a function throws is raised here, with its words."""
    with pytest.raises(BrowserError, match="no such thing"):
        opened.run("() => { throw new Error('no such thing') }")
    with pytest.raises(BrowserError, match="nothing is #none"):
        opened.click("#none")


def test_console_and_network_are_heard(opened) -> None:
    """A warning, an error of a script and a request to a host are noted."""
    opened.wait("() => document.readyState === 'complete'")
    opened.run("() => new Promise((done) => setTimeout(done, 50))")
    said = " ".join(opened.messages)
    assert "a word" in said
    assert "error: " in said
    assert "boo" in said
    assert "https://nowhere.invalid/none.png" in opened.requests


def test_hands(opened) -> None:
    """Click, drag and keys arrive as from a reader's hand."""
    opened.click("button")
    assert opened.run("() => document.title") == "mouse"
    opened.click("input")
    opened.press("h", "a", "x", "ArrowLeft", "Backspace", "Escape")
    assert opened.run("() => [document.querySelector('input').value, document.title]") == ["hx", "Escape"]
    opened.press("Shift+Tab")
    assert opened.run("() => document.activeElement.tagName") == "BUTTON"
    opened.drag((300, 300), (400, 350))
    assert opened.run("() => window.moved") >= 1


def test_a_finger_and_a_narrow_window(either, opened) -> None:
    """A tap is one of a finger, and a window has the width that it was given."""
    touch = {"touch": True} if either.name == "chromium" else {}
    page = either.page(width=390, height=800, **touch)
    page.open(opened.run("() => location.href"))
    page.tap("button")
    assert page.run("() => [innerWidth, document.title]") == [390, "touch"]
    page.resize(600, 500)
    assert page.run("() => [innerWidth, innerHeight]") == [600, 500]
    page.close()
