"""The two browsers in which live figures are tested."""

import os

import browsers
import engine
import figures
import pytest

collect_ignore = ["conftest.py"]


@pytest.fixture(scope="session")
def chromium(browser):
    """Start Chromium."""
    return browsers.Chromium(browser, again=True)


@pytest.fixture(scope="session")
def firefox():
    """Start Firefox; without one, tests that need it fail where CI=true, else they are left out."""
    path = browsers.firefox_path()
    if path is None and os.environ.get("CI") == "true":
        pytest.fail("no Firefox found: install one, or set FIREFOX to its path")
    if path is None:
        pytest.skip("no Firefox found")
    started = browsers.Firefox(path, again=True)
    yield started
    started.close()


@pytest.fixture(scope="session", params=["chromium", "firefox"])
def either(request):
    """Run a test in Chromium and in Firefox."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def page(either):
    """Open an empty page of 1280 by 900 pixels; what the console said is in its `messages`."""
    made = either.page()
    yield made
    made.close()


@pytest.fixture(scope="module")
def site(request, tmp_path_factory):
    """Write a page that has the figure that a file of tests is of, and nothing else."""
    return figures.write_page(tmp_path_factory.mktemp("site"), *request.module.SHOWS)


@pytest.fixture
def begun(chromium, site):
    """Open the figure in Chromium; the console says nothing to the end."""
    made = figures.opened(chromium.page(), site)
    yield made
    assert made.messages == []
    made.close()


@pytest.fixture(scope="session")
def engine_folder(tmp_path_factory):
    """Make a folder for the page with the engine and its models."""
    return tmp_path_factory.mktemp("engine")


@pytest.fixture(scope="session")
def engine_page(either, engine_folder):
    """Open a page with the engine."""
    opened = either.page().open(engine.write_page(engine_folder))
    yield opened
    assert not opened.messages
    opened.close()
