"""The open assignment: unusual right answers get full points, wrong ones a hint, and its numbers are true."""

import csv
import json
import re
from pathlib import Path
from textwrap import dedent

import pytest

from exformer_lessons.teacher import __main__ as main
from exformer_lessons.teacher import assignments

TEACH = Path(__file__).parents[2] / "book" / "teach"
NAME = "measuring"
SOURCE = TEACH / "assignments" / NAME
PARTS = {each.name: each for each in assignments.read_parts(TEACH, NAME, None)}
CELLS = json.loads(SOURCE.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]

#: Right answers that are written in another way, each with its function.
RIGHT = {
    "a generator of windows": (
        "windows",
        """
        def windows(n, context, stride):
            first = 1
            for start in range(0, n, stride):
                if first < n:
                    stop = min(n - 1, start + context)
                    yield start, stop, first
                    first = stop + 1
        """,
    ),
    "a tensor of windows": (
        "windows",
        """
        import torch
        def windows(n, context, stride):
            extra = max(0, n - 1 - context)
            start = stride * torch.arange(-(-extra // stride) + 1)[: n - 1]
            stop = (start + context).clamp(max=n - 1)
            return torch.stack([start, stop, torch.cat([torch.ones(1).long(), stop + 1])[: len(stop)]], 1)
        """,
    ),
    "who scores each token": (
        "windows",
        """
        def windows(n, context, stride):
            who = {}
            for token in range(1, n):
                who.setdefault(max(0, -(-(token - context) // stride)), []).append(token)
            return [[k * stride, tokens[-1], tokens[0]] for k, tokens in sorted(who.items())]
        """,
    ),
    "a table of all losses": (
        "bits",
        """
        import numpy as np
        def bits(logits, ids, plan, pieces):
            seen = {}
            for rows, (start, stop, first) in zip(logits, plan):
                for row, token in zip(rows.numpy(), range(start + 1, stop + 1)):
                    seen.setdefault(token, np.logaddexp.reduce(row) - row[ids[token]])
            losses = np.array([seen[each] for each in sorted(seen)])
            return {"bits": losses.sum() / (np.log(2) * len("".join(pieces[1:]))), "losses": losses}
        """,
    ),
    "cross_entropy": (
        "bits",
        """
        import torch
        def bits(logits, ids, plan, pieces):
            ids = torch.tensor(ids)
            parts = [torch.nn.functional.cross_entropy(rows[first - stop - 1:], ids[first : stop + 1],
                     reduction="none") for rows, (_, stop, first) in zip(logits, plan)]
            losses = torch.cat(parts)
            total = torch.log2(torch.exp(torch.tensor(1.0, dtype=torch.float64))) * sum(losses)
            return {"losses": losses.tolist(), "bits": [total / sum(len(p) for p in pieces[1:])][0], "n": 1}
        """,
    ),
    "one pass over bins": (
        "calibration",
        """
        from collections import defaultdict
        def calibration(logits, targets, n_bins):
            bins = defaultdict(list)
            for row, target in zip(logits.softmax(-1).tolist(), targets.tolist()):
                c = max(row)
                bins[min(n_bins - 1, int(c * n_bins))].append((c, row.index(c) == target))
            table, ece = [], 0
            for _, found in sorted(bins.items()):
                cs, rs = zip(*found)
                table.append([len(cs), sum(cs) / len(cs), sum(rs) / len(rs)])
                ece += abs(sum(cs) - sum(rs)) / len(targets)
            return {"bins": table, "ece": ece}
        """,
    ),
    "bincount": (
        "calibration",
        """
        import torch
        def calibration(logits, targets, n_bins):
            c = (logits - logits.logsumexp(-1, keepdim=True)).exp().amax(-1)
            right = (logits.argmax(-1) == targets).to(c.dtype)
            edges = torch.linspace(0, 1, n_bins + 1, dtype=c.dtype)[1:-1]
            where = torch.bucketize(c, edges, right=True)
            n, a, b = (torch.bincount(where, w, minlength=n_bins) for w in (None, c, right))
            keep = n > 0
            return {"bins": torch.stack([n, a / n, b / n], 1)[keep], "ece": (a - b).abs().sum() / n.sum()}
        """,
    ),
    "ternary search in T": (
        "best_temperature",
        """
        def best_temperature(logits, targets):
            def loss(t):
                scaled = logits / t
                return float((scaled.logsumexp(-1) - scaled[range(len(targets)), targets]).mean())
            low, high = 0.1, 10.0
            for _ in range(120):
                a, b = low + (high - low) / 3, high - (high - low) / 3
                low, high = (low, b) if loss(a) < loss(b) else (a, high)
            return {"temperature": low, "loss": loss(low)}
        """,
    ),
    "bisection, and autograd": (
        "best_temperature",
        """
        import torch
        def best_temperature(logits, targets):
            low, high = -2.302585093, 2.302585093
            for _ in range(60):
                s = torch.tensor((low + high) / 2, dtype=torch.float64, requires_grad=True)
                torch.nn.functional.cross_entropy(logits * s.exp(), targets).backward()
                low, high = (low, s.item()) if s.grad > 0 else (s.item(), high)
            t = 1 / torch.tensor(low, dtype=torch.float64).exp()
            return {"temperature": t, "loss": torch.nn.functional.cross_entropy(logits / t, targets)}
        """,
    ),
    "grids in grids": (
        "best_temperature",
        """
        import torch
        def best_temperature(logits, targets):
            low, high = 0.1, 10.0
            for _ in range(12):
                grid = torch.linspace(low, high, 21, dtype=torch.float64)
                lost = (logits / grid[:, None, None]).log_softmax(-1)
                lost = -lost[:, torch.arange(len(targets)), targets].mean(1)
                k = int(lost.argmin())
                low, high = grid[max(0, k - 1)], grid[min(20, k + 1)]
            return {"temperature": grid[k], "loss": lost[k]}
        """,
    ),
    "running sums": (
        "changed",
        """
        import numpy as np
        def changed(losses, references, width):
            def of(text):
                w = min(width, len(text))
                sums = np.cumsum([0, *text])
                return (sums[w:] - sums[:-w]) / w
            stat, rest = of(losses), np.array([of(each).max() for each in references])
            return dict(statistic=stat.max(), first=1 + stat.argmax(),
                        p=np.mean(np.append(rest, np.inf) >= stat.max()))
        """,
    ),
    "unfold, and a rank": (
        "changed",
        """
        import torch
        def changed(losses, references, width):
            tops = []
            for text in [losses, *references]:
                text = torch.tensor(text, dtype=torch.float64)
                tops.append(text.unfold(0, min(width, len(text)), 1).mean(1).max(0))
            values = torch.stack([each.values for each in tops])
            rank = int((values >= values[0]).sum())
            return {"statistic": values[0], "first": tops[0].indices + 1, "p": rank / len(tops)}
        """,
    ),
}
#: Wrong answers as students write them, each with its function, its points and words of its hint.
WRONG = {
    "the recipe that scores overlaps": (
        "windows",
        """
        def windows(n, context, stride):
            plan = []
            for start in range(0, n, stride):
                stop = min(start + context, n - 1)
                if stop > start:
                    plan.append((start, stop, start + 1))
                if stop == n - 1:
                    break
            return plan
        """,
        3,
        "tokens in an overlap count twice",
    ),
    "a loop without an end": (
        "windows",
        """
        def windows(n, context, stride):
            last, plan = 0, []
            for start in range(0, n - 1, stride):
                plan.append((start, min(start + context, n - 1), last + 1))
                last = plan[-1][1]
            return plan
        """,
        3,
        "go on after one has reached the end",
    ),
    "per token": (
        "bits",
        """
        import torch
        def bits(logits, ids, plan, pieces):
            kept = [-rows.log_softmax(-1)[t - 1 - a, ids[t]]
                    for rows, (a, b, f) in zip(logits, plan) for t in range(f, b + 1)]
            return {"losses": torch.stack(kept), "bits": torch.stack(kept).log2().mean() * 0
                    + torch.stack(kept).mean() / 0.6931471805599453}
        """,
        4,
        "bits per token",
    ),
    "all characters": (
        "bits",
        """
        import torch
        def bits(logits, ids, plan, pieces):
            kept = torch.stack([-rows.softmax(-1)[t - 1 - a, ids[t]].log()
                    for rows, (a, b, f) in zip(logits, plan) for t in range(f, b + 1)])
            return {"losses": kept, "bits": kept.sum() / 0.6931471805599453 / len("".join(pieces))}
        """,
        3,
        "the first token, which no window scores",
    ),
    "a signed gap": (
        "calibration",
        """
        import torch
        def calibration(logits, targets, n_bins):
            p, guess = logits.softmax(-1).max(-1)
            where, rows = (p * n_bins).floor().clamp(max=n_bins - 1), []
            for k in range(n_bins):
                if (here := where == k).any():
                    rows.append((here.sum(), p[here].mean(), (guess == targets)[here].double().mean()))
            return {"bins": rows, "ece": sum(n * (c - a) for n, c, a in rows) / len(p)}
        """,
        4,
        "Gaps cancel",
    ),
    "half-open to the top": (
        "calibration",
        """
        import torch
        def calibration(logits, targets, n_bins):
            p, guess = logits.softmax(-1).max(-1)
            rows = []
            for k in range(n_bins):
                here = (p >= k / n_bins) & (p < (k + 1) / n_bins)
                if here.any():
                    rows.append((here.sum(), p[here].mean(), (guess == targets)[here].double().mean()))
            return {"bins": rows, "ece": sum(n * abs(c - a) for n, c, a in rows) / len(p)}
        """,
        6,
        "exactly 1 falls out",
    ),
    "a grid": (
        "best_temperature",
        """
        import torch
        def best_temperature(logits, targets):
            def loss(t):
                return float(torch.nn.functional.cross_entropy(logits / t, targets))
            best = min((k / 100 for k in range(10, 1001)), key=loss)
            return {"temperature": best, "loss": loss(best)}
        """,
        3,
        "too far apart",
    ),
    "above 1": (
        "best_temperature",
        """
        import torch
        def best_temperature(logits, targets):
            def loss(t):
                return float(torch.nn.functional.cross_entropy(logits / t, targets))
            low, high = 1.0, 10.0
            for _ in range(200):
                a, b = low + (high - low) / 3, high - (high - low) / 3
                low, high = (low, b) if loss(a) < loss(b) else (a, high)
            return {"temperature": low, "loss": loss(low)}
        """,
        2,
        "above 1 alone",
    ),
    "p of 0": (
        "changed",
        """
        def changed(losses, references, width):
            def of(text):
                w = min(width, len(text))
                return [sum(text[i:i + w]) / w for i in range(len(text) - w + 1)]
            best = max(of(losses))
            return {"statistic": best, "first": of(losses).index(best) + 1,
                    "p": sum(max(of(r)) >= best for r in references) / len(references)}
        """,
        3,
        "add 1 above and below",
    ),
    "off by one at the end": (
        "changed",
        """
        def changed(losses, references, width):
            def of(text):
                w = min(width, len(text))
                return [sum(text[i:i + w]) / w for i in range(max(1, len(text) - w))]
            best = max(of(losses))
            return {"statistic": best, "first": of(losses).index(best) + 1,
                    "p": (1 + sum(max(of(r)) >= best for r in references)) / (1 + len(references))}
        """,
        5,
        "You miss the last window.",
    ),
}


