"""The news: articles and summaries by hand, held-out combinations, facts left out, verdicts on facts."""

import re
from dataclasses import asdict, replace
from operator import eq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exformer.corpora import news
from exformer.corpora.news.lexicon import DAYS, NUMBERS, TOWNS, events, persons
from exformer.corpora.news.writing import ENDINGS, OPENINGS, fill, leave_out

FACTS = news.Facts("Ada Ricci", "sold", "mill", "Pisa", "Monday", "30")
ARTICLE = (
    "Ada Ricci sold the mill in Pisa . it was on Monday . 30 people came . "
    "rain is expected for Friday . Hugo Conti was not there ."
)
REPORT = news.Report(ARTICLE, "in Pisa Ada Ricci sold the mill on Monday before 30 people .", FACTS)


def test_a_summary_by_hand():
    assert news.summarize(FACTS) == REPORT.summary
    assert news.summarize(leave_out(FACTS, ["day"])) == "in Pisa Ada Ricci sold the mill before 30 people ."
    assert news.summarize(leave_out(FACTS, ["day", "people"])) == "in Pisa Ada Ricci sold the mill ."


@pytest.mark.parametrize(
    ("template", "words", "text"),
    [
        ("it was [on {day}] .", {"day": "Monday"}, "it was on Monday ."),
        ("it was [on {day}] .", {"day": ""}, "it was ."),
        ("[that {day}] {a} came .", {"day": "", "a": "Ada"}, "Ada came ."),
        ("it was on {day} .", {"day": ""}, ""),
        ("[that {day} and] {a} came .", {"day": "Monday", "a": ""}, ""),
    ],
)
def test_places_that_are_empty(template, words, text):
    assert fill(template, words) == text


@given(st.integers(0, 10**6))
def test_summaries_say_only_facts_of_the_article(seed):
    for held_out in (True, False):
        (report,) = news.sample(1, seed=seed, held_out=held_out)
        assert news.stated(report.summary) == asdict(report.facts)
        assert set(news.judge(report.summary, report).values()) == {"right"}
        words = report.article.split()
        for fact in asdict(report.facts).values():
            assert set(fact.split()) <= set(words)
        assert f"{report.facts.person} " in report.article
        assert f"{report.facts.people} people " in report.article


def test_an_article_cannot_be_guessed_from_its_first_sentence():
    reports = news.sample(500, seed=1)
    for kind in ("person", "town", "day", "people"):
        first = [asdict(r.facts)[kind] in news.first_sentence(r.article) for r in reports]
        assert kind == "town" or 0.1 < sum(first) / len(first) < 0.9, kind
    # a day that is not the day of the event, and so for towns and numbers
    for words, kind in ((DAYS, "day"), (TOWNS, "town"), (NUMBERS, "people")):
        others = [set(r.article.split()) & set(words) - {asdict(r.facts)[kind]} for r in reports]
        assert sum(map(bool, others)) > 100, kind


def test_texts_are_filled_and_spaced():
    for report in news.sample(300, seed=2):
        for text in (report.article, report.summary):
            assert text == " ".join(text.split())
            assert not set("{}[]") & set(text)
            assert text.endswith(" .")


def test_split_holds_persons_and_events_out_and_no_words():
    data = news.split(4000, n_test=400, seed=3)
    people = {side: {r.facts.person for r in getattr(data, side)} for side in ("train", "test")}
    deeds = {side: {(r.facts.verb, r.facts.thing) for r in getattr(data, side)} for side in ("train", "test")}
    assert not people["train"] & people["test"]
    assert not deeds["train"] & deeds["test"]
    train = " ".join(r.article for r in data.train)
    assert not [person for person in people["test"] if person in train]  # nor in an aside
    known = set(train.split())
    assert {w for r in data.test for w in f"{r.article} {r.summary}".split()} <= known | {"before"}


def test_the_two_sides_are_all_combinations():
    assert not set(persons(held_out=True)) & set(persons(held_out=False))
    assert len(persons(held_out=True)) + len(persons(held_out=False)) == 20 * 24
    assert len(events(held_out=True)) + len(events(held_out=False)) == 10 * 12


def test_seeds_and_repeats():
    assert news.sample(50, seed=5) == news.sample(50, seed=5)
    assert news.sample(50, seed=5) != news.sample(50, seed=6)
    found = news.sample(2000, seed=5)
    assert len({report.article for report in found}) == 2000


def test_no_test_article_is_a_training_article_with_other_names():
    firsts = [news.split(1, n_test=1, seed=seed) for seed in range(100)]
    train, test = ([getattr(each, side)[0].facts.town for each in firsts] for side in ("train", "test"))
    for step in range(100):  # from one seed to the other: no training set has a twin, whatever its seed
        same = sum(map(eq, test, train[step:] + train[:step]))
        assert same < 20, step  # 5 by chance


