"""Two browsers behind one small interface: Chromium, driven by playwright, and Firefox, over WebDriver BiDi.

Both give pages that can be opened, asked (`run`), clicked, tapped, dragged on and steered by keys, and that
remember what was said on the console and asked of the network.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pytest
import websocket

#: Marks a test of what no browser decides (it decides how numbers look, where a key leads).
in_one_browser = pytest.mark.parametrize("either", ["chromium"], indirect=True)
PATIENCE = 120  # seconds
FIREFOXES = ("firefox-esr", "firefox")
#: Keys that are no characters, by their names in the DOM: WebDriver's code, section "Keyboard actions".
KEYS = {
    "Backspace": "\ue003", "Tab": "\ue004", "Enter": "\ue007", "Shift": "\ue008", "Control": "\ue009",
    "Escape": "\ue00c", "Space": " ", "PageUp": "\ue00e", "PageDown": "\ue00f", "End": "\ue010",
    "Home": "\ue011", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
    "ArrowDown": "\ue015", "Delete": "\ue017",
}  # fmt: skip
#: Nothing is fetched, updated or asked at the start.
PREFERENCES = {
    "app.update.enabled": False,
    "app.normandy.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0,
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.disable_open_during_load": False,
    "dom.max_script_run_time": 0,
    "extensions.getAddons.cache.enabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "remote.active-protocols": 1,
    "remote.prefs.recommended": True,
    "services.settings.server": "data:,",
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
CENTER = """(selector) => {
    const found = document.querySelector(selector);
    if (!found) throw new Error("nothing is " + selector);
    found.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const { left, top, width, height } = found.getBoundingClientRect();
    return [Math.round(left + width / 2), Math.round(top + height / 2)];
}"""
#: Values go in and out as JSON, so that both browsers give the same.
JSON_CALL = "async (given) => JSON.stringify(await ({function})(...JSON.parse(given))) ?? 'null'"


class BrowserError(Exception):
    """An error of the browser, or of a script in it."""


class Page:
    """A page of one of the browsers: what both do alike."""

    def __init__(self):
        self.messages, self.requests = [], []

    def open(self, address):
        """Load a page, or a file."""
        self._go(address.as_uri() if isinstance(address, Path) else address)
        return self

    def run(self, function, *arguments):
        """Call a JavaScript function, such as ``(a, b) => a + b``; return what it returns or promises."""
        text = self._call(JSON_CALL.replace("{function}", function), json.dumps(arguments))
        return json.loads(text)

    def click(self, selector):
        """Click on the middle of an element with a mouse."""
        self._point(*self.run(CENTER, selector), kind="mouse")

    def tap(self, selector):
        """Tap on the middle of an element with a finger."""
        self._point(*self.run(CENTER, selector), kind="touch")

    def wait(self, function, *arguments, seconds=20):
        """Ask until the answer is true; return it."""
        end = time.monotonic() + seconds
        while not (found := self.run(function, *arguments)):
            if time.monotonic() > end:
                raise BrowserError(f"waited {seconds} s in vain for {function}")
            time.sleep(0.02)
        return found


# --- Chromium


class ChromiumPage(Page):
    """A page of Chromium; `raw` is playwright's. Closed, it is kept in `free` where there is such a list."""

    def __init__(self, raw, free=None):
        super().__init__()
        self.raw, self.free = raw, free
        raw.on("console", lambda said: self.messages.append(f"{said.type}: {said.text}"))
        raw.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        raw.on("request", lambda request: self.requests.append(request.url))

    def _go(self, address):
        self.raw.goto(address)

    def _call(self, function, argument):
        from playwright.sync_api import Error

        try:
            return self.raw.evaluate(function, argument)
        except Error as error:
            raise BrowserError(str(error)) from error

    def _point(self, x, y, *, kind):
        if kind == "touch":
            self.raw.touchscreen.tap(x, y)
        else:
            self.raw.mouse.click(x, y)

    def drag(self, start, end, *, steps=10):
        """Press the mouse at a point of the window, move it to another, let go."""
        self.raw.mouse.move(*start)
        self.raw.mouse.down()
        self.raw.mouse.move(*end, steps=steps)
        self.raw.mouse.up()

    def swipe(self, start, end, *, steps=10):
        """Put a finger on a point of the window, move it to another, lift it."""
        finger = self.raw.context.new_cdp_session(self.raw)
        between = [
            {"x": start[0] + (end[0] - start[0]) * n / steps, "y": start[1] + (end[1] - start[1]) * n / steps}
            for n in range(steps + 1)
        ]
        for kind, points in (
            ("touchStart", between[:1]),
            *(("touchMove", [point]) for point in between[1:]),
            ("touchEnd", []),
        ):
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def press(self, *keys):
        """Press keys, one after the other: "Tab", "a", "Shift+Tab"."""
        for key in keys:
            self.raw.keyboard.press(key)

    def resize(self, width, height):
        """Resize the window."""
        self.raw.set_viewport_size({"width": width, "height": height})

    def close(self):
        """Close the page and forget what it has stored; or make it empty, for the next who asks for one."""
        if self.free is None:
            self.raw.context.close()
            return
        self.raw.mouse.move(0, 0)
        self._go("about:blank")
        self.free.append(self)


