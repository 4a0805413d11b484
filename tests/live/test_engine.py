"""The engine of the live figures is the library: logits, every switch, ε, hooks, caches, both kernels."""

import engine
import pytest
import torch
from engine import SHIPPED

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
