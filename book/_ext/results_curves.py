"""The validation loss of the shipped models during training: one figure per task."""

import html
import io

from book_page import inlined
from results_data import LOSS, bits_per_nat


def histories(results, kind):
    """Return {recipe: (processor minutes, losses, loss of the finished model)}."""
    found = {}
    for recipe in results.asked["models"][kind]:
        for card in results.cards.values():
            lines = card.get("history", [])
            if card.get("recipe", {}).get("name") == recipe and len(lines) > 1 and recipe not in found:
                scale = bits_per_nat(card["scores"]) or 1
                minutes = [line["processor_seconds"] / 60 for line in lines]
                losses = [scale * line["validation_loss"] for line in lines]
                found[recipe] = minutes, losses, scale * card["scores"][LOSS]
    return found


def describe(found, unit):
    """Return the alternative text of the figure."""
    lines = [
        f"{recipe} falls from {losses[0]:.2f} to {losses[-1]:.2f} {unit} in "
        f"{minutes[-1]:.1f} processor minutes, and the finished model has {last:.2f}"
        for recipe, (minutes, losses, last) in found.items()
    ]
    return f"Validation loss against processor minutes of training. {'; '.join(lines)}."


def draw(found, unit):
    """Return the figure as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from exformer_lessons.figures import PALETTE, label_ends, use_book_style

    with mpl.rc_context():
        use_book_style()
        figure = Figure(figsize=(4.7, 3.2))
        ax, ends = figure.add_subplot(), []
        for color, (recipe, (minutes, losses, last)) in zip(PALETTE, found.items(), strict=False):
            ax.plot(minutes, losses, color=color)
            ax.scatter(
                [minutes[-1]], [last], s=36, edgecolors=color, facecolors="none", zorder=3, clip_on=False
            )
            ends.append((recipe, minutes[-1], losses[-1]))
        ax.set(title="Validation loss while training", xlabel="processor minutes", ylabel=unit)
        ax.set_xlim(left=0)
        label_ends(ax, ends)
        file = io.StringIO()
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = file.getvalue()
    return text[text.index("<svg") :]


def curves(results, kind):
    """The figure with its words; a sentence where no such model is shipped."""
    found = histories(results, kind)
    if not found:
        return '<p class="results-missing">No trained model of this kind comes with the library yet.</p>'
    unit = "nats per token" if kind == "translation" else "bits per byte"
    svg = inlined(draw(found, unit), prefix=f"curve-{kind}-", alt=describe(found, unit))
    names = " and ".join(f"<code>exformer train {html.escape(name)}</code>" for name in found)
    alone = " The minutes are those of these trainings, without their teachers'." * (kind == "translation")
    return f'<figure class="results">{svg}<p class="made">From the log of {names}.{alone}</p></figure>'
