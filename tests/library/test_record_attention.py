"""Recording attention: by the names of the modules, while the block runs, of the models that are recorded."""

import pytest
import torch
from recipe_run import run_code
from torch import nn
from torch_twins import normal

from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.record_attention import record_attention, recorder


def attentions(n: int = 2) -> nn.ModuleList:
    return nn.ModuleList(MultiHeadAttention(6, n_heads=2) for _ in range(n)).double().eval()


def run(stack: nn.ModuleList, *, seed: int = 1) -> None:
    x = normal(1, 3, 6, seed=seed).detach()
    for attention in stack:
        x = attention(x, x, x)


def test_weights_go_by_the_names_of_the_modules():
    stack = attentions()
    with record_attention(nn.ModuleDict({"encoder": stack}).eval()) as weights:
        run(stack)
    assert list(weights) == ["encoder.0", "encoder.1"]
    assert not torch.equal(weights["encoder.0"], weights["encoder.1"])
    assert not any(found.requires_grad for found in weights.values())


def test_a_second_pass_replaces_the_first():
    stack = attentions()
    with record_attention(stack) as weights:
        run(stack)
        first = weights["0"]
        run(stack, seed=2)
    assert not torch.equal(weights["0"], first)


def test_nothing_is_recorded_after_the_block_or_of_other_models():
    stack, other = attentions(), attentions()
    with record_attention(stack) as weights:
        run(other)
    run(stack)
    assert weights == {}
    assert recorder(stack[0]) is None


def test_recording_ends_where_the_model_fails():
    stack = attentions()
    with pytest.raises(ZeroDivisionError), record_attention(stack):
        raise ZeroDivisionError
    assert recorder(stack[0]) is None


def test_the_outer_block_goes_on_after_an_inner_one():
    one, two = attentions(), attentions()
    with record_attention(one) as outer:
        with record_attention(two) as inner:
            run(two)
        run(one)
    assert list(outer) == list(inner) == ["0", "1"]


def test_two_models_are_recorded_side_by_side():
    one, two = attentions(), attentions()
    with record_attention(one) as first, record_attention(two) as second, record_attention(two[0]) as part:
        run(one)
        run(two)
    assert list(first) == list(second) == ["0", "1"]
    assert not torch.equal(first["0"], second["0"])
    assert torch.equal(part["MultiHeadAttention"], second["0"])


def test_training_mode_is_refused():
    message = r"in evaluation mode, without dropout: call model\.eval\(\) first"
    with pytest.raises(ValueError, match=message), record_attention(attentions().train()):
        pass


ONE_GRAPH = """
import torch
from exformer import DecoderLM, DecoderLMConfig, record_attention
ids = torch.tensor([[3, 1, 4]])
for positions in ("learned", "rotary", "alibi"):
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_len": 8}
    model = DecoderLM(DecoderLMConfig(11, positions=positions, **sizes)).eval()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    same = torch.equal(compiled(ids), model(ids))
    with record_attention(model) as weights:
        compiled(ids)
    print(same, list(weights))
"""


def test_a_compiled_model_is_one_graph_and_is_recorded() -> None:
    # In a process of its own: to check shapes would break the graph.
    assert run_code(ONE_GRAPH).splitlines() == ["True ['layers.0.self_attention']"] * 3
