"""Which names of a lesson hold pictures and nothing else: a method of a picture changes the picture alone.

Matplotlib and the book's diagrams, figures and tables read what they are given and change none of it, so
that nothing but another picture depends on them. A name is a picture's if it never stands for anything
else, in no function either; a parameter is, if each call of the function gives a picture for it.
"""

import ast
from collections import Counter

#: What draws and writes.
DISPLAY = tuple(f"exformer_lessons.{part}" for part in ("diagrams", "figures", "tables", "live"))
DISPLAY = ("matplotlib", "IPython", *DISPLAY)


def picture_names(nodes):
    """Return the names that hold pictures, or what makes them."""
    bound = {}  # what each name is bound to: expressions; True for what draws, None for anything else
    calls, read = {}, Counter()
    for node in nodes:
        for each in ast.walk(node):
            _note(each, bound)
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
                calls.setdefault(each.func.id, []).append(each)
            read[getattr(each, "id", None)] += 1
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.FunctionDef):
                found = calls.get(each.name, [])
                known = each in nodes and not each.decorator_list and read[each.name] == len(found)
                _note_parameters(each, found if known else [], bound)
    names, before = set(bound), None
    while before != names:
        before = set(names)
        names = {name for name in names if all(_fits(value, before) for value in bound[name])}
    return names


def is_picture(node, names):
    """Say whether an expression is a picture, or what makes one."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call):
        what = getattr(node.func, "attr", "")
        return not what.startswith("get") and is_picture(node.func, names)
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        return is_picture(node.value, names)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(is_picture(each, names) for each in node.elts)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return is_picture(node.elt, names)
    if isinstance(node, ast.IfExp):
        return is_picture(node.body, names) and is_picture(node.orelse, names)
    return False


def _fits(value, names):
    return value is True or (value is not None and is_picture(value, names))


def _note(node, bound):
    """Note what a piece of code binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        for each in node.names:
            path = each.name if isinstance(node, ast.Import) else f"{node.module}.{each.name}"
            name = each.asname or each.name.split(".")[0]
            bound.setdefault(name, []).append(True if path.startswith(DISPLAY) else None)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            _note_target(target, node.value, bound)
    elif isinstance(node, ast.For | ast.comprehension):
        _note_target(node.target, node.iter, bound, elements=True)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        _note_target(node.optional_vars, None, bound)
    elif isinstance(node, ast.NamedExpr | ast.AugAssign | ast.AnnAssign):
        _note_target(node.target, node.value, bound)
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        bound.setdefault(node.name, []).append(None)
    elif isinstance(node, ast.Lambda):
        _note_parameters(node, [], bound)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs) and node.name:
        bound.setdefault(node.name, []).append(None)


def _note_target(target, value, bound, *, elements=False):
    """Note a name and its value; several names share the value, or have each its own."""
    if isinstance(target, ast.Name):
        bound.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Starred):
        _note_target(target.value, value, bound)
    elif isinstance(target, ast.Tuple | ast.List):
        values = _parts(value, len(target.elts), elements)
        for each, part in zip(target.elts, values, strict=True):
            _note_target(each, part, bound, elements=elements and part is not value)


def _parts(value, n, elements):
    """Return the value of each of n names that are bound at once."""
    if elements and isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        given = [each for each in value.args if not isinstance(each, ast.Starred)]
        if value.func.id == "zip" and len(given) == len(value.args) == n:
            return given
        if value.func.id == "enumerate" and given and n == 2:
            return [None, given[0]]
    if not elements and isinstance(value, ast.Tuple | ast.List) and len(value.elts) == n:
        return value.elts
    return [value] * n


def _note_parameters(function, calls, bound):
    """Note what a function is given; unknown where it is not called by its name."""
    given = function.args
    names = [each.arg for each in [*given.posonlyargs, *given.args]]
    others = [*given.kwonlyargs, *(each for each in (given.vararg, given.kwarg) if each)]
    for each in others:
        bound.setdefault(each.arg, []).append(None)
    for at, name in enumerate(names):
        values = [call.args[at] if at < len(call.args) else None for call in calls] or [None]
        if any(isinstance(each, ast.Starred) for call in calls for each in call.args):
            values = [None]
        bound.setdefault(name, []).extend(values)
