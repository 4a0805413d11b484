"""Give each variable of a lesson a name of its own, so that one name stands for one thing.

``right`` may be a panel of a figure here and a count inside a function there, and ``rows`` is bound anew for
each table. Inside functions and comprehensions a name gets the mark of its function; at the top it gets
another mark each time that it is bound anew, unless something that runs later reads it.
"""

import ast
import copy
from collections import Counter

_INNER = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_LATER = ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.GeneratorExp
MARK = "§"


def plain(name):
    """Return a name without its mark."""
    return name.split(MARK)[0]


def renamed(nodes):
    """Return the statements with names of their own, each with what names stand for after it."""
    marked = [_Locals(str(number)).visit(copy.deepcopy(node)) for number, node in enumerate(nodes)]
    fixed = _fixed(marked)
    found, now, count = [], {}, Counter()
    for node in marked:
        names = {each.id for each in _new(node)} - fixed
        if names:
            node.value = _Versions(now).visit(node.value)
            count.update(names)
            now = now | {name: f"{name}{MARK}v{count[name]}" for name in names}
            node.targets = [_Versions(now).visit(target) for target in node.targets]
        else:
            node = _Versions(now).visit(node)
        found.append((node, now))
    return found


def _new(node):
    """Return the names that a statement binds anew."""
    if not isinstance(node, ast.Assign):
        return []
    parts = [each for target in node.targets for each in ast.walk(target)]
    return [each for each in parts if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


def _fixed(nodes):
    """Return the names that something else binds, too, or that are read later than where they stand."""
    found = set()
    for node in nodes:
        new = {id(each) for each in _new(node)}
        for each in ast.walk(node):
            if isinstance(each, _LATER):
                found |= {inner.id for inner in ast.walk(each) if isinstance(inner, ast.Name)}
            if (
                isinstance(each, ast.Name)
                and isinstance(each.ctx, ast.Store | ast.Del)
                and id(each) not in new
            ):
                found.add(each.id)
            if isinstance(each, ast.Import | ast.ImportFrom):
                found |= {alias.asname or alias.name.split(".")[0] for alias in each.names}
            if isinstance(each, ast.FunctionDef | ast.ClassDef):
                found.add(each.name)
    return found


class _Versions(ast.NodeTransformer):
    """Put what names stand for in their place."""

    def __init__(self, now):
        self.now = now

    def visit_Name(self, node):
        node.id = self.now.get(node.id, node.id)
        return node


class _Locals(ast.NodeTransformer):
    """Mark what belongs to a function or a comprehension."""

    def __init__(self, mark, own=None):
        self.mark, self.own, self.count = mark, own or {}, 0

    def _inside(self, names):
        self.count += 1
        mark = f"{self.mark}.{self.count}"
        return _Locals(mark, self.own | {name: f"{name}{MARK}{mark}" for name in names})

    def visit_Name(self, node):
        node.id = self.own.get(node.id, node.id)
        return node

    def visit_FunctionDef(self, node):
        inner = self._inside(_locals(node))
        given = node.args
        given.defaults = [self.visit(each) for each in given.defaults]
        given.kw_defaults = [each and self.visit(each) for each in given.kw_defaults]
        node.name = self.own.get(node.name, node.name)
        for each in _arguments(given):
            each.arg, each.annotation = inner.own[each.arg], None
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.body = [inner.visit(each) for each in node.body]
        return node

    def visit_ClassDef(self, node):
        node.name = self.own.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_Lambda(self, node):
        inner = self._inside({each.arg for each in _arguments(node.args)})
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.args.kw_defaults = [each and self.visit(each) for each in node.args.kw_defaults]
        for each in _arguments(node.args):
            each.arg = inner.own[each.arg]
        node.body = inner.visit(node.body)
        return node

    def _comprehension(self, node):
        first = node.generators[0]
        first.iter = self.visit(first.iter)  # read outside
        names = {
            each.id
            for loop in node.generators
            for each in ast.walk(loop.target)
            if isinstance(each, ast.Name)
        }
        inner = self._inside(names)
        for loop in node.generators:
            loop.target = inner.visit(loop.target)
            loop.iter = loop.iter if loop is first else inner.visit(loop.iter)
            loop.ifs = [inner.visit(each) for each in loop.ifs]
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                setattr(node, part, inner.visit(getattr(node, part)))
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815


def _arguments(given):
    more = [each for each in (given.vararg, given.kwarg) if each]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *more]


def _locals(function):
    """Return what belongs to a function: what it is given and binds, unless it says that it is another's."""
    names, others = {each.arg for each in _arguments(function.args)}, set()
    stack = list(function.body)
    while stack:
        each = stack.pop()
        if isinstance(each, ast.Global | ast.Nonlocal):
            others |= set(each.names)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store | ast.Del):
            names.add(each.id)
        elif isinstance(each, ast.FunctionDef | ast.ClassDef):
            names.add(each.name)
        if not isinstance(each, ast.FunctionDef | ast.ClassDef | ast.Lambda | _INNER):
            stack += ast.iter_child_nodes(each)
        elif isinstance(each, _INNER):  # a walrus in it binds outside
            names |= {inner.target.id for inner in ast.walk(each) if isinstance(inner, ast.NamedExpr)}
    return names - others
