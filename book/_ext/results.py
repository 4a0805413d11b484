"""The pages of results, made from what the benchmarks wrote: bench/results/*.json, cards of shipped models.

Directives: ``{results-samples}`` shows what the models write, ``{results-summary}`` how good they are, in
four rows. ``{results-targets}`` compares targets and measurements, ``{results-agreement}`` the library with
PyTorch and Hugging Face. ``{results-models}`` and ``{results-curves}`` (with ``translation`` or
``shakespeare``) show trained models, ``{results-steps}`` (``encoder-decoder`` or ``gpt``),
``{results-writing}``, ``{results-byte-pairs}`` and ``{results-nanogpt}`` the races, ``{results-board}`` the
CPU-minute board.
"""

import results_samples as top
import results_tables as tables
from docutils import nodes
from results_curves import curves
from results_data import read_results
from sphinx.util.docutils import SphinxDirective

SHOWS = {
    "results-samples": top.samples,
    "results-summary": top.summary,
    "results-targets": tables.targets,
    "results-models": tables.models,
    "results-curves": curves,
    "results-steps": tables.steps,
    "results-writing": tables.writing,
    "results-byte-pairs": tables.byte_pairs,
    "results-nanogpt": tables.nano_gpt,
    "results-board": tables.board,
    "results-agreement": tables.agreement,
}


class Show(SphinxDirective):
    """One table or figure; its name says which."""

    optional_arguments = 1

    def run(self):
        """Return it as HTML."""
        kept = self.env.temp_data  # of this page: its tables read and check the files once
        if "results" not in kept:
            kept["results"] = read_results(self.env.srcdir)
            for path in kept["results"].paths:
                if path.is_file():
                    self.env.note_dependency(str(path))
        text = SHOWS[self.name](kept["results"], *self.arguments)
        return [nodes.raw("", str(text), format="html")] if text else []


def setup(app):
    """Register the extension."""
    for name in SHOWS:
        app.add_directive(name, Show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