def defined(code):
    """Run code that is indented; return what it defines."""
    names = {}
    exec(dedent(code), names)
    return names


def source():
    """Return what the solution and the checks define."""
    names = {}
    for file in ("solution.py", "checks.py"):
        exec((SOURCE / file).read_text(encoding="utf-8"), names)
    return names


@pytest.mark.parametrize("name", RIGHT)
def test_an_unusual_right_answer_gets_full_points(name):
    part, code = RIGHT[name]
    marks = PARTS[part].judge(defined(code))
    assert marks.points == PARTS[part].points, marks.says


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_loses_its_points_and_is_told_why(name):
    part, code, points, hint = WRONG[name]
    marks = PARTS[part].judge(defined(code))
    assert (marks.points, hint in marks.says) == (points, True), marks.says


def test_each_known_mistake_is_named_and_costs():
    for part, mistakes in source()["MISTAKES"].items():
        assert len(mistakes) >= 6
        for hint, functions in mistakes.items():
            for function in functions if isinstance(functions, list) else [functions]:
                marks = PARTS[part].judge({part: function})
                assert marks.points < PARTS[part].points, hint
                assert hint in marks.says, (hint, marks.says)


def test_the_solution_gets_all_points_without_a_key(sandbox_kind, tmp_path):
    (tmp_path / "in").mkdir()
    cells = [{"cell_type": "code", "source": code} for code in CODE]
    cells.append({"cell_type": "code", "source": (SOURCE / "solution.py").read_text(encoding="utf-8")})
    (tmp_path / "in/one.ipynb").write_text(json.dumps({"cells": cells}))
    words = ("--assignment", NAME, "--csv", tmp_path / "out.csv", "--teach", TEACH)
    assert main.run([*map(str, ("grade", tmp_path / "in", *words))]) == 0
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["result"], row["points"], row["hint"]) for row in csv.DictReader(file)]
    assert rows[-1][:2] == ("total", "32"), rows
    assert {result for result, _, _ in rows[:-1]} == {"passed"}


