"""Write questions for Moodle, to import as *Moodle XML*, to _build/moodle.

    python book/_tools/moodle.py [05 …]      # of all lessons, or of those named

``votes.xml`` has the predictions of the lessons, and reasons for the wrong answers that the lecturer's notes
expect. ``pretest.xml`` has the pre-test, with wrong answers from ``book/teach/pretest.yml``, and the six
statements to ask before and after a course, with their verdicts from the ledger. ``tests.xml`` has the public
tests and mock exams as essays, whose schemes graders alone see. The bank is in ``questions.xml``, a point a
minute, without its answers. The folder ``weeks`` has a page for each plan of ``book/courses.yml``, whose
paragraphs a lecturer pastes into the sections of a course; they lead to the book where GitHub publishes it.
Another page has an assignment in place of the challenge, where the plan allows it.
"""

import base64
import html
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import yaml
from slides import ANSWER, DARK_ON_LIGHT, LINK, MARKDOWN, PARTS, Asked, blocks, excerpt, inline

from exformer_lessons.notebook import find, key_of
from exformer_lessons.teacher.mock import mocks, read_mock
from exformer_lessons.teacher.questions import lessons_with_questions, read_questions, titles

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "book" / "_ext"))

from notes import ASK, read_notes  # noqa: E402
from plans import duties_of, planned, read_plans  # noqa: E402
from repo_links import find_pages  # noqa: E402

FOLDER = ROOT / "_build" / "moodle"
TEACH = ROOT / "book" / "teach"
EXPECTED = re.compile(r"Expect \((\w)\)(?: or \((\w)\))?(.*)")
SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z*$[])")
#: What the notes say to the lecturer alone.
ADVICE = re.compile(r"(?:Then )?(?:[Aa]sk|Have|Draw|Write|The box)\b")
PRETEST = re.compile(r"^(\d+)\. (.+?)\n(?=\d+\. |\n<details>)", flags=re.M | re.S)
STATEMENT = re.compile(r"^- (.+) \[(\w\d\d)\]\(\.\./claims\.md#\w+\)$", flags=re.M)
#: What may be answered to a statement.
VERDICTS = {"holds": "It holds", "condition": "It holds under a condition", "wrong": "It is wrong"}
#: Where a week names a lesson.
NAMED = re.compile(r"\b([Ll]esson (\d\d)),")
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$", flags=re.M)


def votes(cells, before):
    """Yield the predictions of a lesson: each with its right letter, what is said of it, and its picture.

    Letters that stand in a picture are options without words, and the picture is given.

    Args:
        cells: Of its notebook.
        before: The words that a prediction needs, by its order, as the slides show them.
    """
    asked, figure, count, read = None, None, 0, []
    for kind, content in blocks(cells):
        if kind == "figure" and "(a)" in content.alt:
            figure = content
        elif kind in ("text", "list"):
            read.append(content)
        elif kind == "asked":
            count += 1
            if "(a)" in content:
                asked = Asked(content, excerpt(before[count], read) if count in before else "")
        elif kind == "answer" and asked:
            sentences = SENTENCES.split(" ".join(content.split()))
            if len(sentences) > 1 and sentences[-1].rstrip('*")')[-1] not in ".!?":
                sentences.pop()  # it leads on to what the page shows
            shown = None if asked.options else figure
            if shown:
                asked.options = dict.fromkeys(re.findall(r"\((\w)\)", asked.question), "")
            yield asked, ANSWER.match(content)[1], " ".join(sentences), shown
            asked = None


def expected(note):
    """Return the reason for each wrong letter that a line of the notes expects.

    >>> expected("- Predict (a). Expect (c), which looks right. Ask for more.")
    {'c': 'We expect this answer, which looks right.'}
    """
    if not (found := EXPECTED.search(note)):
        return {}
    one, other, why = found.groups()
    said = " ".join(each for each in SENTENCES.split(why.rstrip()) if not ADVICE.match(each))
    reason = "We expect this answer" + re.sub("; ask [^.?]+", "", said)
    return {letter: reason for letter in (one, other) if letter}


def put(parent, tag, text, **attributes):
    """Add an element whose text is in an element of its own, as Moodle has it."""
    element = ElementTree.SubElement(parent, tag, attributes)
    ElementTree.SubElement(element, "text").text = text
    return element


def add(bank, kind, name, text, **parts):
    """Add a question, its text in HTML."""
    made = ElementTree.SubElement(bank, "question", type=kind)
    put(made, "name", name)
    put(made, "questiontext", text, format="html")
    for part, value in parts.items():
        ElementTree.SubElement(made, part).text = value
    return made


def choose(bank, name, text, options, shuffle="false"):
    """Add a question with one right answer: options are (text, whether it is right, feedback)."""
    told = {"defaultgrade": "1", "single": "true", "answernumbering": "none", "shuffleanswers": shuffle}
    made = add(bank, "multichoice", name, text, **told)
    for option, right, feedback in options:
        answer = put(made, "answer", option, fraction="100" if right else "0", format="html")
        put(answer, "feedback", feedback, format="html")
    return made


