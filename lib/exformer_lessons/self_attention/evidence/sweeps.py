"""Wider sweeps: attention with and without the division by √d_k; a network in its place."""

from exformer_lessons.trials import sweep

WIDTHS = (4, 256)
RATES = (0.001, 0.003, 0.01, 0.03, 0.09)
FINE_RATES = (0.0018, 0.0033, 0.006, 0.01, 0.018)


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


@sweep("A15")
def finer(learned, ways):
    """Give at width 256, by way and rate, the mean accuracy of three starts, for each of five seeds."""

    def mean(way, rate, seed):
        return sum(learned(way, 256, rate, 100 * seed + start) for start in range(3)) / 3

    return {
        way: {str(rate): [mean(way, rate, seed) for seed in range(5)] for rate in FINE_RATES} for way in ways
    }


@sweep("C04")
def networks(Mixing, accuracy, learn, network):  # noqa: N803
    """Give the accuracy of a network after fixed weights, by rate, for each of ten seeds."""

    def right(rate, seed):
        return accuracy(learn(lambda: Mixing(network()), rate, start=100 * seed))

    return {str(rate): [right(rate, seed) for seed in range(10)] for rate in (0.003, 0.01, 0.03)}
