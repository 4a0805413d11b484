"""Which statements may draw random numbers: each one that does moves all that are drawn after it.

A statement counts if it reads a name that can draw: a module or a function of the list below, or a function,
class, generator or lambda of the lesson that reads one. What is unknown counts. One thing does not: a
model that is called, whose dropout would draw; the trials watch for that as they run.
"""

import ast
import sys

#: Attributes of torch, and methods of tensors, that draw.
_DRAWING = """
    rand randn randint randperm multinomial bernoulli normal poisson rand_like randn_like randint_like
    normal_ uniform_ random_ bernoulli_ exponential_ trunc_normal_ xavier_uniform_ xavier_normal_
    kaiming_uniform_ kaiming_normal_ orthogonal_ dropout alpha_dropout seed manual_seed
"""
DRAWING = set(_DRAWING.split())
#: Parts of torch.nn that begin with a capital and draw nothing; the others start with random weights.
_CALM_PARTS = "Module ModuleList ModuleDict Sequential Parameter Identity ReLU GELU Tanh Sigmoid Softmax"
CALM_PARTS = set(_CALM_PARTS.split())
#: Modules of ours that draw nothing, or from a generator of their own.
_CALM = """
    exformer.corpora exformer.tokenizers exformer.evaluation exformer_lessons exformer.data.translation
    exformer.data.padding exformer.nn.loss exformer.training.schedules exformer.nn.masks
    exformer.generation.sampling.greedy exformer.generation.next_token exformer.generation.translate
    exformer.nn.eval_mode matplotlib IPython
"""
CALM = _CALM.split()
_CALM_NAMES = """
    BPETokenizer CharTokenizer WordTokenizer pad causal_mask padding_mask cross_entropy record_attention
    translate beam_search corpus_bleu scaled_dot_product_attention rotate sinusoidal_encoding
"""
#: The same, by their public names.
CALM_NAMES = {f"exformer.{name}" for name in _CALM_NAMES.split()}


def can_draw(path):
    """Say whether what is imported from somewhere may draw random numbers when it is used."""
    top, _, name = path.partition(".")
    if top in ("torch", "numpy"):  # told by the attributes that are read of them
        return path.split(".")[-1] in DRAWING
    if top == "random":
        return True
    if top in sys.stdlib_module_names or path in CALM_NAMES or name.endswith("Config"):
        return False
    return not path.startswith(tuple(CALM))


def drawing_names(statements):
    """Return the names of a lesson that can draw: imports, and what is made of them to be used later."""
    names = {name for each in statements for name, path in each.imported.items() if can_draw(path)}
    before = None
    while before != names:
        before = set(names)
        for each in statements:
            if _is_kept_for_later(each.tree) and draws(each, names):
                names |= each.defines
    return names


def draws(statement, names):
    """Say whether a statement, or the function that it defines, reads what draws."""
    return any(_reads(node, names, statement.imported) for node in ast.walk(statement.tree))


def _is_kept_for_later(node):
    """Say whether a statement defines what may draw later: a function, a class, a generator, a lambda."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return True
    lazy = ast.GeneratorExp | ast.Lambda
    return isinstance(node, ast.Assign) and any(isinstance(each, lazy) for each in ast.walk(node))


def _reads(node, names, imported):
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id in names
    if not isinstance(node, ast.Attribute):
        return False
    if node.attr in DRAWING or node.attr == "random":
        return True
    parts, root = [], node
    while isinstance(root, ast.Attribute):
        parts.insert(0, root.attr)
        root = root.value
    path = ".".join([imported.get(getattr(root, "id", None), ""), *parts])
    return path.startswith("torch.nn.") and parts[-1][:1].isupper() and parts[-1] not in CALM_PARTS
