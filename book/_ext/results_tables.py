"""Results as tables: measurements beside their targets; book/_templates/results.html writes them."""

from statistics import mean

from markupsafe import Markup
from results_data import (
    BITS,
    LARGEST,
    LOSS,
    LOSS_DIGITS,
    OURS,
    SPREAD,
    asked_words,
    bits_per_nat,
    findings,
    seed_of_teachers,
    speed,
)
from templates import macros

from exformer_lessons.formatting import typeset

WORKS = {"training": "learning", "encoding": "encoding", "encoding_new": "encoding, nothing remembered"}
OPTIMIZERS = {"adamw": "AdamW", "muon": "Muon and AdamW"}
SWITCHES = {"qk_norm": "queries and keys normalized", "zero_init": "outputs of layers begin at 0"}
PACKAGES = ("torch", "transformers", "x-transformers", "tokenizers", "tiktoken")
HTML = macros("results.html")


def number(value, digits):
    """Format a number, or a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def machine_words(found):
    """Describe the machine on which a command ran."""
    m = found["machine"]
    packages = ", ".join(f"{name} {m[name]}" for name in PACKAGES if name in m)
    threads = f"{found['threads']} thread{'s' * (found['threads'] > 1)}, " if "threads" in found else ""
    clock = f"{found['clock']} clock; " if "clock" in found else ""
    return (
        f"{m['cpu']}, {m['cores']} cores, {m['vector_instructions']}; {threads}{clock}"
        f"{m['system'].split()[0]}, Python {m['python']}, {packages}."
    )


def missing(name, results):
    """Return the note that a measurement is missing or incomplete."""
    return HTML.missing(name, results.asked["commands"][name], results.broken.get(name, [""])[0])


def verdicts(results):
    """Return {key of a row: finding} for all targets."""
    return {
        finding.key: finding for target in results.asked["targets"] for finding in findings(target, results)
    }


def targets(results):
    """Every benchmark in a line: the target, the measurement, the verdict; and how many are met."""
    rows = []
    for target in results.asked["targets"]:
        found = findings(target, results)
        asked = asked_words(next(iter(target["asked"].items())))
        rows.append([HTML.benchmark(target), asked, _found(found, _worst(found))])
    columns = ["benchmark\t", "target\t", "measured\t"]
    return HTML.table("Targets and measurements", columns, [("", rows)], HTML.count(counted(results)))


def counted(results):
    """Return how many targets are met, missed or within the spread, those without a measurement apart."""
    words = [_worst(findings(target, results)) for target in results.asked["targets"]]
    return {word: words.count(word) for word in ("met", SPREAD, "missed")}


def _worst(found):
    words = {finding.verdict for finding in found}
    return next((word for word in ("missed", SPREAD, "met") if word in words), "")


def _found(found, word):
    """Return the verdict on a benchmark, the lowest and highest number, and the parts that it is about."""
    if not found:
        return HTML.found("not measured yet", "", "")
    values = sorted(found, key=lambda finding: finding.value)
    low, high = values[0].found_words, values[-1].found_words
    numbers = low if low == high else f"{low.removesuffix(' times')} to {high}"
    short = [finding for finding in found if finding.verdict == word != "met"]
    lines = f"in all {len(found)}"
    if len(found) == 1:
        lines = _joined(": ", found[0].where, _joined("; ", found[0].unfit, found[0].note))
    elif short:
        parts = [_joined(": ", each.where, each.found_words, each.unfit) for each in short]
        lines = f"in {len(short)} of {len(found)}: {'; '.join(parts)}"
    return HTML.found(word, numbers, lines)


def _joined(between, *parts):
    return between.join(filter(None, parts))


def models(results, kind):
    """Trained models: a row for each training, their mean, and what others published."""
    recipes = [name for name in results.asked["models"][kind] if results.scores(name, LOSS)]
    if not recipes:
        return missing("models", results)
    scores = {"test BLEU, lower-cased": 2, "test BLEU, cased": 2} if kind == "translation" else {BITS: 3}
    columns = ["trained model", "parameters", "processor minutes", LOSS, *scores]
    groups = [(_heading(results, name), _seeds(results, name, scores)) for name in recipes]
    entries = [m for m in results.models() if m["recipe"] in recipes]
    commands = Markup(", ").join(_code(f"exformer train {name}") for name in recipes)
    signatures = sorted({(k, s) for m in entries for k, s in m["signatures"].items() if k in scores})
    machines = sorted({_scored_on(m["machine"]) for m in entries})
    more = [Markup("Trained by {}.").format(commands)]
    more += [Markup("{}: {}.").format(name, _code(signature)) for name, signature in signatures]
    if any(entry in results.files.get("seeds", []) for entry in entries):
        more.insert(0, Markup("What is not shipped: {}.").format(_code(results.asked["commands"]["seeds"])))
    more += [text for name in recipes if (text := _config(results, name))]
    made = HTML.made(results.asked["commands"]["models"], f"Scored on {' and '.join(machines)}.", more)
    return HTML.table(f"Trained models: {kind.capitalize()}", columns, groups, made)


def _code(text):
    return Markup("<code>{}</code>").format(text)


def _scored_on(machine):
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    return f"{machine['device']}, {threads}, torch {machine['torch']}"


def _heading(results, recipe):
    found = next((f for key, f in verdicts(results).items() if key[:2] == ("models", recipe)), None)
    return Markup("{} {}").format(_code(recipe), HTML.badge(found) if found else "")


def _seeds(results, recipe, scores):
    entries = [m for m in results.models() if m["recipe"] == recipe]
    digits = {LOSS: 3, **scores}
    rows = []
    for m in entries:
        minutes = number(m["training"]["processor_seconds"] / 60, 1)
        found = [number(m["scores"].get(name), n) for name, n in digits.items()]
        others = seed_of_teachers(m)
        teachers = f"teachers of seed {others}" if others != m["seed"] else ""
        rows.append([(f"seed {m['seed']}", teachers), number(m["parameters"], 0), minutes, *found])
    if len(entries) > 1:
        minutes = number(mean(m["training"]["processor_seconds"] for m in entries) / 60, 1)
        means = [_spread(results.scores(recipe, name), n) for name, n in digits.items()]
        rows.append([f"mean of {len(entries)} trainings", "–", minutes, *means])
    factor = bits_per_nat(entries[0]["scores"])
    for other in results.asked["published"]:
        if other["recipe"] == recipe:
            theirs = dict(other["scores"])
            if factor and LOSS in theirs:
                theirs[BITS] = theirs[LOSS] * factor
            cells = [number(theirs.get(name), n) for name, n in digits.items()]
            rows.append([other["name"], "–", "–", *cells])
    return rows


def _spread(values, digits):
    if not values:
        return None
    low, high = number(min(values), digits), number(max(values), digits)
    return number(mean(values), digits), f"{low} to {high}"


def _config(results, name):
    """Describe how a recipe trains, from the card of a shipped model."""
    card = next((c for c in results.cards.values() if c.get("recipe", {}).get("name") == name), None)
    if card is None:
        return ""
    r, m, t = card["recipe"], card["recipe"]["model"], card["recipe"]["training"]
    symbols = f"{r['n_merges']:,} byte pairs" if r["n_merges"] else f"{r['tokenizer']} symbols"
    layers = f"{m['n_layers']}+{m['n_layers']}" if card["kind"] == "EncoderDecoder" else m["n_layers"]
    parts = [f"{layers} layers, d_model {m['d_model']}, {m['n_heads']} heads, d_ff {m['d_ff']}"]
    parts += [f"{m['positions']} positions"] if "positions" in m else []
    parts += [words for switch, words in SWITCHES.items() if m.get(switch)]
    parts += [
        f"dropout {m['dropout']:g}",
        symbols,
        f"{OPTIMIZERS[t['optimizer']]}, at most {t['steps']:,} steps",
    ]
    parts += [f"at most {r['tokens']:,} target symbols a batch"]
    parts += [f"mean of {t['average_last']} checkpoints"] if t["average_last"] > 1 else []
    parts += (
        [f"{r['num_beams']} beams, length penalty {r['length_penalty']:g}"]
        if card["kind"] == "EncoderDecoder"
        else []
    )
    parts += [f"taught by {' and '.join(r['teachers'])}"] if r.get("teachers") else []
    return Markup("{}: {}.").format(_code(name), ", ".join(parts))


def steps(results, kind):
    """Training steps: a group for each race."""
    if "bench" not in results.files:
        return missing("bench", results)
    races = [race for race in results.files["bench"]["races"] if race["name"].startswith(kind)]
    if not races:
        return missing("bench", results)
    judged, groups = verdicts(results), []
    machines = {race["sizes"]: f"{machine_words(race)} {race['optimizer']}." for race in races}
    several = len(set(machines.values())) > 1
    for race in races:
        verdict = HTML.cell(judged.get(("bench", race["name"], race["sizes"])))
        where = " " + HTML.of(machines[race["sizes"]]) if several else ""
        rows = [_timed(*one) for one in race["contenders"].items()]
        groups.append((Markup("{}. {}{}").format(race["sizes"], verdict, where), rows))
    columns = ["one step", "ms", "ours / it", "middle half", "peak MB"]
    machine = "The machine of each race stands above it." if several else next(iter(machines.values()))
    made = HTML.made(results.asked["commands"]["bench"], machine)
    return HTML.table(f"Time and memory of a training step: {kind}", columns, groups, made)


def _timed(who, one):
    memory = None if one["peak_bytes"] is None else one["peak_bytes"] / 1e6
    return [who, number(1000 * one["median_s"], 1), *_ratio(who, one), number(memory, 0)]


def _ratio(who, one):
    if who == OURS:
        return ["1", "–"]
    return [number(one["ratio"], 3), f"{number(one['ratio_low'], 3)} to {number(one['ratio_high'], 3)}"]


def writing(results):
    """Generation: a group for each race."""
    if "generation" not in results.files:
        return missing("generation", results)
    found, judged, groups = results.files["generation"], verdicts(results), []
    for name, race in found["races"].items():
        rows = [
            [
                who,
                number(one["median_s"], 3),
                number(race["symbols"] / one["median_s"], 0),
                *_ratio(who, one),
            ]
            for who, one in race["contenders"].items()
        ]
        texts = f"{race['texts']} text{'s' * (race['texts'] > 1)}"
        verdict = next((HTML.badge(f) for key, f in judged.items() if key[:2] == ("generation", name)), "")
        told = f"{name}: {texts}, {race['symbols']:,} symbols in all "
        groups.append((Markup("{}{}").format(told, verdict), rows))
    columns = ["the same texts", "seconds", "symbols a second", "ours / it", "middle half"]
    g, t = found["gpt"], found["translator"]
    sizes = (
        f"Greedy: d_model {g['d_model']}, {g['n_layers']} layers. Beam: d_model {t['d_model']}, "
        f"{t['n_layers']}+{t['n_layers']} layers."
    )
    made = HTML.made(results.asked["commands"]["generation"], f"{machine_words(found)} {sizes}")
    return HTML.table("Time to write texts", columns, groups, made)


def byte_pairs(results):
    """Byte pairs: a group for each text."""
    if "byte_pairs" not in results.files:
        return missing("byte_pairs", results)
    found, judged, groups = results.files["byte_pairs"], verdicts(results), []
    for race in found["races"]:
        rows = []
        for work, title in WORKS.items():
            ours = number(speed(race["characters"], race[work]["seconds"][OURS]), 2)
            for who, one in race[work]["peers"].items():
                verdict = judged.get(("byte_pairs", race["name"], work, who))
                rows.append([f"{title}, beside {who}", ours, *_ratio(who, one), verdict])
        memory = [f"{who} {n / 1e6:.0f} MB" for who, n in race["peak_bytes"].items() if n is not None]
        told = f"{race['characters']:,} characters, {race['merges']:,} merges"
        told += f"; learning adds {', '.join(memory)}" if memory else ""
        groups.append((f"{race['name']}: {told}", rows))
    columns = ["work", "ours, million characters a second", "ours / it", "middle half", "target\t"]
    slow = found["recounting"]
    times = f"{1 / slow['ratio']:,.0f} times as long as ours ({slow['name']})"
    anew = f"Counting all pairs anew for each merge takes {times}."
    made = HTML.made(results.asked["commands"]["byte_pairs"], f"{machine_words(found)} {anew}")
    return HTML.table("Learning and using byte pairs", columns, groups, made)


def nano_gpt(results):
    """Training on Shakespeare's characters beside nanoGPT."""
    if "shakespeare" not in results.files:
        return missing("shakespeare", results)
    found, judged, groups = results.files["shakespeare"], verdicts(results), []
    for who, one in found["contenders"].items():
        verdict = HTML.badge(judged[key]) if (key := ("shakespeare", who)) in judged else ""
        row = [
            one["precision"],
            number(one["steps"], 0),
            number(len(one["seconds"]), 0),
            _spread(one["seconds"], 1),
            number(one["ms_per_step"], 1),
            number(one["ratio"], 3),
            _spread(one["validation_losses"], LOSS_DIGITS),
        ]
        groups.append((Markup("{} {}").format(who, verdict), [row]))
    columns = ["precision\t", "steps", "seeds", "seconds of training, mean", "ms per step"]
    columns += ["ratio of the mean seconds", "validation loss, nats per character, mean"]
    sizes = [f"{who}: {one['parameters']:,} and {one['threads']}" for who, one in found["contenders"].items()]
    machine = (
        f"{machine_words(found)} Below each mean, the least and the greatest of the seeds. The ratio is to "
        f"{found['reference']}, the faster of those that raced. Parameters and threads: {'; '.join(sizes)}."
    )
    made = HTML.made(results.asked["commands"]["shakespeare"], machine)
    return HTML.table("Shakespeare's characters, beside nanoGPT", columns, groups, made)


