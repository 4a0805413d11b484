"""Results as tables: what was found, beside what was asked, in HTML."""

import html
from statistics import mean

from results_data import BITS, LOSS, OURS, bits_per_nat, findings, seed_of_teachers, speed

ASKED = {"most": "at most {}", "least": "at least {}", "times": "at least {} times as fast"}
WORKS = {"training": "learning", "encoding": "encoding", "encoding_new": "encoding, nothing remembered"}
OPTIMIZERS = {"adamw": "AdamW", "muon": "Muon and AdamW"}
SWITCHES = {"qk_norm": "queries and keys normalized", "zero_init": "outputs of layers begin at 0"}
PACKAGES = ("torch", "transformers", "x-transformers", "tokenizers", "tiktoken")


def esc(text):
    """Escape text for HTML."""
    return html.escape(str(text))


def number(value, digits):
    """Write a number; a dash where there is none."""
    return "–" if value is None else f"{value:,.{digits}f}"


def mean_words(mean, losses):
    """Write a mean, with the least and the greatest where there are several."""
    spread = f" ({number(min(losses), 3)} to {number(max(losses), 3)})" if len(losses) > 1 else ""
    return number(mean, 3) + spread


def asked_words(asked):
    """Say what was asked: ("most", 0.95) -> "at most 0.95"."""
    return ASKED[asked[0]].format(asked[1])


def found_words(finding):
    """Say what was found, with as many digits as it is judged by."""
    how = finding.asked[0]
    return (
        f"{finding.value:.2f}{' times' if how == 'times' else ''}"
        if how != "most"
        else f"{finding.value:.3f}"
    )


def badge(finding):
    """Return the verdict on one number; a shortfall says what was asked and what was found."""
    if finding is None:
        return "–"
    if finding.met:
        return f'<span class="verdict verdict-holds">met</span> asked {esc(asked_words(finding.asked))}'
    why = f"; {finding.unfit}" if finding.unfit else ""
    said = f"asked {asked_words(finding.asked)}, found {found_words(finding)}{why}"
    return f'<span class="verdict verdict-wrong">missed</span> {esc(said)}'


def table(title, columns, groups, *, made=""):
    """Return a table that a phone can scroll sideways.

    Args:
        title: What it shows.
        columns: Heading of each column; those that end in a tab hold words, the others numbers.
        groups: Pairs of a heading (or "") and rows; a row is a list of HTML, its first cell the row's name.
        made: HTML below it: by what it was made.
    """
    kinds = [' class="words"' if name.endswith("\t") else "" for name in columns]
    kinds[0] = ' class="words"'
    head = "".join(
        f'<th scope="col"{kind}>{esc(name.strip())}</th>' for kind, name in zip(kinds, columns, strict=True)
    )
    body = ""
    for heading, rows in groups:
        if heading:
            body += f'<tr><th scope="rowgroup" colspan="{len(columns)}">{heading}</th></tr>'
        for first, *rest in rows:
            cells = "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds[1:], rest, strict=True))
            body += f'<tr><th scope="row">{first}</th>{cells}</tr>'
    return (
        f'<figure class="results"><figcaption>{esc(title)}</figcaption>'
        f'<div class="scroll" role="region" aria-label="{esc(title)}" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"{f'<p class=made>{made}</p>' if made else ''}</figure>"
    )


def made_by(command, machine="", *, more=()):
    """Say which command made a table, on what machine."""
    return " ".join([f"Made by <code>{esc(command)}</code>.", esc(machine), *more]).strip()


def machine_words(found):
    """Say on what a command ran."""
    m = found["machine"]
    packages = ", ".join(f"{name} {m[name]}" for name in PACKAGES if name in m)
    threads = f"{found['threads']} thread{'s' * (found['threads'] > 1)}, " if "threads" in found else ""
    return (
        f"{m['cpu']}, {m['cores']} cores, {m['vector_instructions']}; {threads}{found['clock']} clock; "
        f"{m['system'].split()[0]}, Python {m['python']}, {packages}."
    )


def missing(name, results):
    """Say that something has not been measured, or not wholly."""
    command = results.asked["commands"][name]
    text = f"Not measured yet: <code>{esc(command)}</code> writes <code>bench/results/{name}.json</code>."
    if wrong := results.broken.get(name):
        text += f" The file that is there is not whole ({esc(wrong[0])})."
    return f'<p class="results-missing">{text}</p>'


def verdicts(results):
    """Return {key of a row: finding} for all that was asked."""
    return {
        finding.key: finding for target in results.asked["targets"] for finding in findings(target, results)
    }


