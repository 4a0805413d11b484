"""Our own captions: whole, different from one another, and none of Multi30k's."""

from test_corpora_real import needs_multi30k

from exformer.corpora.captions import captions
from exformer.corpora.real import multi30k
from exformer.tokenizers.text_normalization import normalize_line


def test_number_of_captions() -> None:
    pairs = captions()
    assert len(pairs) == len({pair.source for pair in pairs}) == len({pair.target for pair in pairs}) == 40
    for pair in pairs:
        for text in (pair.source, pair.target):
            assert text == normalize_line(text)
            assert text[0].isupper()
            assert text.endswith(".")


@needs_multi30k
def test_captions_are_not_in_multi30k() -> None:
    theirs = [pair for part in ("train", "val", "test") for pair in multi30k(part, src="en", tgt="de")]
    for side in ("source", "target"):
        known = {getattr(pair, side).strip().casefold() for pair in theirs}
        assert not [pair for pair in captions() if getattr(pair, side).casefold() in known]