def test_the_cases_to_run_hold_for_the_solution_alone():
    names, empty = source(), {}
    for code in CODE:
        if "assert" not in code:
            exec(code if code.startswith(("def ", "import")) else "", empty)  # the last one loads models
            continue
        exec(code, names)
        with pytest.raises((AssertionError, TypeError)):
            exec(code, empty)


def test_the_numbers_of_the_written_part():
    names = {}
    exec((SOURCE / "solution.py").read_text(encoding="utf-8"), names)
    exec(next(code for code in CODE if "own_texts" in code), names)
    found = names["measure"](*(names[each] for each in ("read", "texts", "model", "SONNETS")))
    told = names["WRITTEN"]
    for model in ("shakespeare-bpe", "shakespeare-char"):
        (nats, bits), (nats_32, bits_32) = (found[model, stride] for stride in (64, 32))
        line = rf"{model} +{nats:.3f} and {nats_32:.3f} nats per token +{bits:.3f} and {bits_32:.3f} bits"
        assert re.search(line, told), line
    assert f"Error {found['sonnets'][0]:.3f} and temperature {found['sonnets'][1]:.3f} on the sonnets" in told
    # what was sampled may be other texts on another machine
    assert found["own"] == (pytest.approx(0.007, abs=0.006), pytest.approx(1.004, abs=0.03))
    assert found["few"][0] == pytest.approx(0.046, abs=0.02)
    assert len(found["parts"]) == 19
    assert min(each for each, _ in found["parts"]) > 0.02
    assert max(each for each, _ in found["parts"]) < 0.08
    assert max(temperature for _, temperature in found["parts"]) < 1.15 < found["sonnets"][1]
    counts = {key: sum(p <= 0.05 for p in values) for key, values in found.items() if key[-1] in (2, 63)}
    assert counts["before", 2] <= 6
    assert counts["after", 2] >= 28
    assert counts["before", 63] <= counts["after", 63] <= 10
    assert counts["sonnets", 63] == len(found["sonnets", 63]) == 7


def test_each_question_has_an_answer_and_a_line_of_the_rubric():
    *_, questions, rubric = ("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
    asked = re.findall(r"^(\d)\. .*\*\*\[\d\]\*\*$", questions, flags=re.MULTILINE)
    assert asked == re.findall(r"^\| (\d) \|", rubric, flags=re.MULTILINE)
    assert asked == re.findall(r"^Question (\d)\. ", source()["WRITTEN"], flags=re.MULTILINE)
