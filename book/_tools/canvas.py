"""Write the questions of ``moodle.py`` for Canvas, to import as *QTI .zip file*, to _build/canvas.

    python book/_tools/canvas.py [05 …]      # of all lessons, or of those named

A file is a package of QTI 1.2, as Canvas exports its classic quizzes, with a practice quiz for each category
of questions. Essays lack their schemes, which Canvas would show to students. Formulas are pictures that
Canvas draws, as its editor makes them, because not every Canvas reads TeX in a text.
"""

import base64
import html
import re
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from moodle import ROOT, make_banks

FOLDER = ROOT / "_build" / "canvas"
QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
PACKAGE = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
CANVAS = "http://canvas.instructure.com/xsd/cccv1p0"
SETTINGS = "associatedcontent/imscc_xmlv1p1/learning-application-resource"
KINDS = {"multichoice": "multiple_choice_question", "essay": "essay_question"}
#: TeX in HTML, and words that need no HTML.
FORMULA = re.compile(r"\\[([](.+?)\\[)\]]", flags=re.S)
PLAIN = re.compile(r"(?:<p>)?([^<]*)(?:</p>)?")


def put(parent, path, text=None, **attributes):
    """Add an element, and those of the path before it, and return it."""
    for tag in path.split("/"):
        parent = ElementTree.SubElement(parent, tag)
    parent.attrib.update(attributes)
    parent.text = text
    return parent


def drawn(formula):
    """Return TeX as a picture that Canvas draws."""
    tex = html.unescape(formula[1]).strip()
    told, path = html.escape(tex), quote(quote(tex, safe=""), safe="")
    kind = f'class="equation_image" data-equation-content="{told}"'
    return f'<img {kind} src="/equation_images/{path}" alt="LaTeX: {told}">'


def say(parent, path, words):
    """Add words in HTML, or as they are if there is no tag, where Canvas would show an entity."""
    words = FORMULA.sub(drawn, words)
    plain = PLAIN.fullmatch(words)
    text = html.unescape(plain[1]) if plain else words
    put(parent, f"{path}/mattext", text, texttype="text/plain" if plain else "text/html")


def judge(parent, answer="", feedback="", points=""):
    """Say what an answer, or any, shows, or what it earns, which is said last."""
    made = put(parent, "respcondition", **{"continue": "Yes" if feedback else "No"})
    if answer:
        put(made, "conditionvar/varequal", answer, respident="response1")
    else:
        put(made, "conditionvar/other")
    if points:
        put(made, "setvar", points, action="Set", varname="SCORE")
    if feedback:
        put(made, "displayfeedback", feedbacktype="Response", linkrefid=feedback)


def add_item(section, key, question):
    """Add a question of Moodle's XML to a section of QTI."""
    item = put(section, "item", ident=key, title=question.findtext("name/text"))
    kind, points = KINDS[question.get("type")], question.findtext("defaultgrade")
    metadata = put(item, "itemmetadata/qtimetadata")
    for label, entry in {"question_type": kind, "points_possible": points}.items():
        field = put(metadata, "qtimetadatafield")
        put(field, "fieldlabel", label)
        put(field, "fieldentry", entry)
    shown, judged = put(item, "presentation"), put(item, "resprocessing")
    text = question.findtext("questiontext/text").replace("@@PLUGINFILE@@", "images")
    say(shown, "material", f"<div>{text}</div>")
    answers = {f"{key}_{number}": each for number, each in enumerate(question.findall("answer"), 1)}
    if answers:
        response = put(shown, "response_lid", ident="response1", rcardinality="Single")
        choices = put(response, "render_choice")
    else:
        response = put(shown, "response_str", ident="response1", rcardinality="Single")
        put(response, "render_fib/response_label", ident="answer1", rshuffle="No")
    for answer, each in answers.items():
        say(put(choices, "response_label", ident=answer), "material", each.findtext("text"))
    put(judged, "outcomes/decvar", maxvalue="100", minvalue="0", varname="SCORE", vartype="Decimal")
    told = {"": question.findtext("generalfeedback/text")}
    told |= {answer: each.findtext("feedback/text") for answer, each in answers.items()}
    for answer, words in told.items():
        if words:
            feedback = f"{answer or 'general'}_fb"
            judge(judged, answer, feedback)
            say(put(item, "itemfeedback", ident=feedback), "flow_mat/material", words)
    right = [answer for answer, each in answers.items() if each.get("fraction") == "100"]
    judge(judged, *right, points="100" if right else "")


def quizzes_of(bank):
    """Return the questions of each category of Moodle's XML, by its name."""
    found = {}
    for each in bank:
        if each.get("type") == "category":
            _, _, *names = re.split("(?<!/)/(?!/)", each.findtext("category/text"))
            own = found[": ".join(names).replace("//", "/")] = []
        else:
            own.append(each)
    return found


def add_file(manifest, files, name, content, **resource):
    """Add a file to a package, and return its resource."""
    files[name] = content
    made = put(manifest.find("resources"), "resource", **resource)
    put(made, "file", href=name)
    return made


def add_quiz(manifest, files, title, questions):
    """Add a quiz with its pictures and settings to a package."""
    key = re.sub(r"\W+", "_", f"exformer {title}".lower())
    root = ElementTree.Element("questestinterop", xmlns=QTI)
    section = put(put(root, "assessment", ident=key, title=title), "section", ident="root_section")
    for number, question in enumerate(questions, 1):
        add_item(section, f"{key}_{number}", question)
        for file in question.iter("file"):
            name, picture = f"images/{file.get('name')}", base64.b64decode(file.text)
            told = {"identifier": f"{key}_{number}_picture", "type": "webcontent", "href": name}
            add_file(manifest, files, name, picture, **told)
    content = ElementTree.tostring(root)
    made = add_file(manifest, files, f"{key}/{key}.xml", content, identifier=key, type="imsqti_xmlv1p2")
    put(made, "dependency", identifierref=f"{key}_settings")
    quiz = ElementTree.Element("quiz", identifier=key, xmlns=CANVAS)
    shuffled = {question.findtext("shuffleanswers") for question in questions} == {"true"}
    points = sum(int(question.findtext("defaultgrade")) for question in questions)
    put(quiz, "title", title)
    put(quiz, "quiz_type", "practice_quiz")
    put(quiz, "shuffle_answers", str(shuffled).lower())
    put(quiz, "points_possible", str(points))
    name = f"{key}/assessment_meta.xml"
    told = {"identifier": f"{key}_settings", "type": SETTINGS, "href": name}
    add_file(manifest, files, name, ElementTree.tostring(quiz), **told)


def main(names, folder=FOLDER):
    """Write the questions of the named lessons, or of all, and say how many there are."""
    folder, counts = Path(folder), []
    folder.mkdir(parents=True, exist_ok=True)
    for bank_name, bank in make_banks(names).items():
        manifest = ElementTree.Element("manifest", identifier=f"exformer_{bank_name}", xmlns=PACKAGE)
        put(manifest, "metadata/schema", "IMS Content")
        put(manifest.find("metadata"), "schemaversion", "1.1.3")
        put(manifest, "organizations")
        put(manifest, "resources")
        files, quizzes = {}, quizzes_of(bank)
        for title, questions in quizzes.items():
            add_quiz(manifest, files, title, questions)
        files["imsmanifest.xml"] = ElementTree.tostring(manifest)
        with zipfile.ZipFile(folder / f"{bank_name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        counts.append(f"{sum(map(len, quizzes.values()))} in {bank_name}.zip")
    return ", ".join([*counts, f"in {folder}"])


if __name__ == "__main__":
    print(main(sys.argv[1:]))
