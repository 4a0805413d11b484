"""The engine of the live figures is the library: products, logits, every setting, ε, caches, hooks."""

import base64
import copy

import engine
import kernel
import numpy as np
import pytest
import torch
from engine import SHIPPED

from exformer.nn.normalization import layer_norm, rms_norm

# The library's shapes have tests of their own, and what is expected here takes a third of the time without.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")

CLOSE = 5e-5


@pytest.mark.parametrize("wasm", [True, False])
@pytest.mark.parametrize(
    ("rows", "n", "width"), [(1, 4, 8), (3, 7, 16), (2, 3, 8), (2, 5, 12), (9, 5259, 128), (300, 5000, 8)]
)
def test_products(engine_page, wasm: bool, rows: int, n: int, width: int) -> None:
    """X W^T + bias, cut off below, with the kernel and on a page that forbids WebAssembly."""
    rng = torch.Generator().manual_seed(n)
    x, w, bias = (torch.randn(size, generator=rng) for size in ((rows, width), (n, width), (n,)))
    fast, found = engine_page.run(
        """(wasm, x, w, bias, rows, n, width) => {
            const { WebAssembly } = globalThis;
            if (!wasm) delete globalThis.WebAssembly;
            const kernel = new exformer.Kernel(1 + n * width);
            globalThis.WebAssembly = WebAssembly;
            const weights = exformer.part(kernel.numbers, 1, 1 + n * width);
            weights.set(unpack(w));
            const input = new exformer.Matrix(rows, width, unpack(x));
            const matrix = new exformer.Matrix(n, width, weights, kernel);
            return [!!kernel.run, pack(matrix.products(input, unpack(bias), -1).data)];
        }""",
        wasm, *map(engine.pack, (x, w, bias)), rows, n, width,
    )  # fmt: skip
    assert fast == wasm
    expected = (x @ w.T + bias).clamp(min=-1)
    torch.testing.assert_close(engine.numbers(found).view(rows, n), expected, atol=2e-5, rtol=1e-5)


def test_kernel_is_its_source() -> None:
    assert kernel.LITERAL.search((kernel.LIVE / "matrix.js").read_text())[0] == kernel.assemble()


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


@pytest.mark.parametrize("native", [True, False])
def test_halves(engine_page, native: bool) -> None:
    """Each finite number of half precision becomes what it is, also where a browser has no Float16Array."""
    bits = np.arange(65536, dtype=np.uint16)
    bits = bits[(bits & 0x7C00) != 0x7C00]
    found = engine_page.run(
        """async (text, rows) => {
            exformer.provide("all halves", {
                kind: "DecoderLM", dtype: "float16", tensors: [["weight", rows, 8]], tokenizers: [],
            }, text);
            return pack((await exformer.load("all halves")).model.p.weight.data);
        }""",
        base64.b64encode(bits.tobytes()).decode(),
        len(bits) // 8,
    )
    expected = torch.from_numpy(bits.view(np.float16).astype(np.float32))
    assert torch.equal(engine.numbers(found), expected)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_epsilon(engine_page, norm: str) -> None:
    """Vectors so small that ε counts, and zero, are normalized as by the library."""
    rng = torch.Generator().manual_seed(5)
    sizes = torch.tensor([1.0, 1e-2, 3e-3, 1e-3, 1e-4, 0.0])[:, None]
    x = sizes * torch.randn(6, 16, generator=rng) + (sizes if norm == "layer" else 0)
    weight, bias = torch.randn(2, 8, generator=rng)
    found = engine_page.run(
        """(x, weight, bias, norm) => {
            const p = { weight: unpack(weight), bias: norm === "layer" ? unpack(bias) : undefined };
            const rows = new exformer.Matrix(6, 16, unpack(x));
            return pack(exformer.normalize(p, rows, { norm, width: 8 }).data);
        }""",
        engine.pack(x),
        engine.pack(weight),
        engine.pack(bias),
        norm,
    )
    halves = x.unflatten(1, (2, 8))
    expected = layer_norm(halves, weight, bias) if norm == "layer" else rms_norm(halves, weight)
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


#: What a reader may do to an attention or a sublayer, as hooks of the page.
ASK_CHANGED = """async (name, src, ids, [kind, path, head]) => {
    const { model } = await exformer.load(name);
    const uniform = (heads) => {
        for (let t = 0; t < heads[head].rows; t++) {
            const row = heads[head].row(t);
            const seen = row.reduce((n, weight) => n + (weight > 0), 0);
            row.forEach((weight, s) => { row[s] = weight > 0 ? 1 / seen : 0; });
        }
        return heads;
    };
    const hooks = {
        "without a head": () => exformer.knockOut(path, head, model.config.n_heads),
        "uniform weights": () => ({ [`${path}.weights`]: uniform }),
        "without a sublayer": () => ({ [`${path}.output`]: (out) => (out.data.fill(0), out) }),
    }[kind]();
    const logits = model.encode
        ? model.decode(ids, model.encode(src, { hooks }), { hooks }) : model.forward(ids, { hooks });
    return [...logits.data];
}"""
ATTENTIONS = {
    "multi30k-de-en": ["encoder.1.self_attention", "decoder.0.self_attention", "decoder.3.cross_attention"],
    "shakespeare-bpe": ["layers.0.self_attention", "layers.3.self_attention"],
}
CHANGES = [
    (name, kind, path, head)
    for name, paths in ATTENTIONS.items()
    for path in paths
    for kind, head in (("without a head", 1), ("uniform weights", 0), ("without a sublayer", 0))
]


@pytest.mark.parametrize(("name", "kind", "path", "head"), CHANGES, ids=lambda each: str(each))
def test_what_hooks_change_is_changed_as_in_the_library(engine_page, name, kind, path, head) -> None:
    """In the library parameters are made zero: columns of the last map, rows of the queries', a whole map."""
    model, _ = engine.shipped(name)
    model = copy.deepcopy(model)
    attention = model.get_submodule(path)
    size = model.config.d_model // model.config.n_heads
    own = slice(head * size, (head + 1) * size)
    with torch.no_grad():
        if kind == "without a head":
            attention.w_o.weight[:, own] = 0.0
        elif kind == "uniform weights":
            for part in attention.w_q.parameters():
                part[own] = 0.0
        else:
            for part in attention.w_o.parameters():
                part.zero_()
    src, ids = max(engine.inputs(name)[:10], key=lambda each: len(each[1]))
    plain = engine.library_logits(engine.shipped(name)[0], src, ids).flatten()
    expected = engine.library_logits(model, src, ids).flatten()
    found = torch.tensor(engine_page.run(ASK_CHANGED, name, src, ids, [kind, path, head]))
    assert (expected - plain).abs().max() > 1000 * CLOSE  # or nothing was changed
    assert (found - expected).abs().max() <= CLOSE