def board(results):
    """The CPU-minute board: a group for each budget and sitting."""
    if "board" not in results.files:
        return missing("board", results)
    found, sittings = results.files["board"], {}
    for row in found["rows"]:
        sittings.setdefault((row["budget"], row["sitting"]), []).append(row)
    machines = {key: machine_words(own[0]) for key, own in sittings.items()}
    several, groups = len(set(machines.values())) > 1, []
    for (budget, sitting), own in sittings.items():
        where = " " + HTML.of(machines[budget, sitting]) if several else ""
        heading = Markup("{} seconds; sitting of {}{}").format(budget, sitting, where)
        names = {each["entry"]: each["title"].split(":")[0] for each in own}
        groups.append((heading, [_entry(row, names) for row in own]))
    columns = ["entry", "seeds", "validation loss, nats per character, mean", "seconds used, mean"]
    columns += ["standing\t"]
    machine = "The machine of each sitting stands above it." if several else next(iter(machines.values()))
    rules = (
        f"The loss is that on the validation part of Tiny Shakespeare, in windows of {found['window']} "
        "characters side by side. Below each mean, the least and the greatest of the seeds, and the standard "
        "deviation. A record is "
        f"beaten if the mean over the seeds is lower with p < {found['limit']:g} in a one-sided Welch "
        "t-test, on the same machine in the same sitting."
    )
    made = HTML.made(results.asked["commands"]["board"], machine, [rules])
    return HTML.table("The CPU-minute board", columns, groups, made)