def begin(bank, *names):
    """Begin a category of questions."""
    path = "/".join(name.replace("/", "//") for name in ("The Executable Transformer", *names))
    put(ElementTree.SubElement(bank, "question", type="category"), "category", f"$course$/{path}")


def add_votes(bank, paths):
    """Add the predictions of lessons."""
    notes = read_notes(ROOT)
    chosen = yaml.safe_load((PARTS / "slides.yml").read_text(encoding="utf-8"))
    for path in paths:
        title = titles(TEACH)[key_of(path)]
        before = chosen.get(key_of(path), {}).get("before", {})
        begin(bank, "Votes", title)
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        lines = [line for line in notes[key_of(path)].splitlines() if ASK.match(line)]
        for (asked, letter, told, figure), line in zip(votes(cells, before), lines, strict=True):
            reasons, told_before = expected(line), f"<p>{inline(asked.before)}</p>" * bool(asked.before)
            text = f"{told_before}<p>{inline(asked.question)}</p>"
            if figure:
                name, alt = f"{figure.name}.svg", html.escape(figure.alt)
                text += f'<p><img src="@@PLUGINFILE@@/{name}" alt="{alt}"></p>'
            options = [
                (f"({each}) {inline(words)}".strip(), each == letter, inline(reasons.get(each, "")))
                for each, words in asked.options.items()
            ]
            number = lines.index(line) + 1
            made = choose(bank, f"{title[:2]}.{number} {asked.name}", text, options)
            put(made, "generalfeedback", f"<p>{inline(told)}</p>", format="html")
            if figure:
                svg = figure.svg.replace("<svg", f'<svg style="{DARK_ON_LIGHT}"', 1)
                file = {"name": name, "path": "/", "encoding": "base64"}
                element = ElementTree.SubElement(made.find("questiontext"), "file", file)
                element.text = base64.b64encode(svg.encode()).decode()


def add_pretest(bank):
    """Add the questions of the pre-test."""
    page = (TEACH / "first_class.md").read_text(encoding="utf-8").partition("\n## What ")[0]
    wrong = yaml.safe_load((TEACH / "pretest.yml").read_text(encoding="utf-8"))
    begin(bank, "Pre-test")
    for (number, text), row, others in zip(PRETEST.findall(page), ROW.findall(page), wrong, strict=True):
        _, right, mistake, repeat = map(MARKDOWN.renderInline, row)
        told = [f"{mistake}. Repeat: {repeat}.", *[f"Repeat: {repeat}."] * 2]
        rest = zip(map(MARKDOWN.renderInline, [*others, "I do not know yet."]), told, strict=True)
        options = [(right, True, ""), *((words, False, said) for words, said in rest)]
        words = MARKDOWN.render(re.sub("^    ", "", text, flags=re.M))
        choose(bank, f"Pre-test {number}", words, options, shuffle="true")


def add_statements(bank):
    """Add what students are asked before and after a course: whether a statement holds."""
    page = (TEACH / "first_class.md").read_text(encoding="utf-8")
    ledger = yaml.safe_load((TEACH.parent / "claims.yml").read_text(encoding="utf-8"))
    rows = {row["id"]: row for row in ledger}
    begin(bank, "What a course changes")
    for words, key in STATEMENT.findall(page):
        right, clause = rows[key]["verdict"], rows[key].get("clause", "")
        options = [(told, verdict == right, "") for verdict, told in VERDICTS.items()]
        made = choose(bank, f"Statement {key}", f"<p>{inline(words)}</p>", options)
        told = html.escape(VERDICTS[right] + (f": {clause}." if clause else "."))
        put(made, "generalfeedback", f"<p>{told}</p>", format="html")


def add_tests(bank):
    """Add the public tests and mock exams, with their schemes for graders."""
    for key in mocks(TEACH):
        exam = read_mock(TEACH, key)
        begin(bank, "Tests and mock exams", exam.title)
        for number, task in enumerate(exam.tasks, 1):
            made = essay(bank, f"{key} {number}", task.question)
            put(made, "graderinfo", MARKDOWN.render(LINK.sub(r"\1", task.scheme)), format="html")


def essay(bank, name, question):
    """Add a question whose points are its minutes, to be answered in words or by a photo of a page."""
    told = {"defaultgrade": str(question.minutes), "responseformat": "editor", "attachments": "1"}
    return add(bank, "essay", name, MARKDOWN.render(LINK.sub(r"\1", question.text)), **told)


def add_questions(bank, slugs):
    """Add the questions of the bank, without answers."""
    for slug in slugs:
        begin(bank, "Questions", titles(TEACH)[slug])
        for each in read_questions(TEACH, slug):
            essay(bank, f"{each.name} ({each.kind})", each)


def latest(rows):
    """Return the greatest number of a lesson that was taught, or set as reading, in some meetings."""
    return max((each["number"] for row in rows for each in (*row["lectured"], *row["before"])), default="")


