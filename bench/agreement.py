"""Measure how far the library is from PyTorch and Hugging Face: the largest difference that tests see.

    python bench/agreement.py [--json FILE]

The tests of parity run, in float64 with random weights; each comparison that they make is noted: outputs,
gradients of inputs and gradients of all parameters. Half a minute on one core. The library is imported by
the tests, whose check of shapes must come first, so it is imported nowhere above.
"""

import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "library"
sys.path[:0] = [str(ROOT), str(TESTS)]

import pytest  # noqa: E402

#: Whose module or model, and the test that compares it with ours.
TWINS = {
    "PyTorch": {
        "nn.MultiheadAttention": "test_multi_head.py::test_parity_with_torch",
        "nn.TransformerEncoderLayer": "test_layers.py::test_encoder_layer_parity_with_torch",
        "nn.TransformerDecoderLayer": "test_layers.py::test_decoder_layer_parity_with_torch",
        "nn.Transformer": "test_encoder_decoder.py::test_parity_with_torch",
    },
    "Hugging Face": {
        "GPT-2": "test_hf_parity.py::test_decoder_lm_is_gpt2",
        "BERT": "test_hf_parity.py::test_encoder_lm_is_bert",
        "Marian": "test_hf_parity.py::test_encoder_decoder_is_marian",
        "Llama": "test_hf_parity.py::test_decoder_lm_is_llama",
        "Mistral": "test_hf_parity.py::test_decoder_lm_with_a_window_is_mistral",
        "Mixtral": "test_hf_parity.py::test_decoder_lm_with_experts_is_mixtral",
    },
}


class Differences:
    """Notes what each test compares: all of them do so by `torch_twins.close`. A plugin of pytest."""

    def __init__(self) -> None:
        #: For each test, the largest difference of outputs and of gradients, one for each comparison.
        self.found: dict[str, dict[str, list[float]]] = {}
        self.test, self.judge = "", None

    def pytest_sessionstart(self) -> None:
        """Take the place of `close` before the tests are imported, which take it from there."""
        twins = import_module("torch_twins")
        self.judge, twins.close = twins.close, self.close

    def pytest_sessionfinish(self) -> None:
        """Give the place back."""
        import_module("torch_twins").close = self.judge

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Note which test runs."""
        self.test = f"{item.path.name}::{item.originalname}"  # type: ignore[attr-defined]

    def close(self, got: Any, wanted: Any) -> None:
        """Note how far two tensors are apart, then hold them equal."""
        twins = sys._getframe(1).f_globals["__name__"] in ("torch_twins", "hf_twins")
        kind = "gradients" if twins else "outputs"  # of all parameters; a test itself compares the rest
        found = self.found.setdefault(self.test, {"outputs": [], "gradients": []})
        found[kind].append((got.detach() - wanted.detach()).abs().max().item())
        self.judge(got, wanted)  # type: ignore[misc]


def differences(twins: dict[str, dict[str, str]]) -> dict[str, dict[str, Any]]:
    """Run tests; return, for each, the number of comparisons and the largest difference.

    Args:
        twins: Like `TWINS`.

    Raises:
        RuntimeError: If one fails or compares no gradients.
    """
    notes, tests = Differences(), [test for rows in twins.values() for test in rows.values()]
    options = ["-q", "--no-header", "-p", "no:cacheprovider"]
    ended = pytest.main([*options, *(str(TESTS / test) for test in tests)], plugins=[notes])
    silent = [test for test in tests if not notes.found.get(test, {}).get("gradients")]
    if ended or silent:
        raise RuntimeError(
            f"expected tests that pass and compare gradients; pytest: {ended}; without: {silent}"
        )
    return {
        whose: {
            what: {kind: len(each) for kind, each in notes.found[test].items()}
            | {"largest difference": max(max(each) for each in notes.found[test].values())}
            for what, test in rows.items()
        }
        for whose, rows in twins.items()
    }


def main() -> None:
    """Run the tests, print the differences and write them."""
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="bench/results/agreement.json if left out")
    asked, twins = parser.parse_args(), differences(TWINS)
    report = import_module("bench.report")
    for whose, rows in twins.items():
        for what, found in rows.items():
            print(f"{whose}: {what:30}", *(f"{name} {value:,.3g}" for name, value in found.items()))
    file = report.result_file(parser, asked.json, name="agreement")
    report.write({"machine": report.machine(), "twins": twins}, file)


if __name__ == "__main__":
    main()
