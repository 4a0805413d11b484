"""Which statements a result depends on, found from their text.

A result depends on a statement that defines or changes a name which it needs, directly or through other
statements; if it depends on random numbers, on all that were drawn before, too. Pictures, printed tables,
comments and layout do not count. Where the text does not tell, a statement counts: what is found may be more
than is needed.
"""

import ast
import builtins
import hashlib

from lesson_names import plain, renamed
from lesson_pictures import is_picture, picture_names
from lesson_random import drawing_names, draws

#: Functions that change what they are given; those of the library do not, but for the trainings.
CHANGING = {"next", "setattr", "delattr", "exec", "shuffle"}
#: Builtins and methods whose result holds what they are given.
_HOLDING = """
    zip enumerate reversed list dict tuple set sorted iter map filter items values get parameters
    modules children view reshape transpose flatten T
"""
#: Methods of containers, texts, tensors, tokenizers and models that change nothing.
_PURE = """
    items keys values get copy count index join split format strip lower upper capitalize title rstrip
    lstrip removeprefix removesuffix splitlines startswith endswith elements total
    replace size dim numel shape tolist item mean sum std var norm abs max min argmax argmin topk
    any all round square sqrt exp log sin cos softmax log_softmax float double long int bool view
    reshape transpose permute flatten unsqueeze squeeze expand expand_as clone detach gather
    diagonal cumsum cpu numpy parameters state_dict encode decode
"""
HOLDING, PURE_METHODS = set(_HOLDING.split()), set(_PURE.split())
#: Calls that set random numbers, or all of a lesson: every claim depends on them.
SEEDING = {"start", "set_seed", "manual_seed", "seed"}
#: Of these, those that set all of Python, numpy and torch: what was drawn before no longer counts.
STARTING = {"start", "set_seed"}
_PARTS, _OTHERS = ast.Attribute | ast.Subscript, ast.Global | ast.Nonlocal
#: Names whose use is a training.
TRAINING = {"train", "Trainer", "training_steps"}
#: The state of the random numbers, as a name that is needed and changed.
RANDOM = "random numbers"
#: Stands for each of the things that a function is given.
ANY = "any"


