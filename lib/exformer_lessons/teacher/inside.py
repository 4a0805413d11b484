"""The student's side of a graded exercise: it defines the answer in a sandbox, and is asked through a pipe.

The file stands on its own, so that nothing is imported in the sandbox that the answer does not need. Both
sides speak in messages: four bytes of length, then JSON. What comes out of the sandbox is data, never code.
"""

import ast
import base64
import builtins
import dis
import importlib
import json
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, ValuesView
from itertools import islice
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any, BinaryIO

#: Bytes of the longest message, and how many things an answer may yield.
LONGEST, MOST = 16_000_000, 10_000
#: What an answer may use of a tokenizer.
TOKENIZER = ("vocab_size", "pad_id", "bos_id", "eos_id", "encode", "decode")


def send(out: BinaryIO, message: dict[str, Any]) -> None:
    """Write a message.

    Raises:
        ValueError: If it is longer than a message may be.
    """
    data = json.dumps(message).encode()
    if len(data) > LONGEST:
        raise ValueError(f"expected at most {LONGEST:,} bytes, got {len(data):,}: the result is too large")
    out.write(struct.pack("!I", len(data)) + data)
    out.flush()


def receive(stream: BinaryIO) -> dict[str, Any]:
    """Read a message.

    Raises:
        EOFError: If the other side has ended.
        ValueError: If what arrives is no message.
    """
    head = stream.read(4)
    if len(head) < 4:
        raise EOFError
    size = struct.unpack("!I", head)[0]
    if size > LONGEST:
        raise ValueError("a message is too long")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    message = json.loads(data)
    if not isinstance(message, dict):
        raise ValueError("a message is no object")
    return message


