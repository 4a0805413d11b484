"""Wider sweeps: stacks with and without sum and norm, for more steps; both orders, by rate.

And a mixing matrix in place of attention, on the lesson's task and on one whose partner depends on the
content; gradients and positions over many starts; and smaller starting weights.
"""

import statistics

import torch
import torch.nn.functional as F
from torch import nn

from exformer import train
from exformer.training.schedules import linear_schedule
from exformer_lessons.trials import sweep

SEEDS = range(2)
ORDERS = {
    "pre-norm": ("before", 100),
    "pre-norm, no warm-up": ("before", 1),
    "post-norm": ("after", 100),
    "post-norm, no warm-up": ("after", 1),
}


@sweep("A19")
def budgets(build, learn, switches):
    """Return the accuracy of six layers for each seed, by switches, number of steps and learning rate."""
    names = ("neither", "only add", "only norm")
    return {name: accuracies(build, learn, {400: (1e-3, 3e-3)}, **switches[name]) for name in names}


@sweep("A19")
def longer(build, learn, switches):
    """Return it for the stacks without the sum."""
    names = ("neither", "only norm")
    return {name: accuracies(build, learn, {1200: (1e-3, 3e-3)}, **switches[name]) for name in names}


@sweep("C12")
def orders(build, learn):
    """Return the accuracy of six layers after 200 steps by order, warm-up and rate, for each seed."""
    tried, found = {200: (1e-3, 3e-3, 9e-3)}, {}
    for name, (norm, warmup) in ORDERS.items():
        found |= {name: accuracies(build, learn, tried, warmup=warmup, add=True, norm=norm)["200"]}
    return found


def accuracies(build, learn, tried, *, warmup=None, **on):
    """Return the accuracy for each seed, by number of steps and learning rate."""

    def right(draw, steps, peak):
        return learn(build(6, draw=draw, **on), steps=steps, warmup=warmup, peak=peak)[1]

    return {
        str(steps): {str(peak): [right(i, steps, peak) for i in SEEDS] for peak in peaks}
        for steps, peaks in tried.items()
    }


@sweep("A19")
def mixing(Mixing, build, learn, network_part, switches):  # noqa: N803
    """Return the accuracy of six layers with a mixing matrix, by switches and rate, for five seeds."""

    def right(name, peak, draw):
        return learn(build(6, draw=draw, parts=(Mixing, network_part), **switches[name]), peak=peak)[1]

    return {
        name: {str(peak): [right(name, peak, draw) for draw in range(5)] for peak in (2e-3, 6e-3, 18e-3)}
        for name in ("both", "only add")
    }


