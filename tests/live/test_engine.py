"""The engine of the live figures is the library: logits, every switch, ε, caches, with both kernels."""

import engine
import pytest
import torch
from engine import SHIPPED

from exformer.nn.normalization import layer_norm, rms_norm

# The library's shapes have tests of their own, and what is expected here takes a third of the time without.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")

CLOSE = 5e-5


def test_the_kernel_is_the_one_that_is_asked_for(engine_page, request) -> None:
    """Where there is WebAssembly it is used."""
    wasm = engine_page.run("async () => !!(await exformer.load('shakespeare-char')).model.p.kernel.run")
    assert wasm == engine_page.run("() => 'WebAssembly' in globalThis")


@pytest.mark.parametrize("name", SHIPPED)
def test_logits(engine_page, engine_folder, name: str) -> None:
    """On fifty inputs no logit of a shipped model differs by more than 5e-5."""
    path = engine_folder / f"expected-{name}.js"
    if not path.exists():
        path.write_text(f"globalThis.expected = '{engine.pack(expected_logits(name))}';", encoding="utf-8")
    engine_page.run(
        """(src) => new Promise((onload, onerror) => {
            document.head.append(Object.assign(document.createElement("script"), { src, onload, onerror }));
        })""",
        path.as_uri(),
    )
    differences, left = engine_page.run(
        """async (name, inputs) => {
            const { model } = await exformer.load(name);
            const expected = unpack(globalThis.expected);
            let at = 0;
            const differences = inputs.map(([src, ids]) => {
                let most = 0;
                for (const logit of run(model, src, ids).data) {
                    const difference = Math.abs(logit - expected[at++]);
                    if (!(difference <= most)) most = difference; // also where one is no number
                }
                return most;
            });
            return [differences, expected.length - at];
        }""",
        name,
        engine.inputs(name),
    )
    assert left == 0
    assert len(differences) == 50
    assert max(differences) <= CLOSE


def expected_logits(name):
    """Return the library's logits of all inputs, one after the other."""
    model, _ = engine.shipped(name)
    return torch.cat([engine.library_logits(model, *each).flatten() for each in engine.inputs(name)])


def test_every_switch(engine_page) -> None:
    """Small models with random weights: each choice of a configuration gives the library's logits."""
    models = engine.small_models()
    found = engine_page.run(
        """async (inputs) => {
            const found = {};
            for (const [name, [src, ids]] of Object.entries(inputs)) {
                const { model } = await exformer.load(name);
                found[name] = pack(run(model, src, ids).data);
            }
            return found;
        }""",
        {name: engine.small_input(name) for name in models},
    )
    far = {}
    for name, model in models.items():
        expected = engine.library_logits(model, *engine.small_input(name)).flatten()
        error = ((engine.numbers(found[name]) - expected).abs().max() / expected.std()).item()
        if not error < CLOSE:
            far[f"{name} {model.config}"] = error
    assert not far


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_epsilon(engine_page, norm: str) -> None:
    """Vectors so small that ε counts, and zero, are normalized as by the library."""
    rng = torch.Generator().manual_seed(5)
    sizes = torch.tensor([1.0, 1e-2, 3e-3, 1e-3, 1e-4, 0.0])[:, None]
    x = sizes * torch.randn(6, 16, generator=rng) + (sizes if norm == "layer" else 0)
    gain, bias = torch.randn(2, 8, generator=rng)
    found = engine_page.run(
        """(x, gain, bias, norm) => {
            const values = { "n.gain": { data: unpack(gain) } };
            if (norm === "layer") values["n.bias"] = { data: unpack(bias) };
            const p = { get: (name) => values[name], find: (name) => values[name] };
            const rows = new exformer.Matrix(6, 16, unpack(x));
            return pack(exformer.normalize(p, "n", rows, { norm, width: 8 }).data);
        }""",
        engine.pack(x),
        engine.pack(gain),
        engine.pack(bias),
        norm,
    )
    halves = x.unflatten(1, (2, 8))
    expected = layer_norm(halves, gain=gain, bias=bias) if norm == "layer" else rms_norm(halves, gain=gain)
    torch.testing.assert_close(engine.numbers(found), expected.flatten(), atol=1e-6, rtol=1e-5)


def test_a_cache_changes_nothing(engine_page) -> None:
    """Token by token, two at a time, after a step back and in a copy, logits are those of the whole text."""
    names = [name for name in engine.small_models() if not name.endswith("EncoderLM")]
    found = engine_page.run(
        """async (inputs) => {
            const found = {};
            for (const [name, [src, ids]] of Object.entries(inputs)) {
                const { model } = await exformer.load(name);
                const memory = src && model.encode(src);
                const step = (some, cache) =>
                    src ? model.decode(some, memory, { cache }) : model.forward(some, { cache });
                const whole = step(ids);
                const squares = whole.data.map((each) => each ** 2);
                const size = Math.sqrt(squares.reduce((a, b) => a + b) / squares.length);
                let most = 0;
                const compare = (rows, first) => {
                    for (let t = 0; t < rows.rows; t++)
                        rows.row(t).forEach((each, i) => {
                            const difference = Math.abs(each - whole.row(first + t)[i]) / size;
                            if (!(difference <= most)) most = difference;
                        });
                };
                const cache = model.newCache();
                for (let t = 0; t < 4; t++) compare(step([ids[t]], cache), t);
                const copy = cache.copy();
                compare(step(ids.slice(4, 6), cache), 4);
                compare(step([ids[6]], cache), 6);
                compare(step(ids.slice(4, 9), copy), 4); // which has seen nothing of what came after it
                if (cache.truncate) {
                    cache.truncate(2);
                    step([200, 201, 202], cache);
                    cache.truncate(2);
                    compare(step(ids.slice(2, 5), cache), 2);
                }
                compare(step(ids.slice(9), copy), 9);
                found[name] = [most, copy.length];
            }
            return found;
        }""",
        {name: engine.small_input(name) for name in names},
    )
    assert {name: each for name, each in found.items() if not each[0] <= CLOSE or each[1] != 11} == {}
