"""Time the models in the browser beside the library on one thread, and how soon a live figure shows its text.

    python bench/live.py [--json FILE] [--rounds N]

Both translate the same captions and continue the same prompt in turns; the ratio is taken round by round.
Tokens a second: the language model's are those that it writes. The translator's are all that it reads and
writes, over the time of whole captions, and those that it writes, over the time of the decoder alone. The
prototype of the figures counted in the first way: it took 14.5 ms for a caption of 20.5 tokens in plain
JavaScript, 4.3 ms with its kernel, and gave 1,400 and 4,700 tokens a second.
Pages are opened from files, in Chromium. Times are those of the wall: a reader waits for nothing else.
"""

import gzip
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "book" / "live")]

import browsers  # noqa: E402
import figures  # noqa: E402
import torch  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from bench.report import machine, new_parser, result_file, write  # noqa: E402
from exformer import generate, load_model, translate  # noqa: E402
from exformer.corpora.captions import captions  # noqa: E402
from exformer_lessons.live import live_figure, live_figures  # noqa: E402
from exformer_lessons.live.export import export_live  # noqa: E402

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TRANSLATOR, WRITER = "multi30k-de-en", "shakespeare-bpe"
PROMPT, N_NEW = "ROMEO:\n", 48
#: Scroll to the figure; milliseconds until the first frame that shows it running, by the page's own clock.
SCROLL = """() => new Promise((resolve) => {
  const figure = document.querySelector("[data-scripts]");
  const begun = performance.now();
  new MutationObserver((_, observer) => {
    if (!figure.classList.contains("live")) return;
    observer.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - begun));
  }).observe(figure, { attributes: true });
  figure.scrollIntoView();
})"""
#: Translate captions, or continue the prompt greedily; milliseconds and tokens.
TRANSLATE = """async ([name, texts]) => {
  const { model, tokenizer } = await exformer.load(name);
  const begun = performance.now();
  let tokens = 0;
  for (const text of texts) for (const _ of exformer.translate(model, tokenizer, text)) tokens++;
  return [performance.now() - begun, tokens];
}"""
CONTINUE = """async ([name, prompt, maxNewTokens]) => {
  const { model, tokenizer } = await exformer.load(name);
  const begun = performance.now();
  let tokens = 0;
  for (const _ of exformer.generate(model, tokenizer, prompt, { maxNewTokens, temperature: 0 })) tokens++;
  return [performance.now() - begun, tokens];
}"""
#: Translate captions, first the encoder's part of all; milliseconds of both parts, tokens read and written.
TWO_PARTS = """async ([name, texts]) => {
  const { model, tokenizer } = await exformer.load(name);
  const [source] = tokenizer;
  const begun = performance.now();
  let [read, written] = [0, 0];
  const memories = texts.map((text) => {
    const ids = [...source.encode(text), source.endId];
    read += ids.length;
    return model.encode(ids);
  });
  const encoded = performance.now();
  for (const memory of memories)
    for (const _ of exformer.translate(model, tokenizer, "", { memory })) written++;
  return [encoded - begun, performance.now() - encoded, read, written];
}"""
#: How the translator's tokens are counted, and in which time.
READ_AND_WRITTEN = "read and written, whole captions"
WRITTEN = "written, decoder alone"
#: From a fresh page: the script is loaded and the model built, then the first token cold, then warm.
FIRST = """async ([name, prompt]) => {
  const begun = performance.now();
  const { model, tokenizer } = await exformer.load(name);
  const built = performance.now();
  const one = () => {
    const from = performance.now();
    exformer.generate(model, tokenizer, prompt, { maxNewTokens: 1, temperature: 0 }).next();
    return performance.now() - from;
  };
  const cold = one();
  for (let i = 0; i < 5; i++) one();
  return [built - begun, cold, one()];
}"""
#: The longest pause between two frames from now on, until it is asked for.
FRAMES = """() => {
  globalThis.longest = 0;
  let last = performance.now();
  const look = (now) => {
    globalThis.longest = Math.max(globalThis.longest, now - last);
    last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def write_engine(folder: Path) -> Path:
    """Write a page with the whole engine and both models."""
    files = {name: export_live(name, folder).name for name in (TRANSLATOR, WRITER)}
    scripts = dict.fromkeys([*figures.live.scripts_of("weights"), *figures.live.scripts_of("tokenizers")])
    for part in ("decoder-lm", "encoder-decoder", "generate"):
        scripts |= dict.fromkeys(figures.live.scripts_of(part))
    parts = "".join(f"<script>{figures.live.script(name)[1]}</script>" for name in scripts)
    path = folder / "engine.html"
    text = f"<!doctype html><title>engine</title>{parts}<script>exformer.files = {files!r};</script>"
    path.write_text(text, encoding="utf-8")
    return path


def race(page: Any, rounds: int) -> dict[str, Any]:
    """Time page and library on the same tasks in turns: milliseconds, ratios, tokens a second."""
    german = [pair.target for pair in captions()]
    translator, pair, _ = load_model(TRANSLATOR)
    writer, tokenizer, _ = load_model(WRITER)
    tasks = {
        "a caption": (
            lambda: page.evaluate(TRANSLATE, [TRANSLATOR, german]),
            lambda: [translate(translator, pair, text) for text in german],
            len(german),
        ),
        f"{N_NEW} tokens": (
            lambda: page.evaluate(CONTINUE, [WRITER, PROMPT, N_NEW]),
            lambda: generate(writer, tokenizer, PROMPT, max_new_tokens=N_NEW, temperature=0.0),
            1,
        ),
    }
    found: dict[str, Any] = {}
    for name, (inside, outside, n) in tasks.items():
        inside()
        outside()
        page_ms, library_ms, speed = [], [], []
        for _ in range(rounds):
            ms, tokens = inside()
            begun = time.perf_counter()
            outside()
            library_ms.append(1000 * (time.perf_counter() - begun) / n)
            page_ms.append(ms / n)
            speed.append(1000 * tokens / ms)
        ratios = [ours / theirs for ours, theirs in zip(page_ms, library_ms, strict=True)]
        found[name] = {
            "page ms": median(page_ms),
            "library ms": median(library_ms),
            "page / library": median(ratios),
            "lowest ratio": min(ratios),
            "highest ratio": max(ratios),
            "page tokens a second": median(speed),
        }
    return found


def warm_runs(page: Any, script: str, argument: list[Any], rounds: int) -> list[Any]:
    """Warm up for a second, then run a script as often as asked; return what it returned."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < 1.0:
        page.evaluate(script, argument)
    return [page.evaluate(script, argument) for _ in range(rounds)]