class Statement:
    """What a statement needs, defines and changes.

    Args:
        cell: The number of its cell.
        node: Its syntax tree.
        tree: The same with names of their own, which all else is about.
        versions: What names stand for after it.
        imported: Where the lesson's imported names come from.
        pictures: Names of pictures.
    """

    def __init__(self, cell, node, tree, versions, imported, pictures):
        self.cell, self.node, self.tree, self.versions = cell, node, tree, versions
        self.imported, self.pictures = imported, pictures
        self.now = names_read(tree, into_functions=False)
        self.late = set()  # what its functions need when they are called
        for function in _functions(tree):
            self.late |= names_read(function) - _locals(function)
        self.late |= set().union(*map(names_read, _kept_generators(tree)))
        self.defines = names_bound(tree)
        self.starts = _is_start(node)
        plain = isinstance(node, ast.Assign | ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)
        self.kills = self.defines if plain else set()
        self.stores, self.calls, self.links = set(), [], {}
        self.seeds = self.trains = False
        for each in ast.walk(tree):
            self._read(each)

    @property
    def is_definition(self):
        """Whether it binds names that nothing changes."""
        return isinstance(self.tree, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)

    def changes(self, changing, links):
        """Return the names whose contents it may change.

        Args:
            changing: Functions that change what they are given, with the places of what they change.
            links: What names were made of: a variable may hold such a function.
        """
        found = self._changed(changing, links | self.links)
        inside = set().union(*map(_locals, _functions(self.tree))) - self.now - self.defines
        return _closed(found, self.links) - inside

    def parameters_changed(self, changing, links):
        """Return which of the things that it is given a function changes: places and names of parameters."""
        given = self.tree.args
        places = [*given.posonlyargs, *given.args]
        own = {each.arg for each in [*places, *given.kwonlyargs]}
        own |= {each.arg for each in (given.vararg, given.kwarg) if each}
        changed = _closed(self._changed(changing, links | self.links), self.links) & own
        if changed & {each.arg for each in (given.vararg, given.kwarg) if each}:
            return {ANY}
        return {plain(name) for name in changed} | {
            at for at, each in enumerate(places) if each.arg in changed
        }

    def _changed(self, changing, links):
        """Return what is stored into, and what functions are given that change it."""
        return self.stores.union(*(given for given, _ in self._changing_calls(changing, links)))

    def kept_by_calls(self, changing, links):
        """Return what a function that changes one thing may have put into it: all that it was given."""
        found = {}
        for given, together in self._changing_calls(changing, links):
            for name in given - self.pictures:
                found[name] = found.get(name, set()) | together
        return found

    def _changing_calls(self, changing, links):
        """Return for each thing that a call may change its names, and those of all that the call is given."""
        for function, place, given, together in self.calls:
            known = changing.get(function)
            if known is None and _closed({function}, links) & set(changing):
                known = {ANY}
            if known and (ANY in known or place == ANY or place in known):
                yield given, together

    def _read(self, node):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            self.stores |= {_root(node)} - {None}
        elif isinstance(node, ast.Call):
            self._read_call(node)
        elif isinstance(node, ast.AugAssign):
            self.now |= {_root(node.target)} - {None}
            self.stores |= {_root(node.target)} - {None}
        elif isinstance(node, ast.Assign):
            self._link([name for target in node.targets for name in _targets(target)], node.value)
            self._link([_root(each) for each in node.targets if isinstance(each, _PARTS)], node.value)
        elif isinstance(node, _OTHERS):
            self.stores |= set(node.names)
        elif isinstance(node, ast.For | ast.comprehension):
            self._link(_targets(node.target), node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._link(_targets(node.optional_vars), node.context_expr)
        elif isinstance(node, ast.Attribute) and node.attr == "optim":
            self.trains = True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.trains |= is_training(node.id, self.imported)

    def _link(self, names, value):
        """Who changes one of these names may change what it holds."""
        for name in set(names) - self.pictures - {None}:
            self.links[name] = self.links.get(name, set()) | self._held(value)

    def _held(self, node):
        """Return the names of things that a value may hold, rather than a copy or a new thing."""
        if isinstance(node, ast.Name):
            return {node.id}
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.NamedExpr):
            return self._held(node.value)
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return set().union(*map(self._held, node.elts))
        if isinstance(node, ast.Dict):
            return set().union(*map(self._held, node.values))
        if isinstance(node, ast.IfExp):
            return self._held(node.body) | self._held(node.orelse)
        if isinstance(node, ast.BoolOp):
            return set().union(*map(self._held, node.values))
        if isinstance(node, ast.Lambda):
            return names_read(node)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            made = node.value if isinstance(node, ast.DictComp) else node.elt
            walked = {
                name: self._held(loop.iter) for loop in node.generators for name in _targets(loop.target)
            }
            return set().union(*(walked.get(name, {name}) for name in self._held(made)))
        return self._held_by(node) if isinstance(node, ast.Call) else set()

    def _held_by(self, call):
        """Return what the result of a call may hold: an object what it was made of, a number nothing."""
        root, name = _root(call.func), getattr(call.func, "attr", getattr(call.func, "id", ""))
        given = set().union(*map(self._held, [*call.args, *(each.value for each in call.keywords)]))
        if is_picture(call, self.pictures):
            return set()
        if root in vars(builtins):
            return given if root in HOLDING else set()
        if root in self.imported:
            return given if name[:1].isupper() or name == "partial" else set()
        if isinstance(call.func, ast.Attribute):
            own = self._held(call.func.value)
            return own if name in HOLDING else set() if name in PURE_METHODS else own | given
        return given | ({root} - {None})

    def _read_call(self, call):
        """Note who is given what; a method changes what it belongs to, and may keep what it is given."""
        root, name = _root(call.func), getattr(call.func, "attr", getattr(call.func, "id", ""))
        self.seeds |= name in SEEDING and isinstance(self.tree, ast.Expr | ast.Assign)
        self.trains |= isinstance(call.func, ast.Attribute) and name == "step" and not call.args
        starred = any(isinstance(each, ast.Starred) for each in call.args)
        given = [(ANY if starred else at, each) for at, each in enumerate(call.args)]
        given += [(ANY if each.arg is None else each.arg, each.value) for each in call.keywords]
        given = [(place, ({_root(each)} - {None}) | self._held(each)) for place, each in given]
        if root in self.imported:
            if self.imported[root].startswith("torch") and name.endswith("_"):
                self.stores |= {name for _, names in given for name in names}
            called = root if isinstance(call.func, ast.Name) else name
            self.calls += [(called, *each, set()) for each in given]
        elif not isinstance(call.func, ast.Attribute):
            together = set().union(*(names for _, names in given))
            self.calls += [(root, *each, together) for each in given]
        elif root is not None and name not in PURE_METHODS:
            self.stores.add(root)
            if not is_picture(call.func, self.pictures):
                self.links[root] = self.links.get(root, set()).union(*(names for _, names in given))


