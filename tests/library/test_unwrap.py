"""A model inside the wrappers of torch.compile and data parallelism."""

import pytest
import torch
from torch import nn

from exformer import DecoderLM, DecoderLMConfig
from exformer.models.unwrap import unwrap


def compiled(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend="eager")


@pytest.mark.parametrize("wrap", [compiled, nn.DataParallel, lambda m: compiled(nn.DataParallel(m))])
def test_unwrapped_model_is_the_one_inside(wrap):
    model = DecoderLM(DecoderLMConfig(11, d_model=8, n_heads=2))
    assert unwrap(wrap(model)) is model
    assert unwrap(model) is model
