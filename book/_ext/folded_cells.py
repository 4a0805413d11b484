"""A folded cell bears one label, open or closed: what its code does. book/_tools/folding.py writes it."""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform


class Labels(SphinxPostTransform):
    """Show a cell's own label while it is open, too; MyST-NB has a second text for that."""

    default_priority = 190  # before MyST-NB folds the cells

    def run(self, **options):
        """Take the cells that are folded."""
        for cell in self.document.findall(nodes.container):
            if cell.get("hide_mode") and cell["cell_metadata"].get("mystnb", {}).get("code_prompt_show"):
                cell["prompt_hide"] = cell["prompt_show"]


def setup(app):
    """Register the extension."""
    app.add_post_transform(Labels)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
