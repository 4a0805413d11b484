"""What `make canvas` writes: packages of QTI with the questions for Moodle, each with its right letter."""

import html
import io
import re
import zipfile
from urllib.parse import unquote
from xml.etree import ElementTree

import canvas
import moodle
import pytest


def parse(content):
    """Return a tree without the names of its schema."""
    return ElementTree.fromstring(re.sub(rb' xmlns="[^"]+"', b"", content))


@pytest.fixture(scope="module")
def banks():
    return canvas.make_banks([])


@pytest.fixture(scope="module")
def packages(banks, tmp_path_factory):
    """Write all packages; return the files of each."""
    folder = tmp_path_factory.mktemp("canvas")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "make_banks", lambda _: banks)
        said = canvas.main([], folder)
    counts = {name: len(bank.findall("question")) for name, bank in banks.items()}
    counts = {name: n - len(banks[name].findall("question[category]")) for name, n in counts.items()}
    assert said == f"{', '.join(f'{n} in {name}.zip' for name, n in counts.items())}, in {folder}"
    found = {}
    for path in folder.iterdir():
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            found[path.stem] = {name: archive.read(name) for name in archive.namelist()}
    return found


def quizzes(files):
    """Return the settings and the items of each quiz of a package, as its manifest lists them."""
    resources = parse(files["imsmanifest.xml"]).findall("resources/resource")
    listed = {each.get("identifier"): each.find("file").get("href") for each in resources}
    assert len(listed) == len(resources)
    assert sorted([*listed.values(), "imsmanifest.xml"]) == sorted(files)
    found = {}
    for each in resources:
        if each.get("type") == "imsqti_xmlv1p2":
            key = each.get("identifier")
            test = parse(files[listed[key]]).find("assessment")
            settings = listed[each.find("dependency").get("identifierref")]
            assert (test.get("ident"), settings) == (key, f"{key}/assessment_meta.xml")
            found[test.get("title")] = parse(files[settings]), test.findall("section/item")
    return found


def shown(element):
    """Return the words of an element as Canvas shows them, but formulas in TeX."""
    said = element.find(".//mattext")
    if said.get("texttype") == "text/plain":
        return said.text
    picture = r'<img class="equation_image"[^>]+ src="/equation_images/([^"]+)"[^>]+>'
    text = re.sub(picture, lambda found: f"\\({html.escape(unquote(unquote(found[1])))}\\)", said.text)
    return html.unescape(re.sub("<[^>]+>", "", text))


def words(text):
    """Return the words of HTML as Moodle has it."""
    text = re.sub(r"\\\[\s*(.+?)\s*\\\]", r"\\(\1\\)", text, flags=re.S)
    return html.unescape(re.sub("<[^>]+>", "", re.sub(r"\\\(\s*(.+?)\s*\\\)", r"\\(\1\\)", text, flags=re.S)))


@pytest.mark.parametrize("name", ["votes", "pretest", "tests", "questions"])
def test_a_package_has_the_questions_for_moodle(banks, packages, name):
    ours, found = canvas.quizzes_of(banks[name]), quizzes(packages[name])
    assert [*found] == [*ours]
    for title, (settings, items) in found.items():
        assert settings.findtext("title") == title
        points = [item.findtext("itemmetadata/qtimetadata/qtimetadatafield[2]/fieldentry") for item in items]
        assert settings.findtext("points_possible") == str(sum(map(int, points)))
        for item, question, worth in zip(items, ours[title], points, strict=True):
            assert item.get("title") == question.findtext("name/text")
            assert worth == question.findtext("defaultgrade")
            assert shown(item.find("presentation/material")) == words(question.findtext("questiontext/text"))
            labels = item.findall("presentation//response_label[material]")
            answers = question.findall("answer")
            assert [*map(shown, labels)] == [words(each.findtext("text")) for each in answers]
            told = {each.get("ident"): shown(each) for each in item.findall("itemfeedback")}
            reasons = {"general_fb": question.findtext("generalfeedback/text")}
            keys = [label.get("ident") for label in labels]
            for key, answer in zip(keys, answers, strict=True):
                reasons[f"{key}_fb"] = answer.findtext("feedback/text")
            assert told == {key: words(text) for key, text in reasons.items() if text}
            rules = item.findall("resprocessing/respcondition")
            assert [each.find("displayfeedback").get("linkrefid") for each in rules[:-1]] == [*told]
            right = [key for key, each in zip(keys, answers, strict=True) if each.get("fraction") == "100"]
            assert [rules[-1].findtext("conditionvar/varequal")] == (right or [None])
            assert rules[-1].findtext("setvar") == ("100" if right else None)
            assert rules[-1].get("continue") == "No"


def test_no_student_sees_a_scheme_or_an_answer(packages):
    tests = b"".join(packages["tests"].values()).decode()
    assert "essay_question" in tests
    assert "itemfeedback" not in tests
    assert "Common wrong answers" not in tests
    shuffled = [each.findtext("shuffle_answers") for each, _ in quizzes(packages["pretest"]).values()]
    assert shuffled == ["true", "false"]  # of the pre-test the first answer is right


def test_a_picture_is_where_its_question_looks(packages):
    files = packages["votes"]
    texts = b"".join(each for name, each in files.items() if name.endswith(".xml")).decode()
    pictures = {name for name in files if name.startswith("images/")}
    assert pictures == {*re.findall('src="([^"/]+/[^"]+)"', html.unescape(texts))}
    assert len(pictures) == 2


def test_formulas_and_signs_reach_canvas():
    root = ElementTree.Element("root")
    canvas.say(root, "a", r"<p>\(a &lt; \tfrac{1}{2}\) &amp; so</p>")
    canvas.say(root, "b", "<p>2 &lt; 3</p>")
    canvas.say(root, "c", "<p>so</p><p>on</p>")
    [formula, sign, rest] = root.iter("mattext")
    assert formula.text == (
        r'<p><img class="equation_image" data-equation-content="a &lt; \tfrac{1}{2}" '
        'src="/equation_images/a%2520%253C%2520%255Ctfrac%257B1%257D%257B2%257D" '
        r'alt="LaTeX: a &lt; \tfrac{1}{2}"> &amp; so</p>'
    )
    assert (sign.text, sign.get("texttype")) == ("2 < 3", "text/plain")
    assert (rest.text, rest.get("texttype")) == ("<p>so</p><p>on</p>", "text/html")


def test_slashes_do_not_split_a_title():
    bank = ElementTree.Element("quiz")
    moodle.begin(bank, "Votes", "a/b")
    assert canvas.quizzes_of(bank) == {"Votes: a/b": []}