def _entry(row, names):
    against = ""
    if row["p"] is not None:
        p = "p < 0.0001" if row["p"] < 1e-4 else f"p = {row['p']:.2g}"
        against = f"{p} against {names.get(row['against'], row['against'])}"
    (loss, losses), (seconds, used) = _spread(row["losses"], LOSS_DIGITS), _spread(row["seconds"], 1)
    return [
        (names[row["entry"]], f"{row['entry']}.py"),
        number(len(row["losses"]), 0),
        (loss, f"{losses}, sd {number(row['sd'], LOSS_DIGITS)}"),
        (seconds, f"{used}; cores {number(mean(row['processor_seconds']), 1)}"),
        ("record" if row["record"] and len(names) > 1 else "", against),
    ]


def agreement(results):
    """How far the library is from PyTorch's modules and from Hugging Face's models."""
    if "agreement" not in results.files:
        return missing("agreement", results)
    found = results.files["agreement"]
    groups = [
        (
            whose,
            [
                [what, *(number(one[kind], 0) for kind in ("outputs", "gradients")), power(one[LARGEST])]
                for what, one in rows.items()
            ],
        )
        for whose, rows in found["twins"].items()
    ]
    columns = ["compared with", "outputs", "gradients of parameters", "largest difference"]
    made = HTML.made(results.asked["commands"]["agreement"], machine_words(found))
    return HTML.table("Differences in float64, with the same random weights", columns, groups, made)


def power(value):
    """Write a small number as a power of ten."""
    return typeset(f"{value:.0e}")
