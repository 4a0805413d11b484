"""A wider sweep of the lesson on tokens: what the tokens of real vocabularies hold.

The vocabularies are those of tiktoken, which fetches them once, or reads them from TIKTOKEN_CACHE_DIR, and
checks their hashes.
"""

import tiktoken

from exformer_lessons.trials import sweep

NAMES = {"GPT-2": "gpt2", "GPT-4": "cl100k_base", "GPT-4o": "o200k_base"}


@sweep("C22")
def vocabularies(moon, texts):
    """Return each vocabulary's size, and for each text characters per token and words per 100 tokens."""
    found = {}
    for model, name in NAMES.items():
        encoding = tiktoken.get_encoding(name)
        found[model] = {"size": encoding.n_vocab, "moon": len(encoding.encode(moon))}
        for kind, text in texts.items():
            n = len(encoding.encode(text, disallowed_special=()))
            found[model][kind] = [len(text) / n, 100 * len(text.split()) / n]
    return found
