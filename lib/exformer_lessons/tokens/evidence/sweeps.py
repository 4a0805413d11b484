"""A wider sweep of the evidence on tokens: what the tokens of real vocabularies hold of real texts.

tiktoken fetches the vocabularies once, or reads them from TIKTOKEN_CACHE_DIR. The texts are fetched, or read
from the folder that EXFORMER_DATA names.
"""

import tiktoken

from exformer.corpora.real import multi30k, tiny_shakespeare
from exformer_lessons.trials import sweep

NAMES = {"GPT-2": "gpt2", "GPT-4": "cl100k_base", "GPT-4o": "o200k_base"}


@sweep("C22")
def real_texts():
    """Return characters per token and words per 100 tokens, for each vocabulary and text."""
    texts = {"Shakespeare": tiny_shakespeare()[1]}
    texts["captions, English"] = "\n".join(pair.source for pair in multi30k("test", src="en", tgt="de"))
    for name, code in (("German", "de"), ("French", "fr")):
        texts[f"captions, {name}"] = "\n".join(pair.target for pair in multi30k("test", src="en", tgt=code))
    found = {}
    for model, name in NAMES.items():
        encoding = tiktoken.get_encoding(name)
        n = {kind: len(encoding.encode(text, disallowed_special=())) for kind, text in texts.items()}
        found[model] = {
            kind: [len(text) / n[kind], 100 * len(text.split()) / n[kind]] for kind, text in texts.items()
        }
    return found