class Chromium:
    """Chromium, as playwright's browser has it; it opens a closed page again if told so, not a new one."""

    name = "chromium"

    def __init__(self, browser, *, again=False):
        self.browser, self.free = browser, defaultdict(list) if again else None

    def page(self, *, width=1280, height=900, touch=False, theme="light", script="", **context):
        """Open an empty page for a reader who prefers a theme; a script may run before those of its files.

        It has a context of its own: what it stores, only a page sees that is opened later in its place.
        """
        how = (touch, script, *context.items())
        if self.free and self.free[how]:
            page = self.free[how].pop()
            page.messages.clear()
            page.requests.clear()
            page.resize(width, height)
        else:
            size = {"width": width, "height": height}
            made = self.browser.new_context(viewport=size, has_touch=touch, **context)
            page = ChromiumPage(made.new_page(), None if self.free is None else self.free[how])
            if script:
                page.raw.add_init_script(script)
        page.raw.emulate_media(media="null", color_scheme=theme, reduced_motion="no-preference")
        return page


# --- Firefox


class FirefoxPage(Page):
    """A tab of Firefox, in a container of its own: what it stores, no other page sees."""

    def __init__(self, firefox, context, user):
        super().__init__()
        self.firefox, self.context, self.user = firefox, context, user

    def _go(self, address):
        self.firefox.ask("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def _call(self, function, argument):
        answer = self.firefox.ask(
            "script.callFunction",
            functionDeclaration=function,
            arguments=[{"type": "string", "value": argument}],
            target={"context": self.context},
            awaitPromise=True,
            userActivation=True,
        )
        if answer["type"] == "exception":
            raise BrowserError(answer["exceptionDetails"]["text"])
        return answer["result"]["value"]

    def _act(self, kind, *actions, pointer=None):
        source = {"type": kind, "id": pointer or kind, "actions": list(actions)}
        if pointer:
            source["parameters"] = {"pointerType": pointer}
        self.firefox.ask("input.performActions", context=self.context, actions=[source])

    def _point(self, x, y, *, kind):
        move = {"type": "pointerMove", "x": x, "y": y}
        press, release = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        self._act("pointer", move, press, release, pointer=kind)

    def drag(self, start, end, *, steps=10):
        """Press the mouse at a point of the window, move it to another, let go."""
        between = [
            [round(a + (b - a) * n / steps) for a, b in zip(start, end, strict=True)]
            for n in range(steps + 1)
        ]
        moves = [{"type": "pointerMove", "x": x, "y": y} for x, y in between]
        press, release = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        self._act("pointer", moves[0], press, *moves[1:], release, pointer="mouse")

    def press(self, *keys):
        """Press keys, one after the other: "Tab", "a", "Shift+Tab"."""
        for key in keys:
            held = [KEYS.get(each, each) for each in (key.split("+") if len(key) > 1 else [key])]
            down = [{"type": "keyDown", "value": each} for each in held]
            self._act("key", *down, *({"type": "keyUp", "value": each} for each in reversed(held)))

    def resize(self, width, height):
        """Resize the window."""
        self.firefox.ask(
            "browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height}
        )

    def close(self):
        """Close the page and forget what it has stored; or make it empty, for the next who asks for one."""
        if self.firefox.free is None:
            del self.firefox.pages[self.context]
            self.firefox.ask("browsingContext.close", context=self.context)
            self.firefox.ask("browser.removeUserContext", userContext=self.user)
            return
        self.firefox.ask("input.releaseActions", context=self.context)
        self._go("about:blank")
        self.firefox.free.append(self)


class Firefox:
    """Firefox without a window, and a session with it over WebDriver BiDi (https://w3c.github.io/webdriver-bidi)."""

    name = "firefox"

    def __init__(self, path, *, again=False):
        self.free = [] if again else None
        self.folder = tempfile.TemporaryDirectory(prefix="firefox", ignore_cleanup_errors=True)
        text = "".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in PREFERENCES.items())
        Path(self.folder.name, "user.js").write_text(text, encoding="utf-8")
        self.log = Path(self.folder.name, "said.txt")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    path,
                    "--headless",
                    "--remote-debugging-port=0",
                    "--no-remote",
                    "--profile",
                    self.folder.name,
                ],
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=os.environ | {"MOZ_CRASHREPORTER_DISABLE": "1"},
            )
        self.numbers, self.pages, self.socket = itertools.count(1), {}, None
        try:
            self.socket = websocket.create_connection(
                f"{self._address()}/session",
                timeout=PATIENCE,
                suppress_origin=True,
                skip_utf8_validation=True,
            )
            self.ask("session.new", capabilities={})
            self.ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        except Exception:
            self.close()
            raise

    def _address(self):
        """Wait for the line with the address."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            if found := re.search(r"WebDriver BiDi listening on (\S+)\n", self.log.read_text()):
                return found[1]
            time.sleep(0.05)
        raise BrowserError(f"Firefox does not start: {self.log.read_text()}")

    def ask(self, method, **parameters):
        """Send a command, note the events that come meanwhile, and return the answer."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message["type"] == "event":
                self._note(message["method"], message["params"])
            elif message.get("id") == number:
                if message["type"] == "error":
                    raise BrowserError(f"{method}: {message['message']}")
                return message["result"]

    def _note(self, event, content):
        context = content["source"]["context"] if event == "log.entryAdded" else content["context"]
        page = self.pages.get(context)
        if page is None:
            return
        if event == "log.entryAdded":
            page.messages.append(f"{content['level']}: {content['text']}")
        else:
            page.requests.append(content["request"]["url"])

    def page(self, *, width=1280, height=900):
        """Open an empty page in a container of its own."""
        if self.free:
            page = self.free.pop()
            self.ask("browsingContext.activate", context=page.context)  # as a new tab is: in front
            page.messages.clear()
            page.requests.clear()
            page.resize(width, height)
            return page
        user = self.ask("browser.createUserContext")["userContext"]
        context = self.ask("browsingContext.create", type="tab", userContext=user)["context"]
        page = self.pages[context] = FirefoxPage(self, context, user)
        page.resize(width, height)
        return page

    def close(self):
        """End the browser and remove its profile."""
        if self.socket:
            with contextlib.suppress(BrowserError, OSError, websocket.WebSocketException):
                self.ask("browser.close")
            self.socket.close()
        try:
            self.process.wait(10 if self.socket else 0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def firefox_path():
    """Return the path of a Firefox, or None."""
    return os.environ.get("FIREFOX") or next(
        (found for name in FIREFOXES if (found := shutil.which(name))), None
    )