def speeds(browser: Any, engine: Path, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Measure tokens a second with and without the kernel, and on a processor four times slower.

    The language model's are those that it generates, in the time that includes the prompt; the translator's
    are counted in both ways, with the end tokens. Each task runs for a second first: a browser compiles
    again, better, what runs often, and until then a token can take twice as long.
    """
    german = [pair.target for pair in captions()]
    writer: dict[str, float] = {}
    translator: dict[str, float] = {}
    for kernel in ("kernel", "plain"):
        page = browser.new_page()
        if kernel == "plain":
            page.add_init_script("delete globalThis.WebAssembly;")
        page.goto(engine.as_uri())
        session = page.context.new_cdp_session(page)
        for rate in (1, 4):
            session.send("Emulation.setCPUThrottlingRate", {"rate": rate})
            how = f"{kernel}, processor {rate} times slower" if rate > 1 else kernel
            runs = warm_runs(page, CONTINUE, [WRITER, PROMPT, N_NEW], rounds)
            writer[how] = median(1000 * tokens / ms for ms, tokens in runs)
            runs = warm_runs(page, TWO_PARTS, [TRANSLATOR, german], rounds)
            both = median(1000 * (read + written) / (first + second) for first, second, read, written in runs)
            translator[f"{READ_AND_WRITTEN}: {how}"] = both
            translator[f"{WRITTEN}: {how}"] = median(1000 * written / ms for _, ms, _, written in runs)
        page.close()
    return writer, dict(sorted(translator.items()))


def of_figures(chromium: Any, folder: Path, rounds: int) -> dict[str, Any]:
    """Measure for each figure the time until it runs, the longest frame, and the bytes that it loads."""
    found = {}
    for name in live_figures():
        path = figures.write_page(folder / name, name, before=5000)
        times, frames = [], []
        for _ in range(rounds):
            page = chromium.page()
            page.open(path)
            page.raw.wait_for_timeout(300)  # the page itself is done
            page.run(FRAMES)
            times.append(page.run(SCROLL))
            page.raw.wait_for_timeout(300)
            frames.append(page.run("() => globalThis.longest"))
            page.close()
        scripts = [figures.live.script("start")[1], figures.live.bundle(name)[1]]
        models = [figures.live.model(each)[1] for each in live_figure(name).figure.models]
        found[name] = {
            "ms from scrolling to running": median(times),
            "longest frame, ms": median(frames),
            "bytes of scripts": sum(len(text.encode()) for text in scripts),
            "bytes of scripts, compressed": sum(len(gzip.compress(text.encode())) for text in scripts),
            "bytes of scripts, later": sum(
                len(text.encode()) for _, text in figures.live.later(name).values()
            ),
            "bytes of models": sum(len(text.encode()) for text in models),
        }
    return found


def main() -> None:
    """Run the benchmark, print the result and write it."""
    parser = new_parser(__doc__, quick="two rounds", threads="")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is measured (9)")
    asked = parser.parse_args()
    file, rounds = result_file(parser, asked.json, name="live"), 2 if asked.quick else asked.rounds
    torch.set_num_threads(1)
    result: dict[str, Any] = {"machine": machine(), "rounds": rounds}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        args = ["--no-sandbox", "--disable-gpu"]
        path = next(filter(None, map(shutil.which, CHROMIUMS)), None)
        browser = playwright.chromium.launch(executable_path=path, args=args)
        engine = write_engine(folder)
        starts = []
        for _ in range(rounds):
            page = browser.new_page()
            page.goto(engine.as_uri())
            starts.append(page.evaluate(FIRST, [WRITER, PROMPT]))
            page.close()
        columns = ("load and build", "first token, cold", "first token, warm")
        found = zip(columns, zip(*starts, strict=True), strict=True)
        result["ms"] = {column: median(each) for column, each in found}
        page = browser.new_page()
        page.goto(engine.as_uri())
        result["beside the library, one thread"] = race(page, rounds)
        result["tokens a second"], result["translator, tokens a second"] = speeds(browser, engine, rounds)
        result["figures"] = of_figures(browsers.Chromium(browser), folder, rounds)
        browser.close()
    for title, part in result.items():
        if isinstance(part, dict) and title != "machine":
            print(f"\n{title}")
            for row, value in part.items():
                cells = value.items() if isinstance(value, dict) else [("", value)]
                print(f"  {row:84}", "  ".join(f"{column} {number:,.3g}".strip() for column, number in cells))
    write(result, file)


if __name__ == "__main__":
    main()