def targets(results):
    """Every benchmark in a line: what was asked, what was found, whether it is enough."""
    rows = []
    for target in results.asked["targets"]:
        found = findings(target, results)
        name = f'<a href="#{esc(target["section"])}">{esc(target["what"])}</a>'
        name += f'<span class="of">beside {esc(target["source"])}</span>'
        asked = esc(asked_words(next(iter(target["asked"].items()))))
        rows.append([name, asked, _found(found)])
    columns = ["benchmark\t", "asked\t", "found\t"]
    return table("What was asked and what was found", columns, [("", rows)])


def _found(found):
    """Return the verdict on a benchmark, the lowest and the highest number, and the parts that missed."""
    if not found:
        return '<span class="verdict verdict-care">not measured yet</span>'
    values = sorted(found, key=lambda finding: finding.value)
    low, high = found_words(values[0]), found_words(values[-1])
    numbers = low if low == high else f"{low.removesuffix(' times')} to {high}"
    wrong = [finding for finding in found if not finding.met]
    verdict = '<span class="verdict verdict-holds">met</span>'
    lines = f"in all {len(found)}" if len(found) > 1 else found[0].where
    if wrong:
        verdict = '<span class="verdict verdict-wrong">missed</span>'
        parts = [": ".join(filter(None, (f.where, found_words(f), f.unfit))) for f in wrong]
        lines = f"in {len(wrong)} of {len(found)}: {'; '.join(parts)}"
        lines = lines if len(found) > 1 else ": ".join(filter(None, (wrong[0].where, wrong[0].unfit)))
    return f'{verdict} {numbers}<span class="of">{esc(lines)}</span>'


def models(results, kind):
    """Trained models: a row for each training, their mean, and what others published."""
    recipes = [name for name in results.asked["models"][kind] if results.scores(name, LOSS)]
    if not recipes:
        return missing("models", results)
    scores = {"test BLEU, lower-cased": 2, "test BLEU, cased": 2} if kind == "translation" else {BITS: 3}
    columns = ["trained model", "parameters", "processor minutes", LOSS, *scores]
    groups = [(_heading(results, name), _seeds(results, name, scores)) for name in recipes]
    entries = [m for m in results.models() if m["recipe"] in recipes]
    commands = ", ".join(f"<code>exformer train {esc(name)}</code>" for name in recipes)
    signatures = sorted({(k, s) for m in entries for k, s in m["signatures"].items() if k in scores})
    machines = sorted({_scored_on(m["machine"]) for m in entries})
    more = [f"Trained by {commands}.", *(f"{esc(k)}: <code>{esc(s)}</code>." for k, s in signatures)]
    if any(entry in results.files.get("seeds", []) for entry in entries):
        more.insert(0, f"What is not shipped: <code>{esc(results.asked['commands']['seeds'])}</code>.")
    more += [text for name in recipes if (text := _config(results, name))]
    made = made_by(results.asked["commands"]["models"], f"Scored on {' and '.join(machines)}.", more=more)
    return table(f"Trained models: {kind.capitalize()}", columns, groups, made=made)


def _scored_on(machine):
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    return f"{machine['device']}, {threads}, torch {machine['torch']}"


def _heading(results, recipe):
    found = next((f for key, f in verdicts(results).items() if key[:2] == ("models", recipe)), None)
    return f"<code>{esc(recipe)}</code> {badge(found) if found else ''}"


def _seeds(results, recipe, scores):
    entries = [m for m in results.models() if m["recipe"] == recipe]
    digits = {LOSS: 3, **scores}
    rows = []
    for m in entries:
        minutes = number(m["training"]["processor_seconds"] / 60, 1)
        found = [number(m["scores"].get(name), n) for name, n in digits.items()]
        who = f"seed {m['seed']}"
        if (others := seed_of_teachers(m)) != m["seed"]:
            who += f'<span class="of">teachers of seed {others}</span>'
        rows.append([who, number(m["parameters"], 0), minutes, *found])
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
            rows.append([esc(other["name"]), "–", "–", *cells])
    return rows


def _spread(values, digits):
    if not values:
        return "–"
    low, high = number(min(values), digits), number(max(values), digits)
    return f'{number(mean(values), digits)}<span class="of">{low} to {high}</span>'


