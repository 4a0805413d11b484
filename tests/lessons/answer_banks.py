"""What is tested of each graded exercise: right answers pass, each wrong one gets its own mistake's hint."""

from types import MappingProxyType

import pytest

NONE = MappingProxyType({})
#: What a grader adds to the praise of an answer that is right and overwrites what it was given.
OVERWRITES = "But it changes what it was given: a caller may still need it."


def answer_test(grade, *, right=(), told=NONE, wrong=NONE, refused=()):
    """Return the test of a grader.

    Args:
        grade: Takes an answer, returns a verdict.
        right: Answers that must pass, by name; or functions, each under its own name.
        told: Answers that must pass with a remark, by this remark: one answer, or a list. No answer in
            ``right`` gets one of these remarks.
        wrong: Answers that must be refused, by a part of the hint that they must get: one answer, or a list.
        refused: Answers that must be refused, whatever the hint, given as those in ``right`` are.
    """
    cases = [(name, answer, True, "") for name, answer in _named(right)]
    cases += [("right, but told", answer, True, remark) for remark, answer in _each(told)]
    cases += [(hint, answer, False, hint) for hint, answer in _each(wrong)]
    cases += [(name, answer, False, "") for name, answer in _named(refused)]

    @pytest.mark.parametrize(
        ("answer", "passes", "words"), [pytest.param(*case, id=str(name)) for name, *case in cases]
    )
    def verdict_of(answer, passes, words):
        verdict = grade(answer)
        assert bool(verdict) == passes, verdict.says
        assert words in verdict.says, verdict.says
        remarks = [remark for remark in told if verdict.says.endswith(remark)]
        assert remarks == ([words] if passes and words else []), verdict.says

    return verdict_of


def bank_test(*banks):
    """Return the test that each hint of a bank is that of one wrong answer; a pair is a bank and answers."""

    def each_known_mistake_is_tried():
        for hint, tried in [(hint, tried) for bank, tried in banks for hint in bank]:
            assert sum(part in hint for part in tried) == 1, hint

    return each_known_mistake_is_tried


def _named(answers):
    return answers.items() if isinstance(answers, dict) else [(answer.__name__, answer) for answer in answers]


def _each(answers):
    for words, found in answers.items():
        yield from ((words, answer) for answer in (found if isinstance(found, list) else [found]))
