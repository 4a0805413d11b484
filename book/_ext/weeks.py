"""The plans of ``book/courses.yml`` on a page.

Directive ``{weeks} key`` is a plan's table, folded but for ``{weeks} key open``, ``{weeks} key short`` a
list of topics, ``{work}`` a table of hours, ``{plans}`` a table of all plans, ``{told}`` what a class
hears in place of a lesson, and ``{bundles} key`` a table of what may count, by ``book/bundles.yml``.
Role ``{workload}`total key``` says what hours a plan takes, ``{workload}`longer key``` with
``book/teach/project.md`` in place of challenge and assignments.
"""

from pathlib import Path

from course import HTML, Directive
from docutils import nodes
from ledger import raw
from plans import bundles, overview, planned, told_in_place, work
from sphinx.util.docutils import SphinxRole


class Made(Directive):
    """What depends on the plans, the notes, the exams and the bank."""

    def note(self):
        """Say that the page changes with them."""
        super().note()
        teach = Path(self.env.srcdir, "book", "teach")
        more = [teach / "project.md", teach / "exams.yml", teach.parent / "bundles.yml"]
        for path in (*more, *teach.glob("*/*.yml"), *teach.glob("lessons/*.md")):
            self.env.note_dependency(str(path))


class Weeks(Made):
    """A plan, week by week."""

    required_arguments = 1
    optional_arguments = 1

    def run(self):
        """Return a table, or a list of topics."""
        self.note()
        try:
            plan = planned(self.env.srcdir, self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from error
        kind = "".join(self.arguments[1:])
        if kind not in ("", "open", "short"):
            raise self.error(f"expected a plan, and open or short, got {kind!r}")
        return [raw(HTML.topics(plan) if kind == "short" else HTML.weeks(plan, kind))]


class Plans(Made):
    """All plans by course."""

    def run(self):
        """Return a table."""
        self.note()
        return [raw(HTML.plans(overview(self.env.srcdir)))]


class Work(Made):
    """What all plans ask of a student."""

    def run(self):
        """Return a table."""
        self.note()
        return [raw(HTML.work(work(self.env.srcdir)))]


class Told(Made):
    """What a class is told in place of a lesson."""

    def run(self):
        """Return a list."""
        self.note()
        return [raw(HTML.told(told_in_place(self.env.srcdir)))]


class Bundles(Made):
    """What may count in a course, and what that costs."""

    required_arguments = 1

    def run(self):
        """Return a table."""
        self.note()
        return [raw(HTML.bundles(*bundles(self.env.srcdir, self.arguments[0])))]


class Workload(SphinxRole):
    """``{workload}`home today-14-90```: hours at home, in class, again, in total; credits.

    ``project`` is what the project takes, ``longer`` the hours with it, and ``more`` their credits; ``both``
    and ``most`` are those with assignments too, ``alone`` without the class; ``weekly`` is a week of it.
    ``lecturer`` is what the whole course takes a lecturer without an assistant.
    """

    def run(self):
        """Return the number."""
        kind, _, key = self.text.partition(" ")
        try:
            found = planned(self.env.srcdir, key)[kind]
            return [nodes.Text(f"{found:g}" if isinstance(found, float) else str(found))], []
        except (KeyError, ValueError) as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


def setup(app):
    """Register the extension."""
    app.add_directive("weeks", Weeks)
    app.add_directive("plans", Plans)
    app.add_directive("told", Told)
    app.add_directive("work", Work)
    app.add_directive("bundles", Bundles)
    app.add_role("workload", Workload())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