def _config(results, name):
    """Say how a recipe trains: from the card of a shipped model."""
    card = next((c for c in results.cards.values() if c.get("recipe", {}).get("name") == name), None)
    if card is None:
        return ""
    r, m = card["recipe"], card["recipe"]["model"]
    symbols = f"{r['n_merges']:,} byte pairs" if r["n_merges"] else f"{r['tokenizer']} symbols"
    layers = f"{m['n_layers']}+{m['n_layers']}" if card["kind"] == "EncoderDecoder" else m["n_layers"]
    parts = [f"{layers} layers, d_model {m['d_model']}, {m['n_heads']} heads, d_ff {m['d_ff']}"]
    parts += [f"{m['positions']} positions"] if "positions" in m else []
    parts += [words for switch, words in SWITCHES.items() if m.get(switch)]
    parts += [
        f"dropout {m['dropout']:g}",
        symbols,
        f"{OPTIMIZERS[r['optimizer']]}, at most {r['steps']:,} steps",
    ]
    parts += [f"at most {r['tokens']:,} target symbols a batch"]
    parts += [f"mean of {r['average']} checkpoints"] if r["average"] > 1 else []
    parts += [f"beam {r['beam']}, alpha {r['alpha']:g}"] if card["kind"] == "EncoderDecoder" else []
    parts += [f"taught by {' and '.join(r['teachers'])}"] if r.get("teachers") else []
    return f"<code>{esc(name)}</code>: {esc(', '.join(parts))}."


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
        verdict = badge(judged.get(("bench", race["name"], race["sizes"])))
        where = f'<span class="of">{esc(machines[race["sizes"]])}</span>' if several else ""
        rows = [_timed(*one) for one in race["contenders"].items()]
        groups.append((f"{esc(race['sizes'])}. {verdict} {where}".strip(), rows))
    columns = ["one step", "ms", "ours / it", "middle half", "peak MB"]
    machine = "The machine of each race stands above it." if several else next(iter(machines.values()))
    made = made_by(results.asked["commands"]["bench"], machine)
    return table(f"Time and memory of a training step: {kind}", columns, groups, made=made)


def _timed(who, one):
    memory = None if one["peak_bytes"] is None else one["peak_bytes"] / 1e6
    return [esc(who), number(1000 * one["median_s"], 1), *_ratio(who, one), number(memory, 0)]


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
                esc(who),
                number(one["median_s"], 3),
                number(race["symbols"] / one["median_s"], 0),
                *_ratio(who, one),
            ]
            for who, one in race["contenders"].items()
        ]
        texts = f"{race['texts']} text{'s' * (race['texts'] > 1)}"
        verdict = next((badge(f) for key, f in judged.items() if key[:2] == ("generation", name)), "")
        groups.append((f"{esc(name)}: {texts}, {race['symbols']:,} symbols in all {verdict}", rows))
    columns = ["the same texts", "seconds", "symbols a second", "ours / it", "middle half"]
    g, t = found["gpt"], found["translator"]
    sizes = (
        f"Greedy: d_model {g['d_model']}, {g['n_layers']} layers. Beam: d_model {t['d_model']}, "
        f"{t['n_layers']}+{t['n_layers']} layers."
    )
    made = made_by(results.asked["commands"]["generation"], f"{machine_words(found)} {sizes}")
    return table("Time to write texts", columns, groups, made=made)


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
                verdict = badge(judged.get(("byte_pairs", race["name"], work, who)))
                rows.append([f"{title}, beside {esc(who)}", ours, *_ratio(who, one), verdict])
        memory = [f"{who} {n / 1e6:.0f} MB" for who, n in race["peak_bytes"].items() if n is not None]
        told = f"{race['characters']:,} characters, {race['merges']:,} merges"
        told += f"; learning adds {', '.join(memory)}" if memory else ""
        groups.append((esc(f"{race['name']}: {told}"), rows))
    columns = ["work", "ours, million characters a second", "ours / it", "middle half", "asked\t"]
    slow = found["recounting"]
    times = f"{1 / slow['ratio']:,.0f} times as long as ours ({slow['name']})"
    anew = f"Counting all pairs anew for each merge takes {times}."
    made = made_by(results.asked["commands"]["byte_pairs"], f"{machine_words(found)} {anew}")
    return table("Learning and using byte pairs", columns, groups, made=made)


def nano_gpt(results):
    """Training on Shakespeare's characters beside nanoGPT."""
    if "shakespeare" not in results.files:
        return missing("shakespeare", results)
    found, judged = results.files["shakespeare"], verdicts(results)
    rows = [
        [
            esc(who),
            *(number(one[name], 0) for name in ("steps", "threads", "seeds")),
            number(one["seconds"], 1),
            number(one["ratio"], 3),
            mean_words(one["validation_loss"], one["validation_losses"]),
            badge(judged.get(("shakespeare", who))),
        ]
        for who, one in found["contenders"].items()
    ]
    columns = ["who trains", "steps", "threads", "seeds", "seconds", "seconds / nanoGPT's", LOSS, "asked\t"]
    sizes = [f"{who}: {one['parameters']:,}, {one['precision']}" for who, one in found["contenders"].items()]
    machine = f"{machine_words(found)} Parameters and numbers: {'; '.join(sizes)}."
    made = made_by(results.asked["commands"]["shakespeare"], machine)
    return table("Shakespeare's characters, beside nanoGPT", columns, [("", rows)], made=made)
