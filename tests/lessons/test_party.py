"""The party of lesson 03: one ring of guests, vectors with entries of variance 1, and the training."""

import pytest
import torch
from torch import nn

from exformer_lessons.self_attention import party


class Oracle(nn.Module):
    """Guests who look up the friend's name among the badges."""

    def forward(self, badges):
        name, friend, drink = badges.unbind(dim=-1)
        found = (friend[:, :, None] == name[:, None, :]).long().argmax(dim=-1)
        return nn.functional.one_hot(drink.gather(1, found), party.N_DRINKS)


class Alone(party.Badges):
    """Guests who know only their own badge."""

    def forward(self, badges):
        return self.answer(self.embed(badges))


@pytest.mark.parametrize("n", [3, 16, 26])
def test_the_guests_of_a_party_form_one_ring(n):
    badges, drinks = party.new_party(20, n)
    assert badges.shape == (20, n, 3)
    assert drinks.shape == (20, n)
    for badge in badges.tolist():
        friends = {name: friend for name, friend, _ in badge}
        assert len(friends) == n
        seen, name = set(), badge[0][0]
        while name not in seen:
            seen.add(name)
            name = friends[name]
        assert seen == set(friends)


def test_accuracy_counts_the_drink_of_the_friend():
    assert party.accuracy(Oracle(), 16) == 1
    assert party.accuracy(Alone(), 16) == pytest.approx(1 / party.N_DRINKS, abs=0.03)


def test_vectors_and_projections_have_entries_of_variance_one():
    torch.manual_seed(0)
    badges, _ = party.new_party(500, 16)
    vectors = torch.stack([party.Badges().embed(badges) for _ in range(20)])
    assert vectors.var().item() == pytest.approx(1, abs=0.1)
    projected = party.projection(32, 1024)(torch.randn(200, 32))
    assert projected.var().item() == pytest.approx(1, abs=0.1)


def test_a_training_can_be_repeated():
    first, again, other = (party.learn(Alone, steps=10, seed=seed) for seed in (1, 1, 2))
    assert not first.training
    assert torch.equal(first.answer.weight, again.answer.weight)
    assert not torch.equal(first.answer.weight, other.answer.weight)
