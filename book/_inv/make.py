"""Write the small intersphinx inventories, so that building the book needs no network."""

import zlib
from pathlib import Path

HERE = Path(__file__).parent
PROJECTS = {
    "python": (
        "3.13",
        [
            ("argparse.Namespace", "py:class", "library/argparse.html#$"),
            ("pathlib.Path", "py:class", "library/pathlib.html#$"),
            ("ValueError", "py:exception", "library/exceptions.html#$"),
            ("AssertionError", "py:exception", "library/exceptions.html#$"),
            ("collections.abc.Callable", "py:class", "library/collections.abc.html#$"),
            ("collections.abc.Iterable", "py:class", "library/collections.abc.html#$"),
            ("collections.abc.Iterator", "py:class", "library/collections.abc.html#$"),
            ("collections.abc.Sequence", "py:class", "library/collections.abc.html#$"),
            ("collections.abc.Mapping", "py:class", "library/collections.abc.html#$"),
            ("random.Random", "py:class", "library/random.html#$"),
            ("object", "py:class", "library/functions.html#$"),
            ("str", "py:class", "library/stdtypes.html#$"),
            ("int", "py:class", "library/functions.html#$"),
            ("float", "py:class", "library/functions.html#$"),
            ("bool", "py:class", "library/functions.html#$"),
            ("list", "py:class", "library/stdtypes.html#$"),
            ("dict", "py:class", "library/stdtypes.html#$"),
            ("tuple", "py:class", "library/stdtypes.html#$"),
            ("set", "py:class", "library/stdtypes.html#$"),
            ("None", "py:obj", "library/constants.html#$"),
            ("typing.Any", "py:data", "library/typing.html#$"),
            ("typing.Literal", "py:data", "library/typing.html#$"),
            ("typing.NamedTuple", "py:class", "library/typing.html#$"),
        ],
    ),
    "torch": (
        "2.13",
        [
            ("torch.Tensor", "py:class", "tensors.html#$"),
            ("Tensor", "py:class", "tensors.html#torch.Tensor"),  # as jaxtyping writes it
            ("torch.Generator", "py:class", "generated/torch.Generator.html#$"),
            ("torch._C.Generator", "py:class", "generated/torch.Generator.html#torch.Generator"),
            ("torch.device", "py:class", "tensor_attributes.html#$"),
            ("torch.dtype", "py:class", "tensor_attributes.html#$"),
            ("torch.optim.Optimizer", "py:class", "optim.html#$"),
            ("torch.optim.optimizer.Optimizer", "py:class", "optim.html#torch.optim.Optimizer"),
            ("torch.nn.Module", "py:class", "generated/torch.nn.Module.html#$"),
            ("torch.nn.modules.module.Module", "py:class", "generated/torch.nn.Module.html#torch.nn.Module"),
            ("torch.nn.MultiheadAttention", "py:class", "generated/torch.nn.MultiheadAttention.html#$"),
            ("torch.nn.Transformer", "py:class", "generated/torch.nn.Transformer.html#$"),
            ("torch.nn.LayerNorm", "py:class", "generated/torch.nn.LayerNorm.html#$"),
            ("torch.nn.Embedding", "py:class", "generated/torch.nn.Embedding.html#$"),
            (
                "torch.nn.functional.scaled_dot_product_attention",
                "py:function",
                "generated/torch.nn.functional.scaled_dot_product_attention.html#$",
            ),
            (
                "torch.nn.functional.cross_entropy",
                "py:function",
                "generated/torch.nn.functional.cross_entropy.html#$",
            ),
            ("torch.nn.Linear", "py:class", "generated/torch.nn.Linear.html#$"),
        ],
    ),
    "numpy": (
        "2.4",
        [
            (name, "py:class", "reference/generated/numpy.ndarray.html#numpy.ndarray")
            for name in ("numpy.ndarray", "ndarray")
        ]
        + [("numpy.random.Generator", "py:class", "reference/random/generator.html#$")],
    ),
    "jaxtyping": (
        "0.3",
        [
            (f"{module}{name}", "py:class", "api/array/#dtype")
            for module in ("jaxtyping.", "")
            for name in ("Float", "Float32", "Float64", "Int", "Int64", "Bool", "Num", "Shaped")
        ],
    ),
    "matplotlib": (
        "3.11",
        [
            ("matplotlib.axes.Axes", "py:class", "api/_as_gen/matplotlib.axes.Axes.html#$"),
            (
                "matplotlib.axes._axes.Axes",
                "py:class",
                "api/_as_gen/matplotlib.axes.Axes.html#matplotlib.axes.Axes",
            ),
            (
                "matplotlib.colorizer._ScalarMappable",
                "py:class",
                "api/cm_api.html#matplotlib.cm.ScalarMappable",
            ),
            ("matplotlib.cm.ScalarMappable", "py:class", "api/cm_api.html#$"),
            ("matplotlib.figure.Figure", "py:class", "api/_as_gen/matplotlib.figure.Figure.html#$"),
            ("matplotlib.lines.Line2D", "py:class", "api/_as_gen/matplotlib.lines.Line2D.html#$"),
        ],
    ),
}


def main():
    """Write one inventory a project."""
    for name, (version, rows) in PROJECTS.items():
        head = (
            f"# Sphinx inventory version 2\n# Project: {name}\n# Version: {version}\n"
            "# The remainder of this file is compressed using zlib.\n"
        )
        body = "".join(f"{n} {role} 1 {uri} -\n" for n, role, uri in rows)
        (HERE / f"{name}.inv").write_bytes(head.encode() + zlib.compress(body.encode(), 9))


if __name__ == "__main__":
    main()