def is_training(name, imported):
    """Say whether an imported name trains models."""
    module = imported.get(name, "")
    theirs = module.startswith(("exformer.recipes", "torch.optim"))
    return theirs or (name in TRAINING and module.startswith("exformer"))


def _trainings(statements):
    return {name for each in statements for name in each.imported if is_training(name, each.imported)}


def _closed(names, links):
    """Return names with all that they were made of."""
    found, new = set(), set(names)
    while new:
        found |= new
        new = set().union(*(links.get(name, set()) for name in new)) - found
    return found


def needed_for(statements, now, late, *, random=True):
    """Return the statements that define or change some names, directly or through others, in their order.

    Args:
        statements: All that are executed before.
        now: Names that are needed after them, as they are written.
        late: Names that are needed by functions when they are called: they may be bound anywhere.
        random: Whether what draws random numbers before is needed, too.
    """
    versions = statements[-1].versions if statements else {}
    now = {versions.get(name, name) for name in now}
    fixed = {name for each in statements if each.is_definition for name in each.defines}
    fixed -= {name for each in statements if not each.is_definition for name in each.defines}
    links = {}
    for each in statements:
        for name, sources in each.links.items() if not each.is_definition else ():
            links[name] = links.get(name, set()) | sources
    functions = {each.tree.name: each for each in statements if isinstance(each.tree, ast.FunctionDef)}
    known = {name: {ANY} for name in (*CHANGING, *TRAINING, *_trainings(statements))}
    changing, fewer = known, {}
    while fewer != changing:
        fewer = changing
        found = {name: each.parameters_changed(changing, links) for name, each in functions.items()}
        changing = known | {name: places for name, places in found.items() if places}
        for each in statements:
            for name, kept in each.kept_by_calls(changing, links).items() if not each.is_definition else ():
                links[name] = links.get(name, set()) | kept
    holding = {name: _closed({name}, links) - fixed for name in links}
    changes = [each.changes(changing, links) for each in statements]
    bodies = {
        each.tree.name: found
        for each, found in zip(statements, changes, strict=True)
        if each in functions.values()
    }
    touched = []
    drawing = drawing_names(statements) if random else set()
    drawn = [random and not each.is_definition and draws(each, drawing) for each in statements]
    if now & drawing:
        now = now | {RANDOM}
    for each, found, at_random in zip(statements, changes, drawn, strict=True):
        if each.is_definition:
            found = set()
        else:  # what it calls may change more
            found = found | ({RANDOM} if at_random or each.starts else set())
            found = found.union(*(bodies[name] for name in each.now & set(bodies)))
        found = _closed(found - fixed, links) - fixed
        holders = {name for name, whole in holding.items() if whole & found}
        touched.append(each.defines | found | holders)
    kept, before = {}, None
    while before != (len(kept), len(late)):
        before, wanted = (len(kept), len(late)), set(now)
        for number in reversed(range(len(statements))):
            each = statements[number]
            if each.seeds or touched[number] & (wanted | late):
                kept[number] = each
                wanted = (wanted - each.kills) | each.now
                if each.starts:
                    wanted -= {RANDOM}
                elif drawn[number]:
                    wanted |= {RANDOM}
                late |= each.late
    return [kept[number] for number in sorted(kept)]


