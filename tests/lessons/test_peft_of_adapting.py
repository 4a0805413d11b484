"""The lesson's lines with peft, which it does not run: they do on Llama models that need no network."""

import json
import re
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

LESSON = Path(__file__).parents[2] / "notebooks" / "15_adapting.ipynb"
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
IDS = torch.tensor([[3, 1, 4, 1, 5]])


def lines():
    """Return the lesson's lines, and the last one, which merges, apart."""
    cells = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    (found,) = re.findall(r"^```python\n(from peft .*?)^```$", prose, flags=re.M | re.S)
    first, merge = found.split("\nmerged = ")
    return first, "merged = " + merge


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the lines that come before merging, on a Llama model in place of the one that they load."""
    monkeypatch.chdir(tmp_path)  # they save

    def run_on(model, until=None):
        monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda name, dtype: model)
        names = {}
        exec(lines()[0].split(until)[0] if until else lines()[0], names)
        return names

    return run_on


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_the_lines_freeze_take_off_save_and_merge(run, tmp_path) -> None:
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_config(LlamaConfig(vocab_size=50, **SMALL)).eval()
    before = base(IDS).logits.detach()
    names = run(base)
    model = names["model"].eval()
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert len(trained) == 2 * 2 * 7  # A and B of seven linear layers in two blocks
    assert all(p.any() == ("lora_A" in name) for name, p in trained.items())
    assert (tmp_path / "my-task" / "adapter_model.safetensors").stat().st_size < 200_000
    with torch.no_grad():
        for p in trained.values():
            p.normal_(std=0.2)
        on = model(IDS).logits
        with model.disable_adapter():
            torch.testing.assert_close(model(IDS).logits, before)
        assert (on - before).abs().max() > 0.01
        exec(lines()[1], names)
        torch.testing.assert_close(names["merged"](IDS).logits, on, atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_the_lines_count_the_weights_of_llama_2_7b(run, capsys) -> None:
    with torch.device("meta"):
        base = AutoModelForCausalLM.from_config(LlamaConfig())
        run(base, until="...  #")
    trained, all_of_them = re.findall(r"params: ([\d,]+)", capsys.readouterr().out)
    assert f"# {trained} of {all_of_them}\n" in lines()[0]
