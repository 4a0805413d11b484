"""Sample machine-made mutants of the library; those that no test kills are listed in ``tests/mutants.md``.

``make mutants`` runs 400 of them, ``python tests/mutants.py --number 50`` fewer. An operator of arithmetic or
of a comparison is replaced by another, with Cosmic Ray's operators; its own runner writes into the source, so
that here the mutant is planted in a fork instead (``planting.py``). Only lines that a quick test runs are
mutated, and only tests that run the line are asked. A run that was cut goes on where it stopped, as long as
neither library nor tests have changed.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from xml.etree import ElementTree

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.operators import binary_operator_replacement, comparison_operator_replacement
from coverage import CoverageData
from planting import FAILED, LIBRARY, LIMIT_S, PASSED, ROOT, TOO_SLOW, Planter

MUTATED = ("nn", "data", "generation")
ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}


def _compares_identity_instead(operator: type) -> bool:
    old, new = operator.__name__.split("_")[-2:]
    return new in ("Is", "IsNot") and old not in ("Is", "IsNot")


OPERATORS = [
    *(op for op in binary_operator_replacement.operators() if op.__name__.split("_")[-1] in ARITHMETIC),
    # Nobody writes `is` for `==` or `<`: such a mutant says nothing of a test.
    *(op for op in comparison_operator_replacement.operators() if not _compares_identity_instead(op)),
]
#: Tests that are slow, or run the library in another process.
NOT_ASKED = "pages|bench|recipe|trainer|cli|results|notebooks|exercises|teachers|own_text|parity|invariants"
COLLECTION_FAILED = (2, 4)  # pytest's codes: what a test file does when it is imported is a test too
SECONDS = 60.0  # of tests, for a mutant
STATE = ROOT / ".mutants"
REPORT = Path(__file__).with_suffix(".md")
#: Survivors that no test can kill, by the line that they make, and why.
EQUIVALENT: dict[str, str] = {
    "between = [2 ** (-8 * head / (2 * power)) for head in range(1, 2 * power - 1, 2)]": (
        "the last slope between is never needed: fewer than `power` are"
    ),
    "between = [2 ** (-8 * head / (2 * power)) for head in range(1, 2 * power * 1, 2)]": (
        "the odd numbers below an even one are those up to it"
    ),
    "complete = ended if n_tokens != max_new_tokens else live.isfinite()": (
        "the number of tokens grows by one up to `max_new_tokens`"
    ),
    "finished = finished + (chosen == eos_id)": "`+` of booleans is `or`",
    "if blocks <= 2 / n:": "it chooses between two ways to the same numbers",
    'if not ((mask == 0) + (mask == float("-inf"))).all():': "`+` of booleans is `or`",
    "if min(lengths, default=0) <= 0:": "a length is never negative",
    "if not 0.0 < penalty != math.inf:": "nothing but infinity is not below it, once NaN is refused",
    "if p >= 1.0:  # rounding must not make the sum reach 1 before the last token": "p is at most 1 here",
    "n_random = limit if sampler.temperature != 0 else 0": "a temperature is never negative here",
    "if causal and n_queries != 1 and not built_in:  # a single query is the last one, and sees all keys": (
        "they differ for no query at all, which nobody asks for"
    ),
    "if causal and n_queries >= 1 and not built_in:  # a single query is the last one, and sees all keys": (
        "the last row of the triangle lets it see all keys, too"
    ),
    "if k.size(1) != q.size(1):": "keys never have more heads than queries",
    "if k.size(1) <= q.size(1):": "as many heads of each: groups of one, and the same numbers",
    "moved, self._start = ids.size(1) - kept + self._start, ids.size(1) - kept": (
        "the two differ from the second move on, which leaves no padding either way"
    ),
    "if self.tokens < 1 or len(self.lengths) <= 0:": "a length is never negative",
}


@dataclass(frozen=True)
class Mutant:
    """Hold one mutant: its function, the line that differs, the text of the whole module."""

    where: str
    file: str
    line: int
    old: str
    new: str
    text: str


def _functions(tree: ast.Module) -> list[tuple[str, int, int]]:
    """Return the functions of a module and the methods of its classes: name, lines of the body."""
    found = []
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found += [
            (owner + each.name, each.body[0].lineno, each.end_lineno)
            for each in inside
            if isinstance(each, ast.FunctionDef)
        ]
    return found


def _meaning(text: str) -> str:
    """Return what a module does: its syntax tree without annotations."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                setattr(node, field, ast.Constant(None))
    return ast.dump(tree)