def encode(value: Any, functions: list[Callable[..., Any]] | None = None) -> Any:
    """Make JSON of numbers, texts, tensors and of what is nested of them.

    Args:
        value: What is sent.
        functions: Gets the functions that are met, which the other side may then call back; with it, weights
            keep their gradients, and a function with ``runs_inside`` is imported there. Without it, and for
            what cannot be sent, the name of the type is sent.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value if type(value) in (type(None), bool, int, float, str) else _plain(value)
    if isinstance(value, Iterator | ValuesView):
        value = list(islice(value, MOST))
    if isinstance(value, list):
        return [encode(each, functions) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(each, functions) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(each, functions)] for key, each in value.items()]}
    if isinstance(value, bytes | bytearray):
        return {"bytes": base64.b64encode(value).decode()}
    if value is Ellipsis:
        return {"ellipsis": 0}
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch and isinstance(value, torch.Tensor):
        if functions is not None and value.requires_grad and value.is_leaf:
            return {"weights": [encode(value), encode(value.grad)]}
        flat = value.detach().to_dense().cpu().contiguous().flatten()
        data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        name = str(value.dtype).removeprefix("torch.")
        return {"tensor": [name, list(value.shape), base64.b64encode(data).decode()]}
    if numpy and isinstance(value, numpy.ndarray | numpy.generic) and value.dtype.kind in "biuf":
        value = numpy.asarray(value)
        return {"array": [value.dtype.str, list(value.shape), base64.b64encode(value.tobytes()).decode()]}
    if functions is not None and getattr(value, "runs_inside", False):
        return {"import": [value.__module__, value.__name__]}
    if functions is not None and callable(value):
        functions.append(value)
        return {"function": len(functions) - 1}
    if functions is not None and all(hasattr(value, name) for name in TOKENIZER):
        return {"tokenizer": [encode(getattr(value, name), functions) for name in TOKENIZER]}
    return {"other": type(value).__name__}


def _plain(value: Any) -> Any:
    """Take off what a number or text is a subclass for."""
    return next(kind(value) for kind in (int, float, str) if isinstance(value, kind))


def decode(value: Any, function: Callable[[int], Any] | None = None) -> Any:
    """Undo :func:`encode`.

    Args:
        value: What arrived.
        function: Makes a function of its number; None: functions are not taken.

    Raises:
        ValueError: If it is nothing that encode writes.
    """
    if not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [decode(each, function) for each in value]
    [(kind, given)] = value.items()
    if kind == "tuple":
        return tuple(decode(each, function) for each in given)
    if kind == "dict":
        return {decode(key): decode(each, function) for key, each in given}
    if kind == "bytes":
        return base64.b64decode(given)
    if kind == "ellipsis":
        return Ellipsis
    if kind == "function" and function is not None:
        return function(int(given))
    if kind == "import" and function is not None:
        return getattr(importlib.import_module(given[0]), given[1])
    if kind == "tokenizer" and function is not None:
        parts = [decode(each, function) for each in given]
        return SimpleNamespace(**dict(zip(TOKENIZER, parts, strict=True)))
    if kind == "weights" and function is not None:
        weights = decode(given[0]).requires_grad_()
        weights.grad = decode(given[1])
        return weights
    if kind == "other":
        return type(str(given)[:60], (), {})()
    name, shape, data = given
    data = bytearray(base64.b64decode(data))
    if kind == "array":
        import numpy as np

        return np.frombuffer(data, dtype=np.dtype(name)).reshape(shape)
    if kind == "tensor":
        import torch

        dtype = getattr(torch, name)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"{name} is no type of a tensor")
        return (torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)).reshape(shape)
    raise ValueError(f"{kind} is nothing that is sent")


def choose(cells: list[str], wanted: list[str]) -> tuple[list[tuple[int, ast.stmt]], str]:
    """Choose what defines the answer of an exercise: its cells, and of all others what these use.

    Args:
        cells: The sources of a notebook's code cells.
        wanted: The names that the exercise asks for.

    Returns:
        The statements with the numbers of their cells, and the last error in reading a cell of the answer.
    """
    error, statements = "", []
    for number, source in enumerate(cells):
        try:
            tree = ast.parse(_without_magics(source))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as found:
            if any(name in source for name in wanted):
                error = f"{type(found).__name__}: {found}"
            continue
        answers = any(set(wanted) & _bound(node) for node in tree.body)
        statements += [(number, answers, node) for node in tree.body if not grades(node)]
    used, chosen = set(wanted), set[int]()
    more = [node for _, answers, node in statements if answers]
    while more:
        chosen |= {id(node) for node in more}
        used = used.union(*map(_used, more))
        more = [node for _, _, node in statements if id(node) not in chosen and used & _bound(node)]
    return [(number, node) for number, _, node in statements if id(node) in chosen], error


def define(statements: list[tuple[int, ast.stmt]], error: str = "") -> tuple[dict[str, Any], str]:
    """Run what was chosen.

    Returns:
        All names that were defined, and the last error on the way.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, node in statements:
        try:
            exec(compile(ast.Module([node], []), f"cell {number}", "exec"), names)  # noqa: S102
        except BaseException as found:  # whatever it raises, exit() too: the answer may be there
            error = f"{type(found).__name__}: {found}"
    return names, error


