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


@sweep("C22")
def declaration_learned():
    """Return the tokens of an article of the Declaration, for tokenizers that learned from the other ones.

    Every third article is held out, the first among them; the others and the preamble are learned from, with
    500 merges. "signs with their letters" counts combining marks, as Hindi's vowel signs are, as letters when
    it cuts the pieces; without it they are cut as GPT-2 does, as if they were punctuation.
    """
    import xml.etree.ElementTree as ET
    from collections import Counter
    from itertools import accumulate, pairwise
    from unicodedata import category

    from exformer.corpora.real.download import fetch
    from exformer.corpora.real.manifest import DataFile
    from exformer.tokenizers.bpe_merges import apply_merges, learn_merges
    from exformer.tokenizers.pretokenize import split_pieces

    home = "https://raw.githubusercontent.com/eric-muller/udhr/f93dd614154c47fc4b85ec03d8d6f1abe97869ef"
    files = {
        "English": ("eng", 15848, "df73275821449df4db2b164e59bda812c834d80cacc8792a6f41d6fc331ce204"),
        "Hindi": ("hin", 35505, "281c094420709de0166af8e25be8193f5e3b8a4d0649a77ba51e8d6ed16f1438"),
    }

    def parts_of(code, n_bytes, sha256):
        """Return the texts to learn from and those to read."""
        name = f"udhr/udhr_{code}.xml"
        file = DataFile(name, f"{home}/data/{name}", n_bytes, sha256, "the United Nations")
        tree, space = ET.parse(fetch(file)).getroot(), "{http://efele.net/udhr}"
        texts = [
            " ".join("".join(para.itertext()).strip() for para in part.iter(f"{space}para"))
            for part in (tree.find(f"{space}preamble"), *tree.iter(f"{space}article"))
        ]
        return [text for n, text in enumerate(texts) if n % 3 != 1], texts[1::3]

    def with_signs(text):
        plain = "".join("a" if category(sign)[0] == "M" else sign for sign in text)
        ends = accumulate(map(len, split_pieces(plain)), initial=0)
        return [text[start:end] for start, end in pairwise(ends)]

    def as_bytes(piece):
        return "".join(map(chr, piece.encode()))

    texts = {language: parts_of(*file) for language, file in files.items()}
    found = {}
    for learned, (old, _) in texts.items():
        for name, cut in {"as GPT-2 cuts": split_pieces, "signs with their letters": with_signs}.items():
            pieces = Counter(as_bytes(piece) for text in old for piece in cut(text))
            merges = learn_merges(pieces, n_merges=500, first=256, min_count=2)
            numbers = {pair: chr(256 + n) for n, pair in enumerate(merges)}
            found[f"{learned}, {name}"] = {
                language: mean(
                    sum(len(apply_merges(as_bytes(piece), numbers)) for piece in cut(text)) for text in new
                )
                for language, (_, new) in texts.items()
            }
    return found