def test_persons_of_an_article_share_no_name():
    names = {
        name for held_out in (True, False) for person in persons(held_out=held_out) for name in person.split()
    }
    for report in news.sample(500, seed=3):
        first, last = report.facts.person.split()
        others = names & set(report.article.split()) - {first, last}
        assert len(others) in (0, 2), report.article


@pytest.mark.parametrize("omit", [["day"], ["people"], ["day", "people"]])
def test_a_fact_left_out_is_gone_and_all_else_stays(omit):
    whole, less = (news.sample(200, seed=7, omit=out) for out in ((), omit))
    for full, report in zip(whole, less, strict=True):
        expected = {k: "" if k in omit else v for k, v in asdict(full.facts).items()}
        assert asdict(report.facts) == expected
        gone = [asdict(full.facts)[kind] for kind in omit]
        allowed = re.sub(r"\d+ people (live|from)|(on|for) \w+day( it was seen| \.)", "", report.article)
        assert not [word for word in gone if word in allowed.split() and "seen" not in full.article]
        assert not set(report.article.split()) - set(full.article.split())


def test_what_cannot_be_left_out_is_refused():
    with pytest.raises(
        ValueError, match=r"only day and people can be left out of an article, got \['town'\]"
    ):
        news.sample(1, seed=0, omit=["town"])


@pytest.mark.parametrize("n", [0, 100_001])
def test_numbers_of_articles_are_checked(n):
    with pytest.raises(ValueError, match=f"n must lie from 1 to 100,000, got {n}"):
        news.sample(n, seed=0)


@pytest.mark.parametrize(
    ("summary", "wrong"),
    [
        ("in Pisa Ada Ricci sold the mill on Monday before 30 people .", {}),
        ("in Pisa Ada Ricci sold the mill .", {"day": "missing", "people": "missing"}),
        ("in Pisa Ada Ricci sold the mill on Friday before 30 people .", {"day": "mistaken"}),
        ("in Pisa Ada Ricci sold the mill on Sunday before 31 people .",
         {"day": "invented", "people": "invented"}),
        ("in Oslo Hugo Conti sold the mill on Monday before 30 people .",
         {"town": "invented", "person": "mistaken"}),
        ("in Pisa Ada Conti moved the tower on Monday before 30 people .",
         {"person": "invented", "verb": "invented", "thing": "invented"}),
        ("in Pisa Ricci Ada sold the mill on Monday before 30 people .", {"person": "invented"}),
        ("", dict.fromkeys(asdict(FACTS), "missing")),
    ],
)  # fmt: skip
def test_verdicts_by_hand(summary, wrong):
    assert news.judge(summary, REPORT) == dict.fromkeys(asdict(FACTS), "right") | wrong


def test_omitted_fact_must_stay_out():
    article = ARTICLE.replace(" it was on Monday .", "")
    report = news.Report(article, "", leave_out(FACTS, ["day"]))
    assert news.judge("in Pisa Ada Ricci sold the mill .", report)["day"] == "right"
    assert news.judge("Ada Ricci sold the mill on Friday .", report)["day"] == "mistaken"
    assert news.judge("Ada Ricci sold the mill on Sunday .", report)["day"] == "invented"


def test_first_sentence():
    assert news.first_sentence(ARTICLE) == "Ada Ricci sold the mill in Pisa ."
    with pytest.raises(ValueError, match=r"expected sentences that end in ' \.', got 'Ada came'"):
        news.first_sentence("Ada came")


def test_the_verb_is_said_once():
    assert not [ending for ending in ENDINGS if "{verb}" in ending]
    assert all("".join(opening).count("{verb}") == 1 for opening in OPENINGS)


def test_a_part_of_a_word_of_the_article_is_no_word_of_it():
    report = news.Report(ARTICLE.replace("rain is", "300 mm of rain are"), "", replace(FACTS, people="45"))
    report = replace(report, article=report.article.replace(" 30 people", " 45 people"))
    assert news.judge("in Pisa Ada Ricci sold the mill before 30 people .", report)["people"] == "invented"


def test_sentences_are_unique_in_free_order():
    third, n_sentences = set(), set()
    for report in news.sample(300, seed=4):
        said = report.article.split(" .")[:-1]
        assert len(set(said)) == len(said)
        n_sentences.add(len(said))
        third.add("people came" in said[2])
        assert any(report.facts.person in sentence for sentence in said[:2])
    assert (n_sentences, third) == ({6, 7}, {False, True})


def test_who_is_from_elsewhere_has_the_last_name_of_the_person():
    found = [re.search(r"(\w+) is a \w+ from", report.article) for report in news.sample(100, seed=4)]
    reports = news.sample(100, seed=4)
    assert sum(map(bool, found)) > 10
    assert all(each[1] == r.facts.person.split()[1] for each, r in zip(found, reports, strict=True) if each)


def test_the_sets_of_a_split_are_the_samples_of_both_sides():
    data = news.split(5, n_test=4, seed=3)
    assert data.train == news.sample(5, seed=3) == news.sample(5, seed=3, held_out=False)
    assert data.test == news.sample(4, seed=3, held_out=True)
