"""Wider sweeps of the evidence on tokens: what the tokens of real vocabularies hold of real texts.

tiktoken fetches the vocabularies once, or reads them from TIKTOKEN_CACHE_DIR, and checks their hashes. The
captions and plays are fetched, or read from the folder that EXFORMER_DATA names. The Declaration is the text
of the United Nations, article 1.
"""

from statistics import mean

import tiktoken

from exformer import BPETokenizer
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


@sweep("C22")
def spellings():
    """Return how GPT-4o's vocabulary cuts some texts: the text of each token, and its id."""
    encoding = tiktoken.get_encoding(NAMES["GPT-4o"])
    texts = ["strawberry", " strawberry", "Strawberry", "STRAWBERRY", "1234567", "234567"]
    texts += ["The answer is", "The answer is ", "The answer is yes"]
    found = {}
    for text in texts:
        ids = encoding.encode(text)
        found[text] = [[encoding.decode_single_token_bytes(i).decode(errors="replace"), i] for i in ids]
    return found


@sweep("C22")
def declaration():
    """Return how many characters, bytes and tokens article 1 of the Declaration of Human Rights has."""
    articles = {
        "English": "All human beings are born free and equal in dignity and rights. They are endowed with "
        "reason and conscience and should act towards one another in a spirit of brotherhood.",
        "Italian": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati "
        "di ragione e di coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",
        "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. "
        "Είναι προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με "
        "πνεύμα αδελφοσύνης.",
        "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें "
        "बुद्धि और अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए।",
    }
    found = {}
    for language, text in articles.items():
        found[language] = {"characters": len(text), "bytes": len(text.encode())}
        for model, name in NAMES.items():
            found[language][model] = len(tiktoken.get_encoding(name).encode(text))
    return found


@sweep("C22")
def captions_crossed():
    """Return the tokens of a caption, learned from the captions of each language and read in each.

    The three languages describe the same 1,000 pictures; the tokenizers learn 4,000 merges from 29,000
    others.
    """
    texts = {"English": {}, "German": {}, "French": {}}
    for part in ("train", "test"):
        texts["English"][part] = [pair.source for pair in multi30k(part, src="en", tgt="de")]
        texts["German"][part] = [pair.target for pair in multi30k(part, src="en", tgt="de")]
        texts["French"][part] = [pair.target for pair in multi30k(part, src="en", tgt="fr")]
    found = {}
    for learned, old in texts.items():
        tokenizer = BPETokenizer.from_texts(old["train"], n_merges=4000)
        found[learned] = {
            read: mean(len(tokenizer.encode(text)) for text in new["test"]) for read, new in texts.items()
        }
    return found
