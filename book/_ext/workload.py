"""What a plan asks of a student and of the staff, in hours and in credits."""

import re
from pathlib import Path

#: Hours of a student: for an assignment, and for each lesson to prepare for the exam.
ASSIGNMENT, PREPARE = 7, 2
#: Hours of the staff for what 60 students hand in: those of one person, and those that all share equally. For
#: each assignment, the grader, then written parts and conversations; for 20 pages of the challenge and 30
#: projects, reading and conversations; for 30 small ones, ten minutes each for plan, poster and conversation.
STAFF = {"assignment": (1, 9), "challenge": (0, 5), "project": (0, 33), "small": (0, 15)}
#: Hours of a lecturer for the exams of 60 students, 20 minutes each, and to run the grader in a week.
EXAMS, GRADER = 20, 0.25
#: In which weeks the project runs beside the course.
BESIDE = 6, 14
#: Hours of work that make a credit of the ECTS, at least and at most.
CREDIT = 25, 30
#: A step of the project, and its hours.
STEP_OF_PROJECT = re.compile(r"^\| ((?:week|two weeks|three weeks) .*?) \|.*\| (\d+) \|$", flags=re.M)
#: What its page says of a small one.
SMALL = re.compile(r"a small project takes (\d+) hours")


def load_of(plan):
    """Return a student's hours: in class, at home, to read each lecture's lesson again; and the credits.

    ``lecturer`` is what a lecturer without an assistant needs for 60 students: lectures, as long again to
    prepare each, and what is handed in.
    """
    rows = plan["rows"]
    found = {
        "class": round(len(rows) * (plan["meeting"] + plan["tutorial"]) / 60),
        "home": round(sum(row["minutes"] for row in rows) / 60),
        "again": round(sum(lesson["minutes"] for row in rows for lesson in row["lectured"]) / 60),
        "assigned": ASSIGNMENT * len(plan["assignments"]),
        "exam_hours": PREPARE * len(plan["taught"]),
    }
    total = sum(found.values())
    weeks = len(rows) / plan["a_week"]
    graded = staff(len(plan["assignments"]), challenge=plan["challenge"])[0]
    lecturer = round(2 * len(rows) * plan["meeting"] / 60 + weeks * GRADER + graded + EXAMS)
    return found | {"total": total, "credits": credits_of(total), "lecturer": lecturer}


def staff(assignments=0, *, challenge=False, project=False, small=False):
    """Return hours for what 60 students hand in: a lecturer's alone; with an assistant, of each of them."""
    own = assignments * STAFF["assignment"][0]
    shared = assignments * STAFF["assignment"][1]
    for name, taken in (("challenge", challenge), ("project", project), ("small", small)):
        own, shared = own + taken * STAFF[name][0], shared + taken * STAFF[name][1]
    return own + shared, own + shared / 2, shared / 2


def credits_of(hours):
    """Return how many credits of the ECTS hours are: 5.0 to 6.0."""
    return " to ".join(f"{hours / each:.1f}" for each in CREDIT[::-1])


def project_steps(root, *, small=False):
    """Return until when each step of the project is done, and its hours, as its page says."""
    page = Path(root, "book", "teach", "project.md").read_text(encoding="utf-8")
    if small:
        return [("", int(SMALL.search(page)[1]))]
    return [(when, int(hours)) for when, hours in STEP_OF_PROJECT.findall(page)]


def hours_with(plan, assignments, *, challenge=False, project=0):
    """Return a student's hours if so many assignments, the challenge, or a project of such hours count."""
    at_home = round(sum(minutes for row in plan["rows"] for *_, minutes in row["steps"]) / 60)
    lessons = plan["total"] - plan["assigned"] - at_home
    return lessons + ASSIGNMENT * assignments + at_home * challenge + project


def longer(plan, steps):
    """Return hours and credits with the project: without an exam; with one; and with assignments too.

    ``counts`` has hours and credits by what counts for the grade, without the challenge.
    """
    project = sum(hours for _, hours in steps)
    count = len(plan["assignments"])
    hours, both = hours_with(plan, 0, project=project), hours_with(plan, count, project=project)
    first, last = BESIDE
    rows = plan["rows"][(first - 1) * plan["a_week"] : last * plan["a_week"]]
    spent = len(rows) * (plan["meeting"] + plan["tutorial"])
    spent += sum(row["minutes"] - sum(minutes for *_, minutes in row["steps"]) for row in rows)
    spent += sum(lesson["minutes"] for row in rows for lesson in row["lectured"])
    beside = spent / 60 + sum(hours for when, hours in steps if when.startswith("week"))
    late = ASSIGNMENT * sum(to > first * plan["a_week"] for _, to in plan["assignments"].values())
    weeks_beside = last - first + 1
    counts = {"exam": hours_with(plan, 0)}
    if count:
        counts["assignments"] = hours_with(plan, count)
    if plan["challenge"] or plan["small"]:  # a term has time for the project, too; six weeks for a small one
        counts |= {"project": hours, "all": both}
    return {
        "counts": {name: (asked, credits_of(asked)) for name, asked in counts.items()},
        "project": project,
        "only": hours - plan["exam_hours"],
        "fewest": credits_of(hours - plan["exam_hours"]),
        "longer": hours,
        "more": credits_of(hours),
        "both": both,
        "most": credits_of(both),
        "alone": both - plan["class"],
        "weekly": round(beside / weeks_beside, 1),
        "weekly_both": round((beside + late) / weeks_beside, 1),
        "project_staff": staff(project=True)[0],
    }
