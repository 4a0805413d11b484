"""The model inside the wrappers that torch.compile and data parallelism put around it."""

from torch import nn


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model inside ``torch.compile(model)`` or a data-parallel wrapper; other models as they are.

    A wrapper has another class and other parameter names (``_orig_mod.…``, ``module.…``), but shares its
    parameters with the model inside. So whatever generates, saves or asks for the kind of a model takes the
    inner one; a training step still calls the wrapper.

    >>> model = nn.Linear(2, 3)
    >>> unwrap(nn.DataParallel(model)) is model, unwrap(model) is model
    (True, True)
    """
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif "_orig_mod" in model._modules:  # torch._dynamo's OptimizedModule, without importing the compiler
            model = model.get_submodule("_orig_mod")
        else:
            return model