def words(statements: list[tuple[int, ast.stmt]]) -> list[str]:
    """Return what statements name: names, modules, short texts, and attributes with a point before them.

    >>> words([(0, ast.parse("torch.func.vjp(f, x=1)").body[0])])
    ['.func', '.vjp', 'f', 'torch', 'x']
    """
    found: set[str] = set()
    for node in (each for _, statement in statements for each in ast.walk(statement)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(f".{node.attr}")
        elif isinstance(node, ast.keyword):
            found.add(str(node.arg))
        elif isinstance(node, ast.alias):
            found |= {*node.name.split("."), *([node.asname] if node.asname else [])}
        elif isinstance(node, ast.ImportFrom):
            found |= {*(node.module or "").split(".")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 40:
            found |= {*node.value.split(".")}
    return sorted(found - {""})


def shape(statements: list[tuple[int, ast.stmt]]) -> list[str]:
    """Return the tree of statements as a list of words: no names but those of attributes and built-ins.

    Imports, texts, docstrings and annotations say nothing of who wrote them, so they are left out.

    >>> shape([(0, ast.parse("def f(x: int): return x + 1").body[0])])
    ['FunctionDef', 'arguments', 'arg', 'Return', 'BinOp', 'Name', 'Add', '1']
    """
    found, left = [], [node for _, node in reversed(statements)]
    while left:
        node = left.pop()
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text or isinstance(node, ast.Import | ast.ImportFrom | ast.expr_context):
            continue
        word = type(node).__name__
        if isinstance(node, ast.Attribute):
            word = f".{node.attr}"
        elif isinstance(node, ast.Name) and node.id in vars(builtins):
            word = node.id
        elif isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes):
            word = repr(node.value)
        found.append(word[:40])
        parts = [each for name, each in ast.iter_fields(node) if name not in ("annotation", "returns")]
        inner = [each for part in parts for each in (part if isinstance(part, list) else [part])]
        left += [each for each in reversed(inner) if isinstance(each, ast.AST)]
    return found


def _without_magics(source: str) -> str:
    return "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.split("\n"))


def grades(node: ast.stmt) -> bool:
    """Whether a statement imports or calls a grader, for which there is no use here."""
    if isinstance(node, ast.ImportFrom):
        return all(each.name.startswith("grade_") for each in node.names)
    call = getattr(node, "value", None) if isinstance(node, ast.Expr) else None
    called = call.func if isinstance(call, ast.Call) else None
    return isinstance(called, ast.Name) and called.id.startswith("grade_")


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(each.asname or each.name).split(".")[0] for each in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
        return {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return set()


def _used(node: ast.stmt) -> set[str]:
    """Return the global names that a statement reads, in its functions too."""
    found, codes = set(), [compile(ast.Module([node], []), "names", "exec")]
    while codes:
        code = codes.pop()
        found |= {str(each.argval) for each in dis.get_instructions(code) if each.opname in _READS}
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found - set(vars(builtins))


_READS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}


def limit(caps: Mapping[str, int]) -> None:
    """Lower the limits of this process and of all that it starts; they cannot be raised again.

    Args:
        caps: ``megabytes`` of memory beyond what is in use, ``processes``, and ``seconds`` of a processor.
    """
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    memory = pages * resource.getpagesize() + caps["megabytes"] * 1_000_000
    for name, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, caps["processes"]),
        (resource.RLIMIT_CPU, caps["seconds"] + 1),
        (resource.RLIMIT_FSIZE, 16_000_000),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(name, (value, value))


def main() -> None:
    """Define the answer, then call it as often as asked; what it prints goes nowhere."""
    stream, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for number in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    sys.path += sys.argv[1:]
    first = receive(stream)
    if first["torch"]:
        import torch  # noqa: F401 - before the limit of memory, which is what the answer may add
    limit(first["caps"])
    statements, error = choose(first["cells"], first["wanted"])
    send(out, {"ready": True, "words": words(statements), "shape": shape(statements)})
    names, error = define(statements, error)
    there = {name: names[name] for name in first["wanted"] if name in names}
    kinds = {
        name: [getattr(value, "__module__", ""), getattr(value, "__name__", "")] if callable(value) else None
        for name, value in there.items()
    }
    send(out, {"functions": kinds, "values": encode(there), "error": error})
    while True:
        call = receive(stream)

        def back(number: int, key: str = call["key"]) -> Callable[..., Any]:
            def function(*arguments: Any) -> Any:
                send(out, {"key": key, "back": number, "arguments": encode(list(arguments))})
                reply = receive(stream)
                if "raised" in reply:
                    raise ValueError(reply["raised"])
                return decode(reply["value"])

            return function

        try:
            result = encode(there[call["name"]](*decode(call["arguments"], back)))
            send(out, {"key": call["key"], "value": result})
        except Exception as found:  # the grader tells the teacher what the code raised
            raised = [type(found).__name__, str(found)[:300]]
            send(out, {"key": call["key"], "raised": raised})


if __name__ == "__main__":
    main()