def week(plan, number):
    """Return what a section of a course says of a meeting: its lesson, exercises, and what is due."""
    row, unit = plan["rows"][number - 1], "meeting" if plan["a_week"] > 1 else "week"
    tutorial = row["tutorial"] or {"tests": [], "lab": False}
    told = [
        f"Lesson {each['number']}, {each['title']}{', to be read before' * read}. {each['question']}"
        for each, read in row["order"]
    ]
    before, now = (latest(plan["rows"][:n]) for n in (number - 1, number))
    told += [
        f"In place of lesson {each['number']}, {each['title']}: {words}."
        for each, words in plan["told"]
        if before < each["number"] < now
    ]
    told += [row["own"]] * bool(row["own"])
    told += [each["title"] + without(each["without"]) for each in (*row["tests"], *tutorial["tests"])]
    told += ["Lab: answers from texts"] * (row["lab"] or tutorial["lab"])
    told += [f"{words[:1].upper()}{words[1:]}" for words, *_ in row["steps"]]
    told += [f"Exercises in class: {row['here']}"] * bool(row["here"])
    home = [f"exercises {row['there']}"] * bool(row["there"])
    home += [f"read lesson {each['number']}, {each['title']}" for each in row["before"]]
    home += [f"for the challenge, {task}" for task in row["tasks"]]
    told += [f"For the next {unit}: {'; '.join(home)}"] * bool(home)
    dates = plan["assignments"] | plan["instead"]
    for what, name, _ in duties_of(plan, number):
        until = f", due in {unit} {dates[name][1]}" * (what == "handed out")
        told.append(f"Assignment {name}: {what}{until}")
    return told


def linked(item, book, names):
    """Return an item of a week in HTML, which leads to lessons, and to notebook and slides of its own one.

    Args:
        item: As `week` has it.
        book: Where the book is published.
        names: The name of each lesson's notebook, by its number.
    """
    lesson = f'<a href="{book}/notebooks/{{}}.html">{{}}</a>,'
    text = NAMED.sub(lambda found: lesson.format(names[found[2]], found[1]), html.escape(item))
    if own := NAMED.match(item):
        name = names[own[2]]
        text += f' <a href="{book}/_sources/notebooks/{name}.ipynb">Notebook</a>,'
        text += f' <a href="{book}/_static/slides/{name}.html">slides</a>.'
    return text


def without(numbers):
    """Say which questions of a test are left out."""
    return f", without question{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}" if numbers else ""


def versions(key):
    """Return a plan by the name of its page; and once more with the assignments in place of the challenge."""
    plan = planned(ROOT, key)
    found = {key: plan | {"instead": {}}}
    if plan["instead"]:
        rows = [row | {"steps": [], "tasks": []} for row in plan["rows"]]
        more = {"rows": rows, "assignments": plan["assignments"] | plan["instead"], "instead": {}}
        found["-".join([key, *plan["instead"]])] = plan | more
    return found


def weeks(plan):
    """Return the page of a plan."""
    names = {path.stem[:2]: path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")}
    book = find_pages(ROOT)
    unit, title = "Meeting" if plan["a_week"] > 1 else "Week", html.escape(f"{plan['title']}, {plan['size']}")
    parts = [f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>']
    for number in range(1, len(plan["rows"]) + 1):
        items = "".join(f"<li>{linked(each, book, names)}</li>" for each in week(plan, number))
        parts.append(f"<h3>{unit} {number}</h3>\n<ul>{items}</ul>")
    return "\n".join(parts) + "\n</html>\n"


def make_banks(names):
    """Return the questions of the named lessons, or of all, by the name of their file."""
    paths = [path for path in find(names) if path.parent.name == "notebooks"]
    slugs = set(map(key_of, paths)) & set(lessons_with_questions(TEACH))
    banks = {name: ElementTree.Element("quiz") for name in ("votes", "pretest", "tests", "questions")}
    add_votes(banks["votes"], paths)
    add_pretest(banks["pretest"])
    add_statements(banks["pretest"])
    add_tests(banks["tests"])
    add_questions(banks["questions"], [slug for slug in titles(TEACH) if slug in slugs])
    return banks


def main(names, folder=FOLDER):
    """Write the questions of the named lessons, or of all, and the weeks of plans; say how many there are."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    banks = make_banks(names)
    for name, bank in banks.items():
        ElementTree.ElementTree(bank).write(folder / f"{name}.xml", encoding="utf-8", xml_declaration=True)
    (folder / "weeks").mkdir(exist_ok=True)
    plans = {name: plan for each in read_plans(ROOT) for name, plan in versions(each["key"]).items()}
    for name, plan in plans.items():
        (folder / "weeks" / f"{name}.html").write_text(weeks(plan), encoding="utf-8")
    counts = {name: sum(each.get("type") != "category" for each in bank) for name, bank in banks.items()}
    told = [f"{count} in {name}.xml" for name, count in counts.items()]
    return ", ".join([*told, f"{len(plans)} pages in weeks", f"in {folder}"])


if __name__ == "__main__":
    print(main(sys.argv[1:]))
