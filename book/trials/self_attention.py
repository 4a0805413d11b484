"""A wider sweep of lesson 03: attention with and without the division by √d_k."""

from exformer.lessons.trials import sweep

WIDTHS = (4, 256)
RATES = (0.001, 0.003, 0.01, 0.03, 0.09)


@sweep("A15")
def rates(mean_learned, ways):
    """Give, for each way and width, the rate with the highest mean accuracy of three starts, and it."""
    found = {}
    for way in ways:
        found[way] = {}
        for d_k in WIDTHS:
            accuracy, rate = max((mean_learned(way, d_k, rate), rate) for rate in RATES)
            found[way][str(d_k)] = [rate, accuracy]
    return found
