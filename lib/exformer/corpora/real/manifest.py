"""The files of real texts: where each can be downloaded, its length, SHA-256 and license."""

from dataclasses import dataclass

_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1"
_SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare"
_CAPTIONS = (
    "Multi30k, Elliott et al. 2016 and 2017, under the terms of Flickr30k: "
    "for research and education, not for commerce"
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """The facts of a file that is not downloaded yet.

    Args:
        name: Path within the data folder, with forward slashes.
        url: Its public address.
        n_bytes: Its length in bytes.
        sha256: Its SHA-256, 64 hexadecimal digits.
        license: The terms of its use, and its authors.
    """

    name: str
    url: str
    n_bytes: int
    sha256: str
    license: str


def _multi30k(row: str) -> DataFile:
    """Read a row of the table below."""
    folder, name, n_bytes, sha256 = row.split()
    url = f"{_MULTI30K}/{folder}/{name}"
    return DataFile(f"multi30k/{name}", url, int(n_bytes), sha256, _CAPTIONS)


#: Each file by its name.
FILES = {
    file.name: file
    for file in (
        DataFile(
            "tinyshakespeare/input.txt",
            f"{_SHAKESPEARE}/input.txt",
            1_115_394,
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            "plays of Shakespeare, in the public domain, put together by Karpathy 2015",
        ),
        *map(
            _multi30k,
            """
            raw train.en.gz 568929 d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f
            raw train.de.gz 637044 726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6
            raw train.fr.gz 604242 622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c
            raw val.en.gz 21650 14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28
            raw val.de.gz 24681 f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a
            raw val.fr.gz 23001 ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9
            raw test_2016_flickr.en.gz 21077 611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9
            raw test_2016_flickr.de.gz 22890 9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8
            raw test_2016_flickr.fr.gz 22310 6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90
            tok test_2016_flickr.lc.norm.tok.en 63307 \
                5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2
            tok test_2016_flickr.lc.norm.tok.de 71917 \
                c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4
            tok test_2016_flickr.lc.norm.tok.fr 76394 \
                1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836
            """.strip().split("\n"),
        ),
    )
}
