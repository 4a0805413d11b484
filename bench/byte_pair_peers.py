"""The other byte-pair encodings: Hugging Face's, OpenAI's, and the plain one that recounts all pairs."""

import json
from collections import Counter

import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.bpe_merges import learn_merges_by_recounting
from exformer.tokenizers.pretokenize import split_pieces
from exformer.tokenizers.vocabulary import SPECIALS


def train_hugging_face(text: str, n_merges: int) -> Tokenizer:
    """Train Hugging Face's byte-level trainer on one string."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=len(SPECIALS) + 256 + n_merges,
        min_frequency=2,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    tokenizer.encode_special_tokens = True  # "<s>" within a text is plain text, as it is for ours
    return tokenizer


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    """Encode a text in the fastest way that Hugging Face has: without the offsets of the tokens, as ours."""
    return tokenizer.encode_batch_fast([text])[0].ids


def merges_of(tokenizer: Tokenizer) -> tuple[tuple[int, int], ...]:
    """Return the merges of Hugging Face's tokenizer as pairs of ids."""
    model = json.loads(tokenizer.to_str())["model"]
    return tuple((model["vocab"][first], model["vocab"][second]) for first, second in model["merges"])


#: GPT-2's pieces as tiktoken has them, with nothing given back within a run.
PIECES = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def tiktoken_of(ours: BPETokenizer) -> tiktoken.Encoding:
    """Build tiktoken's encoder from our merges; its ids lack our special tokens and start with the bytes."""
    ranks = {token: place for place, token in enumerate(ours.tokens[len(SPECIALS) :])}
    return tiktoken.Encoding("ours", pat_str=PIECES, mergeable_ranks=ranks, special_tokens={})


def learn_by_recounting(text: str, n_merges: int) -> tuple[tuple[int, int], ...]:
    """Recount the pairs of all different words for each merge, as the paper's algorithm 1 does.

    Source: Sennrich et al. (2016), "Neural Machine Translation of Rare Words with Subword Units",
    section 3.2.
    """
    in_bytes = BPETokenizer([])
    words = {
        "".join(map(chr, in_bytes.encode(piece))): count
        for piece, count in Counter(split_pieces(text)).items()
    }
    merges = learn_merges_by_recounting(words, n_merges=n_merges, first=in_bytes.vocab_size, min_count=2)
    return tuple((ord(first), ord(second)) for first, second in merges)