@sweep("A19")
def pairs(Mixing, attention_part, build, network_part, switches, WIDTH):  # noqa: N803
    """Return it where the partner has the same letter, anywhere among eight, by part, steps and rate."""

    def right(part, name, steps, peak, draw):
        stack = build(6, draw=draw, parts=(part, network_part), length=8, **switches[name])
        stack.digits = nn.Embedding(16, WIDTH)  # four letters, each with one of four digits
        adam = torch.optim.AdamW(stack.parameters(), fused=True, weight_decay=0.0)

        def rate(step):
            return linear_schedule(step, peak=peak, warmup=steps // 2, total=steps)

        how = {"loss_fn": pair_loss, "optimizer": adam, "schedule": rate, "clip_norm": 1.0}
        train(stack, (letter_pairs(32) for _ in range(steps)), **how)
        ids, answers = letter_pairs(2_000)
        with torch.no_grad():
            return (stack(ids).argmax(dim=-1) == answers).double().mean().item()

    ways = {
        "attention": (attention_part, "both", {300: (6e-3,)}),
        "mixing": (lambda: Mixing(8), "both", {300: (6e-3, 18e-3), 1200: (6e-3,)}),
        "mixing, no norm": (lambda: Mixing(8), "only add", {300: (6e-3, 18e-3), 1200: (6e-3,)}),
    }
    return {
        way: {
            str(steps): {str(peak): [right(part, on, steps, peak, i) for i in range(5)] for peak in peaks}
            for steps, peaks in tried.items()
        }
        for way, (part, on, tried) in ways.items()
    }


def letter_pairs(n):
    """Return strings of eight, each of four letters twice, in random order, with digits; and the answers."""
    letters = torch.arange(4).repeat(2)[torch.rand(n, 8).argsort(dim=-1)]
    digits = torch.randint(4, (n, 8))
    same = letters[:, :, None] == letters[:, None]  # itself and its partner
    return 4 * letters + digits, (same * digits[:, None]).sum(dim=-1) % 4


def pair_loss(stack, batch):
    """Return the cross-entropy of all answers."""
    return F.cross_entropy(stack(batch[0]).flatten(0, 1), batch[1].flatten())


@sweep("A05")
def starts(build, loss_of, switches):
    """Return the median, least and largest over 30 random initializations, by switches.

    They are those of the gradient at the first sublayer of 32 layers, divided by that of 2 layers, and of the
    part of a vector that is not common to all positions, after 6, 16 and 32 layers.
    """

    def gradient(stack):
        loss_of(stack, torch.randint(4, (16, 6))).backward()
        return torch.stack([p.grad.norm() for p in stack.sublayers[0].parameters()]).norm().item()

    @torch.no_grad()
    def own_shares(stack):
        x, shares = stack.digits(torch.randint(4, (64, 6))) + stack.places, []
        for sublayer in stack.sublayers:
            x = sublayer(x)
            own = x - x.mean(dim=1, keepdim=True)
            shares.append((own.norm() / x.norm()).item())
        return [shares[2 * n - 1] for n in (6, 16, 32)]

    def drawn(draw, smaller, on):
        lengths = []
        for n in (2, 32):
            stack = build(n, draw=draw, **on).double()
            lengths.append(gradient(smaller_start(stack) if smaller else stack))
        return [lengths[1] / lengths[0], *own_shares(stack)]

    ways = {name: (False, on) for name, on in switches.items()}
    ways["only add, smaller start"] = (True, switches["only add"])
    found = {}
    for name, (smaller, on) in ways.items():
        columns = zip(*(drawn(i, smaller, on) for i in range(30)), strict=True)
        summaries = [[statistics.median(x), min(x), max(x)] for x in map(list, columns)]
        found[name] = dict(zip(("gradient", "own 6", "own 16", "own 32"), summaries, strict=True))
    return found


def smaller_start(stack):
    """Divide the last matrix of each sublayer by the root of their number."""
    with torch.no_grad():
        for step in stack.sublayers:
            last = getattr(step.sublayer, "w_o", None) or step.sublayer.w_2
            last.weight /= len(stack.sublayers) ** 0.5
    return stack


@sweep("A19")
def left_out(attention_part, build, learn, switches):
    """Return the accuracy of six layers for five seeds, by what is left out, steps and learning rate."""

    def right(draw, steps, peak, smaller, on):
        stack = build(6, draw=draw, **on)
        return learn(smaller_start(stack) if smaller else stack, steps=steps, peak=peak)[1]

    three = {"parts": 3 * (attention_part,), **switches["both"]}
    one = {"parts": (attention_part,), **switches["both"]}
    ways = {
        "no norm": (400, (2e-3, 3e-3), False, switches["only add"]),
        "no norm, smaller start": (100, (6e-3,), True, switches["only add"]),
        "attention for the network, smaller start": (100, (6e-3,), True, three),
        "no network, nothing in its place": (100, (6e-3, 12e-3), False, one),
    }
    return {
        name: {
            str(steps): {
                str(peak): [right(draw, steps, peak, smaller, on) for draw in range(5)] for peak in peaks
            }
        }
        for name, (steps, peaks, smaller, on) in ways.items()
    }


@sweep("A19")
def by_depth(
    MultiHeadAttention,  # noqa: N803
    SDPBackend,  # noqa: N803
    Stack,  # noqa: N803
    WIDTH,  # noqa: N803
    all_strings,
    attention_part,
    loss_of,
    mirror_sum,
    network_part,
    sdpa_kernel,
    set_seed,
    switches,
):
    """Return the accuracy of all stacks at the same four rates for five seeds, by stack, layers and rate.

    The twenty trainings of a stack run side by side; each takes the steps that `learn` takes. The last two
    stacks have six layers, the norm alone and 300 steps; in one of them only the first attention looks at
    other positions.
    """
    rates, seeds, tests = (2e-4, 7e-4, 2e-3, 6e-3), range(5), all_strings()[::5]

    class Compared(MultiHeadAttention):
        def forward(self, x):
            even = F.layer_norm(x, (WIDTH,))
            return super().forward(even, even, x)

    class Alone(MultiHeadAttention):
        def forward(self, x):
            return super().forward(x, x, x, mask=torch.eye(x.size(1)).bool())

    def side_by_side(make, steps):
        stacks, batches = [], []
        for seed in seeds:
            set_seed(seed)
            stack = make()
            stacks += [stack for _ in rates]
            batches += [torch.randint(4, (steps, 32, 6))] * len(rates)
        weights, _ = torch.func.stack_module_state(stacks)
        weights = {name: each.detach() for name, each in weights.items()}
        mean, square = ({name: torch.zeros_like(each) for name, each in weights.items()} for _ in "ab")

        def answers(weights, ids):
            return torch.func.functional_call(stacks[0], weights, (ids,))

        def loss(weights, ids):
            return loss_of(lambda ids: answers(weights, ids), ids)

        slope = torch.func.vmap(torch.func.grad(loss))
        for step, ids in enumerate(zip(*batches, strict=True), 1):
            with sdpa_kernel(SDPBackend.MATH):  # the kernel that runs side by side
                slopes = slope(weights, torch.stack(ids))
            norms = sum(each.flatten(1).square().sum(dim=1) for each in slopes.values()).sqrt()
            kept = (1 / (norms + 1e-6)).clamp(max=1)
            now = linear_schedule(step, peak=1.0, warmup=steps // 2, total=steps)
            now = now * torch.tensor(rates).repeat(len(seeds))
            for name, each in weights.items():  # AdamW without decay
                shape = (-1, *[1] * (each.dim() - 1))
                clipped = slopes[name] * kept.view(shape)
                mean[name] = 0.9 * mean[name] + 0.1 * clipped
                square[name] = 0.999 * square[name] + 0.001 * clipped**2
                spread = (square[name] / (1 - 0.999**step)).sqrt() + 1e-8
                each -= now.view(shape) * mean[name] / (1 - 0.9**step) / spread
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            right = torch.func.vmap(lambda weights: answers(weights, tests).argmax(dim=-1))(weights)
        right = (right == mirror_sum(tests)).float().mean(dim=(1, 2)).view(len(seeds), len(rates))
        return {str(rate): right[:, i].tolist() for i, rate in enumerate(rates)}

    def layers(n, parts, **on):
        return lambda: Stack(n, parts=parts, **on)

    usual, alone = (attention_part, network_part), (lambda: Alone(WIDTH, n_heads=2), network_part)
    compared = (lambda: Compared(WIDTH, n_heads=2), network_part)
    found = {}
    for n in (2, 6, 12):
        ways = {name: layers(n, usual, **on) for name, on in switches.items()}
        if n > 2:
            ways["only add, comparisons normalized"] = layers(n, compared, **switches["only add"])
            ways["only add, smaller start"] = lambda n=n: smaller_start(
                Stack(n, parts=usual, **switches["only add"])
            )
        for name, make in ways.items():
            found.setdefault(name, {})[str(n)] = side_by_side(make, steps=100)
    for name, rest in {"all attend": usual, "the first attends": alone}.items():
        make = layers(1, usual + 5 * rest, **switches["only norm"])
        found[f"only norm, {name}"] = {"6": side_by_side(make, steps=300)}
    return found
