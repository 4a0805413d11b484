"""The model inside the wrappers that torch.compile and data parallelism put around it."""

from torch import nn


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model inside ``torch.compile(model)`` or a data-parallel wrapper; other models as they are.

    A wrapper has another class and other parameter names (``_orig_mod.…``, ``module.…``), but shares its
    parameters with the model inside. So whatever generates, saves or asks for the kind of a model takes the
    inner one; a training step still calls the wrapper.

    Raises:
        ValueError: If it is not a model, but its name for example.

    >>> model = nn.Linear(2, 3)
    >>> unwrap(nn.DataParallel(model)) is model, unwrap(model) is model
    (True, True)
    """
    if isinstance(model, str):
        raise ValueError(f"expected a model, got the name {model!r}: load it with load_model({model!r})")
    if not isinstance(model, nn.Module):
        raise ValueError(f"expected a model, an nn.Module, got {type(model).__name__}")
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif "_orig_mod" in model._modules:  # torch._dynamo's OptimizedModule, without importing the compiler
            model = model.get_submodule("_orig_mod")
        else:
            return model