def _candidates(path: Path) -> list[tuple[type, int]]:
    """Return each place at which an operator can act, as the operator and the number of the place."""
    nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
    return [
        (kind, number)
        for kind in OPERATORS
        for number in range(sum(len(list(kind().mutation_positions(node))) for node in nodes))
    ]


def mutate(path: Path, kind: type, number: int) -> Mutant | None:
    """Let an operator act at one place of a file; return None where it changes no function."""
    text, tree = path.read_text(encoding="utf-8"), get_ast(path.read_text(encoding="utf-8"))
    for node in ast_nodes(tree):
        positions = list(kind().mutation_positions(node))
        if number < len(positions):
            line = positions[number][0][0]
            kind().mutate(node, number)
            break
        number -= len(positions)
    new = tree.get_code()
    try:
        if _meaning(new) == _meaning(text):
            return None
    except SyntaxError:  # the star of keyword-only parameters was taken for a product
        return None
    file = path.relative_to(LIBRARY)
    module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    for name, first, last in _functions(ast.parse(text)):
        if first <= line <= last:
            old, made = (each.splitlines()[line - 1].strip() for each in (text, new))
            return Mutant(f"{module}.{name}", file.as_posix(), line, old, made, new)
    return None


def _is_asked(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    imports = re.search(r"^from exformer\.(nn|data|generation|training\.(fast_)?loss)\b", text, flags=re.M)
    return bool(imports) and not re.search(NOT_ASKED, path.name)


def measure() -> tuple[dict[str, dict[int, list[str]]], dict[str, float]]:
    """Run the quick tests once; return which tests run a line, by file and line, and how long each takes."""
    data, times, settings = STATE / "coverage", STATE / "times.xml", STATE / "settings"
    if not times.is_file():
        files = [path for path in sorted((ROOT / "tests").glob("test_*.py")) if _is_asked(path)]
        settings.write_text(
            f"[run]\ndata_file={data}\ndynamic_context=test_function\ninclude={LIBRARY}/*\n", encoding="utf-8"
        )
        run = ["-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q", "-pno:cacheprovider"]
        run += ["-pno:xdist", "--continue-on-collection-errors", f"--junitxml={times}.part", *map(str, files)]
        subprocess.run(
            [sys.executable, *run],
            cwd=ROOT,
            check=False,
            env=os.environ | {"PYTHONPATH": str(LIBRARY.parent)},
        )
        Path(f"{times}.part").rename(times)
    seconds: Counter[str] = Counter()
    red = set()
    for case in ElementTree.parse(times).iter("testcase"):
        name = f"{case.get('classname').split('.')[-1]}.{case.get('name').split('[')[0]}"
        seconds[name] += float(case.get("time"))
        if case.find("failure") is not None or case.find("error") is not None:
            red.add(name)
    covered: dict[str, dict[int, list[str]]] = defaultdict(dict)
    found = CoverageData(str(data))
    found.read()
    for file in found.measured_files():
        for line, tests in found.contexts_by_lineno(file).items():
            asked = sorted((t for t in tests if t in seconds and t not in red), key=seconds.get)
            covered[Path(file).relative_to(LIBRARY).as_posix()][line] = asked
    return covered, seconds


def judge(mutant: Mutant, tests: list[str], seconds: dict[str, float], planter: Planter) -> str:
    """Plant a mutant and run the tests of its line, the quickest first, until one is red."""
    left, asked = SECONDS, []
    for test in tests:
        left -= seconds[test]
        if left < 0 and asked:
            break
        asked.append(test.replace(".", ".py::", 1))
    for some in (asked[:8], asked[8:]):
        code, output = planter.run(some, mutant.where, mutant.text) if some else (PASSED, "")
        if code == TOO_SLOW:  # it never ends, or the machine is busy: the tests alone say how long they take
            since = time.monotonic()
            planter.run(some, limit_s=10 * LIMIT_S)
            enough = LIMIT_S + 5 * (time.monotonic() - since)
            code, output = planter.run(some, mutant.where, mutant.text, limit_s=enough)
        if code == TOO_SLOW:
            return "killed: it never ends"
        if code in (FAILED, *COLLECTION_FAILED):
            return "killed"
        if code != PASSED:
            return f"not judged: pytest ended with {code}\n{output[-500:]}"
    return "survived"


def sample(number: int) -> list[Mutant]:
    """Draw mutants of the library by chance: the same ones as long as it does not change."""
    paths = [
        p
        for part in MUTATED
        for p in ([LIBRARY / part] if part.endswith(".py") else sorted((LIBRARY / part).rglob("*.py")))
    ]
    places = [(path, *candidate) for path in paths for candidate in _candidates(path)]
    random.Random(0).shuffle(places)
    covered, _ = measure()
    found: dict[tuple[str, int, str], Mutant] = {}
    for place in places:
        mutant = mutate(*place)
        if mutant and covered.get(mutant.file, {}).get(mutant.line):
            found.setdefault((mutant.file, mutant.line, mutant.new), mutant)
        if len(found) == number:
            break
    return list(found.values())


def report(mutants: list[Mutant], verdicts: dict[str, str]) -> str:
    """Return the page that is committed: how many of each package died, and each survivor."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [
        f"# Mutants of the library at commit {commit.stdout.strip()}",
        "",
        "`make mutants` makes this page.",
        "",
    ]
    lines += ["| package | mutants | killed | equivalent | survived |", "|---|---|---|---|---|"]
    table: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    for mutant in mutants:
        verdict = verdicts[mutant.where + mutant.new].split(":")[0]
        if verdict == "survived" and mutant.new in EQUIVALENT:
            verdict = "equivalent"
        table[mutant.where.split(".")[0]][verdict] += 1
        if verdict in ("survived", "equivalent", "not judged"):
            why = EQUIVALENT.get(mutant.new, verdict)
            cells = (f"{mutant.where}, line {mutant.line}", f"`{mutant.old}`", f"`{mutant.new}`", why)
            survivors.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for package, counts in sorted(table.items()):
        row = [
            sum(counts.values()),
            counts["killed"],
            counts["equivalent"],
            counts["survived"] + counts["not judged"],
        ]
        lines.append(f"| {package} | " + " | ".join(map(str, row)) + " |")
    if survivors:
        lines += ["", "| where | line | mutant | |", "|---|---|---|---|", *survivors]
    return "\n".join(lines) + "\n"


def _version() -> str:
    """Return a hash of library and tests: a mutant that was judged with others is judged anew."""
    texts = [p.read_bytes() for folder in (LIBRARY, ROOT / "tests") for p in sorted(folder.rglob("*.py"))]
    return hashlib.sha256(b"".join(texts)).hexdigest()


def main() -> int:
    """Judge a sample, write the report; return 1 if a mutant survives that is not known to be equivalent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=400, help="of mutants")
    parser.add_argument("--at-once", type=int, default=2, help="processes")
    wanted = parser.parse_args()
    STATE.mkdir(exist_ok=True)
    version = STATE / "version"
    if not version.is_file() or version.read_text() != _version():
        for path in STATE.iterdir():
            path.unlink()
        version.write_text(_version())
    covered, seconds = measure()
    mutants = sample(wanted.number)
    log = STATE / "verdicts.jsonl"
    verdicts = dict(map(json.loads, log.read_text().splitlines())) if log.is_file() else {}
    planters: SimpleQueue[Planter] = SimpleQueue()

    def one(mutant: Mutant) -> None:
        planter = planters.get()
        verdict = judge(mutant, covered[mutant.file][mutant.line], seconds, planter)
        planters.put(planter)
        verdicts[mutant.where + mutant.new] = verdict
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps([mutant.where + mutant.new, verdict]) + "\n")
        print(
            f"{verdict.splitlines()[0]:10} {mutant.where}:{mutant.line}  {mutant.old}  ->  {mutant.new}",
            flush=True,
        )

    waiting = [mutant for mutant in mutants if mutant.where + mutant.new not in verdicts]
    with ThreadPoolExecutor(wanted.at_once) as pool:
        for _ in range(wanted.at_once):
            planters.put(Planter().__enter__())
        list(pool.map(one, waiting))
    while not planters.empty():
        planters.get().__exit__()
    page = report(mutants, verdicts)
    REPORT.write_text(page, encoding="utf-8")
    print(page)
    return int(
        any(v == "survived" and m.new not in EQUIVALENT for m in mutants for v in [verdicts[m.where + m.new]])
    )


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.exit(main())
