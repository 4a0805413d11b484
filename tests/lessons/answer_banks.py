"""What is tested of each graded exercise: right answers pass, each wrong one gets its own mistake's hint."""

from types import MappingProxyType

import pytest


def answer_test(grade, *, right=(), wrong=MappingProxyType({})):
    """Return the test of a grader.

    Args:
        grade: Takes an answer, returns a verdict.
        right: Answers that must pass, by name; or functions, each under its own name.
        wrong: Answers that must be refused, by a part of the hint that they must get: one answer, or a list.
    """
    passing = right if isinstance(right, dict) else {answer.__name__: answer for answer in right}
    refused = [
        pytest.param(answer, hint, id=hint)
        for hint, answers in wrong.items()
        for answer in (answers if isinstance(answers, list) else [answers])
    ]

    @pytest.mark.parametrize(
        ("answer", "hint"),
        [*(pytest.param(answer, None, id=str(name)) for name, answer in passing.items()), *refused],
    )
    def verdict_of(answer, hint):
        verdict = grade(answer)
        assert bool(verdict) == (hint is None), verdict.says
        assert hint is None or hint in verdict.says, verdict.says

    return verdict_of