def _is_start(node):
    """Say whether a statement sets all random numbers."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") in STARTING


def statements_of(cells):
    """Return all statements, with the number of their cell, as what they need and define.

    Args:
        cells: For each cell its number and its syntax trees.
    """
    nodes = [(number, node) for number, body in cells for node in body]
    found = renamed([node for _, node in nodes])
    imported, pictures = {}, picture_names([tree for tree, _ in found])
    for tree, _ in found:
        for each in ast.walk(tree):
            imported |= imported_names(each)
    return [
        Statement(number, node, tree, versions, imported, pictures)
        for (number, node), (tree, versions) in zip(nodes, found, strict=True)
    ]


def imported_names(node):
    """Return the names that an import binds, with where they come from."""
    if isinstance(node, ast.Import):
        return {each.asname or each.name.split(".")[0]: each.name for each in node.names}
    if isinstance(node, ast.ImportFrom):
        return {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return {}


def _root(node):
    """Return the name from which an expression starts: ``a`` of ``a.b[0].c``; None where it is none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def names_read(node, *, into_functions=True):
    """Return the names that are read from outside; those that functions read only where asked for."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        given = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        outside = _union(given + getattr(node, "decorator_list", []), into_functions)
        body = node.body if isinstance(node.body, list) else [node.body]
        return outside | (_in_order(body, into_functions) - _locals(node) if into_functions else set())
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        parts += [each for loop in node.generators for each in (loop.iter, *loop.ifs)]
        bound = {name for loop in node.generators for name in _targets(loop.target)}
        return _union(node.generators[0].iter, into_functions) | (_union(parts, into_functions) - bound)
    if isinstance(node, ast.For):
        inside = _in_order(node.body, into_functions) - _targets(node.target)
        return _union([node.iter, node.target], into_functions) | inside | _union(node.orelse, into_functions)
    if isinstance(node, ast.With):
        bound = {name for each in node.items if each.optional_vars for name in _targets(each.optional_vars)}
        return _union(node.items, into_functions) | (_in_order(node.body, into_functions) - bound)
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    return _union(list(ast.iter_child_nodes(node)), into_functions)


def _union(nodes, into_functions):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    return set().union(*(names_read(each, into_functions=into_functions) for each in nodes))


def _in_order(statements, into_functions):
    """Return what statements read that none before them has bound."""
    read, bound = set(), set()
    for each in statements:
        read |= names_read(each, into_functions=into_functions) - bound
        if isinstance(each, ast.Assign):
            bound |= {name for target in each.targets for name in _targets(target)}
        elif isinstance(each, ast.FunctionDef | ast.ClassDef):
            bound.add(each.name)
    return read


def _kept_generators(node):
    """Return the generators that are not used up where they stand: they read when they are."""
    used = [id(each) for call in ast.walk(node) if isinstance(call, ast.Call) for each in call.args]
    return [each for each in ast.walk(node) if isinstance(each, ast.GeneratorExp) and id(each) not in used]


def _functions(node):
    return [each for each in ast.walk(node) if isinstance(each, ast.FunctionDef | ast.Lambda)]


def names_bound(node):
    """Return the names that a statement binds for those after it."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return set(imported_names(node))
    if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return {each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr)}
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store | ast.Del) else set()
    return set().union(*map(names_bound, ast.iter_child_nodes(node)))


def _locals(function):
    """Return the names that belong to a function: what it is given and what it binds."""
    given = function.args
    names = {each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs]}
    names |= {each.arg for each in (given.vararg, given.kwarg) if each}
    body = function.body if isinstance(function.body, list) else [function.body]
    for part in body:
        for each in ast.walk(part):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                names.add(each.id)
            elif isinstance(each, ast.FunctionDef):
                names.add(each.name)
    return names - {name for each in ast.walk(function) if isinstance(each, _OTHERS) for name in each.names}


def _targets(target):
    if isinstance(target, ast.Tuple | ast.List):
        return {name for each in target.elts for name in _targets(each)}
    if isinstance(target, ast.Starred):
        return _targets(target.value)
    return {target.id} if isinstance(target, ast.Name) else set()


def fingerprint(nodes):
    """Return a hash of syntax trees, the same for every version of Python, comment and layout."""
    text = "\n".join(_write(node) for node in nodes)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(value):
    """Write a syntax tree without what versions of Python add to it, docstrings, and claims' sentences."""
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = dict(ast.iter_fields(value))
    if (
        isinstance(value, ast.FunctionDef | ast.ClassDef)
        and ast.get_docstring(value, clean=False) is not None
    ):
        fields["body"] = value.body[1:]
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("claim", "shown"):
        fields["keywords"] = [each for each in value.keywords if each.arg != "says"]
    kept = {name: each for name, each in fields.items() if name not in ("ctx", "kind", "type_comment")}
    inside = ",".join(f"{name}={_write(each)}" for name, each in kept.items() if each not in (None, []))
    return f"{type(value).__name__}({inside})"
