"""The English-Italian language against tables written by hand: forms, agreement, alignment, held-out sets."""

import functools
import itertools
import unicodedata
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exformer.corpora import english_italian
from exformer.corpora.english_italian import CONSTRUCTIONS, lexicon, parser, sampling, translate
from exformer.corpora.english_italian.grammar import derive
from exformer.corpora.english_italian.parser import parse

# the, near the, a: singular; the, near the, many: plural. Written by hand from a dictionary.
NOUNS = """
dog cane m          | dogs cani           | il, al, un      | i, ai, molti
cat gatto m         | cats gatti          | il, al, un      | i, ai, molti
horse cavallo m     | horses cavalli      | il, al, un      | i, ai, molti
wolf lupo m         | wolves lupi         | il, al, un      | i, ai, molti
mouse topo m        | mice topi           | il, al, un      | i, ai, molti
lion leone m        | lions leoni         | il, al, un      | i, ai, molti
animal animale m    | animals animali     | l', all', un    | gli, agli, molti
elephant elefante m | elephants elefanti  | l', all', un    | gli, agli, molti
squirrel scoiattolo m | squirrels scoiattoli | lo, allo, uno | gli, agli, molti
ostrich struzzo m   | ostriches struzzi   | lo, allo, uno   | gli, agli, molti
gnu gnu m           | gnus gnu            | lo, allo, uno   | gli, agli, molti
fox volpe f         | foxes volpi         | la, alla, una   | le, alle, molte
tiger tigre f       | tigers tigri        | la, alla, una   | le, alle, molte
goat capra f        | goats capre         | la, alla, una   | le, alle, molte
frog rana f         | frogs rane          | la, alla, una   | le, alle, molte
hen gallina f       | hens galline        | la, alla, una   | le, alle, molte
monkey scimmia f    | monkeys scimmie     | la, alla, una   | le, alle, molte
cow mucca f         | cows mucche         | la, alla, una   | le, alle, molte
turtle tartaruga f  | turtles tartarughe  | la, alla, una   | le, alle, molte
zebra zebra f       | zebras zebre        | la, alla, una   | le, alle, molte
goose oca f         | geese oche          | l', all', un'   | le, alle, molte
eagle aquila f      | eagles aquile       | l', all', un'   | le, alle, molte
river fiume m       | rivers fiumi        | il, al, un      | i, ai, molti
bridge ponte m      | bridges ponti       | il, al, un      | i, ai, molti
field campo m       | fields campi        | il, al, un      | i, ai, molti
park parco m        | parks parchi        | il, al, un      | i, ai, molti
lake lago m         | lakes laghi         | il, al, un      | i, ai, molti
pond stagno m       | ponds stagni        | lo, allo, uno   | gli, agli, molti
zoo zoo m           | zoos zoo            | lo, allo, uno   | gli, agli, molti
airport aeroporto m | airports aeroporti  | l', all', un    | gli, agli, molti
street strada f     | streets strade      | la, alla, una   | le, alle, molte
square piazza f     | squares piazze      | la, alla, una   | le, alle, molte
valley valle f      | valleys valli       | la, alla, una   | le, alle, molte
marsh palude f      | marshes paludi      | la, alla, una   | le, alle, molte
forest foresta f    | forests foreste     | la, alla, una   | le, alle, molte
hill collina f      | hills colline       | la, alla, una   | le, alle, molte
beach spiaggia f    | beaches spiagge     | la, alla, una   | le, alle, molte
island isola f      | islands isole       | l', all', un'   | le, alle, molte
"""
# English; Italian masculine singular, feminine singular, masculine plural, feminine plural; said of
ADJECTIVES = """
tired stanco stanca stanchi stanche animal
hungry affamato affamata affamati affamate animal
scared spaventato spaventata spaventati spaventate animal
thirsty assetato assetata assetati assetate animal
angry arrabbiato arrabbiata arrabbiati arrabbiate animal
sick malato malata malati malate animal
sleepy assonnato assonnata assonnati assonnate animal
nervous nervoso nervosa nervosi nervose animal
curious curioso curiosa curiosi curiose animal
lazy pigro pigra pigri pigre animal
happy felice felice felici felici animal
impatient impaziente impaziente impazienti impazienti animal
wide largo larga larghi larghe place
narrow stretto stretta stretti strette place
deep profondo profonda profondi profonde place
crowded affollato affollata affollati affollate place
steep ripido ripida ripidi ripide place
flooded allagato allagata allagati allagate place
windy ventoso ventosa ventosi ventose place
sunny soleggiato soleggiata soleggiati soleggiate place
icy ghiacciato ghiacciata ghiacciati ghiacciate place
shady ombroso ombrosa ombrosi ombrose place
inhospitable inospitale inospitale inospitali inospitali place
uneven irregolare irregolare irregolari irregolari place
"""
# base, past; Italian third person singular and plural of the passato remoto; what follows
VERBS = """
cross crossed attraversò attraversarono place
explore explored esplorò esplorarono place
reach reached raggiunse raggiunsero place
visit visited visitò visitarono place
leave left lasciò lasciarono place
avoid avoided evitò evitarono place
follow followed seguì seguirono animal
hear heard sentì sentirono animal
find found trovò trovarono animal
wake woke svegliò svegliarono animal
sleep slept dormì dormirono nothing
wait waited aspettò aspettarono nothing
eat ate mangiò mangiarono nothing
drink drank bevve bevvero nothing
play played giocò giocarono nothing
run ran corse corsero nothing
"""
SENTENCES = {
    "the tired dog slept": "il cane stanco dormì",
    "the animal didn't cross the street because it was too tired": (
        "l' animale non attraversò la strada perché era troppo stanco"
    ),
    "the animal didn't cross the street because it was too wide": (
        "l' animale non attraversò la strada perché era troppo larga"
    ),
    "the fox left the river because it was icy": "la volpe lasciò il fiume perché era ghiacciato",
    "the fox left the river because it was thirsty": "la volpe lasciò il fiume perché era assetata",
    "an angry goose didn't wake the sleepy squirrels near the pond": (
        "un' oca arrabbiata non svegliò gli scoiattoli assonnati vicino allo stagno"
    ),
    "many geese weren't very happy": "molte oche non erano molto felici",
    "a zebra ran behind a steep hill": "una zebra corse dietro una collina ripida",
    "the eagles drank near an island": "le aquile bevvero vicino a un' isola",
    "the mice ate beyond the wide marshes": "i topi mangiarono oltre le paludi larghe",
    "the streets were too narrow": "le strade erano troppo strette",
}


def rows(table):
    """Return the words of each line."""
    return [line.replace("|", " ").replace(",", " ").split() for line in table.strip().splitlines()]


PLACES = {row[0] for row in rows(NOUNS)[22:]}
GENDER = {row[1]: row[2] for row in rows(NOUNS)} | {row[4]: row[2] for row in rows(NOUNS)}
SINGULAR = {row[0]: row[0] for row in rows(NOUNS)} | {row[3]: row[0] for row in rows(NOUNS)}
ENGLISH_ADJECTIVES = {row[0]: row for row in rows(ADJECTIVES)}
# what may stand beside each Italian noun: the gnu and the zoos have one form for both numbers
ARTICLES = defaultdict(set)
for _, one, _, _, many, *articles in rows(NOUNS):
    ARTICLES[one] |= {(article, "one") for article in articles[:3]}
    ARTICLES[many] |= {(article, "many") for article in articles[3:]}
FORMS = defaultdict(set)
for row in rows(ADJECTIVES):
    for form, agrees in zip(
        row[1:5], [("m", "one"), ("f", "one"), ("m", "many"), ("f", "many")], strict=True
    ):
        FORMS[form].add(agrees)
VERB_NUMBER = {row[2]: "one" for row in rows(VERBS)} | {row[3]: "many" for row in rows(VERBS)}
VERB_NUMBER |= {"era": "one", "erano": "many"}


# The sentences are made when a test first asks for them: whoever only collects the tests need not wait.
@functools.cache
def some_pairs():
    return english_italian.sample(3000, seed=11)


@functools.cache
def both_sets():
    return english_italian.split(20_000, n_test=1000, seed=5)


def pronouns(pairs):
    return [pair for pair in pairs if pair.construction == "pronoun"]


@pytest.mark.parametrize("row", rows(NOUNS), ids=lambda row: row[0])
def test_noun_has_the_forms_and_articles_of_the_table(row):
    one, uno, gender, many, molti, the, near_the, a, the_many, near_the_many, many_word = row
    an = "an" if one[0] in "aeiou" else "a"
    adjective = "wide" if one in PLACES else "tired"
    form = dict(zip("mf", ENGLISH_ADJECTIVES[adjective][1:3], strict=True))[gender]
    forms = dict(zip("mf", ENGLISH_ADJECTIVES[adjective][3:5], strict=True))[gender]
    assert translate(f"the {one} was {adjective}") == f"{the} {uno} era {form}"
    assert translate(f"{an} {one} was {adjective}") == f"{a} {uno} era {form}"
    assert translate(f"the {many} were {adjective}") == f"{the_many} {molti} erano {forms}"
    assert translate(f"many {many} were {adjective}") == f"{many_word} {molti} erano {forms}"
    if one in PLACES:
        assert translate(f"the dog slept near the {one}") == f"il cane dormì vicino {near_the} {uno}"
        assert translate(f"the dog slept near {an} {one}") == f"il cane dormì vicino a {a} {uno}"
        assert translate(f"the dog slept near the {many}") == f"il cane dormì vicino {near_the_many} {molti}"


@pytest.mark.parametrize("row", rows(ADJECTIVES), ids=lambda row: row[0])
def test_adjective_has_the_four_forms_of_the_table(row):
    english, masculine, feminine, masculines, feminines, kind = row
    he, she = ("dog", "fox") if kind == "animal" else ("river", "street")
    he_plural, she_plural = ("dogs", "foxes") if kind == "animal" else ("rivers", "streets")
    assert translate(f"the {he} was {english}").split()[-1] == masculine
    assert translate(f"the {she} was {english}").split()[-1] == feminine
    assert translate(f"the {he_plural} were {english}").split()[-1] == masculines
    assert translate(f"the {she_plural} were {english}").split()[-1] == feminines


@pytest.mark.parametrize("row", rows(VERBS), ids=lambda row: row[0])
def test_verb_has_the_forms_of_the_table(row):
    base, past, one, many, takes = row
    english, italian = {"place": (" a hill", " una collina"), "animal": (" a cat", " un gatto")}.get(
        takes, ("", "")
    )
    assert translate(f"the fox {past}{english}") == f"la volpe {one}{italian}"
    assert translate(f"the foxes {past}{english}") == f"le volpi {many}{italian}"
    assert translate(f"the fox didn't {base}{english}") == f"la volpe non {one}{italian}"
    assert translate(f"the foxes didn't {base}{english}") == f"le volpi non {many}{italian}"


@pytest.mark.parametrize("english", list(SENTENCES))
def test_sentence_is_translated_as_by_hand(english):
    assert translate(english) == SENTENCES[english]


def test_tables_name_every_word_of_the_lexicon():
    assert {row[0] for row in rows(NOUNS)} == {noun.singular for noun in lexicon.ANIMALS + lexicon.PLACES}
    assert {row[0] for row in rows(ADJECTIVES)} == {adjective.english for adjective in lexicon.ADJECTIVES}
    assert {row[0] for row in rows(VERBS)} == {verb.base for verb in lexicon.VERBS}
    assert len(lexicon.ANIMALS) >= 20
    assert len(lexicon.PLACES) >= 14
    for nouns in (lexicon.ANIMALS, lexicon.PLACES):
        assert Counter(noun.gender for noun in nouns) == {"m": len(nouns) / 2, "f": len(nouns) / 2}
    assert {adjective.kind for adjective in lexicon.ADJECTIVES} == {"animal", "place"}


def test_no_english_word_has_two_uses():
    words = [form for row in rows(NOUNS) for form in (row[0], row[3])]
    words += [row[0] for row in rows(ADJECTIVES)] + [form for row in rows(VERBS) for form in row[:2]]
    assert max(Counter(words).values()) == 1
    assert set(words) < set(english_italian.ENGLISH_WORDS)


@pytest.mark.parametrize(
    ("word", "sound"),
    [("zaino", "complex"), ("gnomo", "complex"), ("psicologo", "complex"), ("sbaglio", "complex"),
     ("sole", "plain"), ("gatto", "plain"), ("pesce", "plain"), ("amico", "vowel"), ("uovo", "vowel")],
)  # fmt: skip
def test_onset_decides_between_il_lo_and_l(word, sound):
    assert lexicon.onset(word) == sound


def agreeing(words):
    """Walk over an Italian sentence; return the readings (number) of its noun phrases, or raise."""
    phrases, index = [], 0
    while index < len(words):
        if words[index] not in GENDER:
            index += 1
            continue
        noun, determiner = words[index], words[index - 1]
        numbers = {number for article, number in ARTICLES[noun] if article == determiner}
        assert numbers, f"{determiner} {noun}"
        if index + 1 < len(words) and words[index + 1] in FORMS:
            index += 1
            numbers &= {number for gender, number in FORMS[words[index]] if gender == GENDER[noun]}
            assert numbers, f"{noun} {words[index]}"
        phrases.append((noun, numbers))
        index += 1
    return phrases


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_every_italian_sentence_agrees(construction):
    pairs = [pair for pair in some_pairs() if pair.construction == construction]
    assert len(pairs) >= 400
    for pair in pairs:
        words = pair.target.split()
        phrases = agreeing(words)
        verbs = [word for word in words if word in VERB_NUMBER]
        assert VERB_NUMBER[verbs[0]] in phrases[0][1], pair
        if construction == "copula":
            assert (GENDER[phrases[0][0]], VERB_NUMBER[verbs[0]]) in FORMS[words[-1]], pair
        if construction == "pronoun":
            of_animal = ENGLISH_ADJECTIVES[pair.source.split()[-1]][5] == "animal"
            antecedent = phrases[0 if of_animal else 1][0]
            assert (GENDER[antecedent], "one") in FORMS[words[-1]], pair
            assert verbs[1] == "era"


def test_translate_gives_every_sampled_sentence_its_translation():
    for pair in some_pairs():
        assert translate(pair.source) == pair.target
        assert 3 <= len(pair.source.split()) <= 14
        assert len(pair.target.split()) <= 16
        assert unicodedata.is_normalized("NFC", pair.target)


def align(english):
    """Return the alignment of one sentence."""
    return derive(parse(english)).alignment


def test_alignment_by_hand():
    assert align("the tired dog slept") == ((0, 0), (1, 2), (2, 1), (3, 3))
    #  the dog wasn't tired | il cane non era stanco
    assert align("the dog wasn't tired") == ((0, 0), (1, 1), (2, 2), (2, 3), (3, 4))
    #  a cat didn't run near the river | un gatto non corse vicino al fiume
    assert align("a cat didn't run near the river") == (
        (0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (4, 5), (5, 5), (6, 6),
    )  # fmt: skip
    #  a cat ran near an icy river | un gatto corse vicino a un fiume ghiacciato
    assert align("a cat ran near an icy river") == (
        (0, 0), (1, 1), (2, 2), (3, 3), (3, 4), (4, 5), (5, 7), (6, 6),
    )  # fmt: skip
    #  the dog left the hill because it was tired | il cane lasciò la collina perché era stanco
    assert align("the dog left the hill because it was tired") == (
        (0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 6), (8, 7),
    )  # fmt: skip


def test_alignment_links_words_with_their_own_translations():
    dictionary = defaultdict(set)
    for row in rows(NOUNS):
        dictionary[row[0]].add(row[1])
        dictionary[row[3]].add(row[4])
    for row in rows(ADJECTIVES):
        dictionary[row[0]] |= set(row[1:5])
    for row in rows(VERBS):
        dictionary[row[0]] = dictionary[row[1]] = set(row[2:4])
    for pair in some_pairs():
        source, target = pair.source.split(), pair.target.split()
        assert {i for i, _ in pair.alignment} == set(range(len(source)))
        assert {j for _, j in pair.alignment} == set(range(len(target)))
        for i, j in pair.alignment:
            assert source[i] not in dictionary or target[j] in dictionary[source[i]], pair


def text_combinations(pair):
    """Read a sentence's noun-adjective pairs, and its triple if it has "it", off the English words alone."""
    words = pair.source.split()
    nouns = [SINGULAR[word] for word in words if word in SINGULAR]
    found = {
        (SINGULAR[b], a) for a, b in itertools.pairwise(words) if a in ENGLISH_ADJECTIVES and b in SINGULAR
    }
    last = words[-1]
    if last in ENGLISH_ADJECTIVES:
        kind = ENGLISH_ADJECTIVES[last][5]
        noun = next(noun for noun in nouns if (noun in PLACES) == (kind == "place"))
        found.add((noun, last))
        if "because" in words:
            found.add((nouns[0], nouns[1], last))
    return found


def test_test_sentences_have_held_out_combinations():
    seen = set().union(*map(text_combinations, both_sets().train))
    pairs_seen = {combination for combination in seen if len(combination) == 2}
    assert len(pairs_seen) == pytest.approx(
        (22 * 12 + 16 * 12) * 5 / 6, rel=0.01
    )  # the other pairs all occur
    for pair in both_sets().test:
        assert text_combinations(pair) - seen, pair
        assert english_italian.held_out(pair.source)
    assert not any(english_italian.held_out(pair.source) for pair in both_sets().train[:2000])
    new_triple_only = [
        p for p in both_sets().test if all(len(new) == 3 for new in text_combinations(p) - pairs_seen)
    ]
    assert len(new_triple_only) > 20


def test_what_is_held_out_by_hand():
    # Places in the tables: animal 0, dog 1, horse 3, wolf 4, mouse 5; bridge 1, field 2; tired 0, hungry 1,
    # angry 4. Noun and adjective: a sum of 0, 6, 12, ... is held out.
    assert english_italian.held_out("the tired animal slept")  # 0
    assert english_italian.held_out("the hungry mice slept")  # 5 + 1
    assert not english_italian.held_out("the angry horse slept")  # 3 + 4
    # Subject, twice the place, three times the adjective: 0, 5, 10, ...
    assert english_italian.held_out("the dog crossed the field because it was tired")  # 1 + 4 + 0
    assert english_italian.held_out("the horse crossed the field because it was hungry")  # 3 + 4 + 3
    assert not english_italian.held_out("the wolf crossed the bridge because it was tired")  # 4 + 2 + 0


def test_samples_are_in_random_order():
    drawn = english_italian.split(60, n_test=25, seed=0)
    for pairs, mix in (
        (english_italian.sample(60, seed=0), (*CONSTRUCTIONS, "pronoun")),
        (drawn.train, (*CONSTRUCTIONS, "pronoun")),
        (drawn.test, CONSTRUCTIONS),
    ):
        found = [pair.construction for pair in pairs]
        in_turn = [mix[i % len(mix)] for i in range(len(pairs))]
        assert found != in_turn
        assert sorted(found) == sorted(in_turn)


def test_no_two_minimal_pairs_have_the_same_first_sentence(monkeypatch):
    few = {"animal": sampling._ADJECTIVES["animal"][:1], "place": sampling._ADJECTIVES["place"]}
    monkeypatch.setattr(sampling, "_ADJECTIVES", few)
    nouns = {
        kind: [next(noun for noun in all_ if noun.gender == gender) for gender in "mf"]
        for kind, all_ in sampling._NOUNS.items()
    }
    monkeypatch.setattr(sampling, "_NOUNS", nouns)
    monkeypatch.setattr(sampling, "_VERBS", {takes: verbs[:1] for takes, verbs in sampling._VERBS.items()})
    pairs = english_italian.pronoun_pairs(100, seed=0)  # there are 586
    assert len({first.source for first, _ in pairs}) == 100


def test_split_is_disjoint_and_balanced():
    train, test = ({pair.source for pair in pairs} for pairs in (both_sets().train, both_sets().test))
    assert len(train) == 20_000
    assert len(test) == 1000
    assert not train & test
    assert Counter(pair.construction for pair in both_sets().test) == dict.fromkeys(CONSTRUCTIONS, 200)
    counts = Counter(pair.construction for pair in both_sets().train)
    assert counts["pronoun"] == pytest.approx(20_000 / 3, abs=2)


def test_every_word_is_in_training_often():
    for words in ("source", "target"):
        counts = Counter(word for pair in both_sets().train for word in getattr(pair, words).split())
        assert min(counts.values()) >= 40
        assert {word for pair in both_sets().test for word in getattr(pair, words).split()} <= set(counts)
    assert sorted({word for pair in both_sets().train for word in pair.source.split()}) == list(
        english_italian.ENGLISH_WORDS
    )


@pytest.mark.parametrize("draw", [some_pairs, lambda: both_sets().train + both_sets().test])
def test_cue_of_one_noun_is_right_in_half(draw):
    pairs, right = pronouns(draw()), Counter()
    for pair in pairs:
        words = pair.source.split()
        nouns = [word for word in words if word in SINGULAR]
        gender = {row[0]: row[2] for row in rows(NOUNS)}
        if gender[nouns[0]] != gender[nouns[1]]:
            row = ENGLISH_ADJECTIVES[words[-1]]
            if row[1] == row[2]:
                continue
            form = dict(zip("mf", row[1:3], strict=True))
            written = pair.target.split()[-1]
            right.update({"all": 1, "subject": form[gender[nouns[0]]] == written})
            right.update({"object": form[gender[nouns[1]]] == written})
    assert right["all"] == pytest.approx(len(pairs) / 2, abs=2)
    assert right["subject"] == pytest.approx(right["all"] / 2, abs=2)
    assert right["object"] == pytest.approx(right["all"] / 2, abs=2)


def test_pronoun_facts_by_hand():
    facts = english_italian.pronoun_facts("the animal didn't cross the street because it was too wide")
    assert (facts.antecedent, facts.other) == ("street", "animal")
    assert (facts.right, facts.wrong, facts.decisive) == ("larga", "largo", True)
    facts = english_italian.pronoun_facts("a fox left the hill because it was sick")
    assert (facts.antecedent, facts.right, facts.wrong, facts.decisive) == ("fox", "malata", "malato", False)
    facts = english_italian.pronoun_facts("a fox left the lake because it was happy")
    assert (facts.right, facts.wrong, facts.decisive) == ("felice", "felice", False)
    for pair in pronouns(some_pairs())[:200]:
        facts = english_italian.pronoun_facts(pair.source)
        assert pair.antecedent == facts.antecedent
        assert pair.target.split()[-1] == facts.right


def test_pronoun_pairs_differ_in_the_last_word_and_in_gender():
    pairs = english_italian.pronoun_pairs(200, seed=3)
    assert len({first.source for first, _ in pairs}) == 200
    for first, second in pairs:
        *a, tired = first.source.split()
        *b, wide = second.source.split()
        assert a == b
        assert ENGLISH_ADJECTIVES[tired][5] == "animal"
        assert ENGLISH_ADJECTIVES[wide][5] == "place"
        assert first.target.split()[:-1] == second.target.split()[:-1]
        genders = [{gender for gender, _ in FORMS[pair.target.split()[-1]]} for pair in (first, second)]
        assert genders in ([{"m"}, {"f"}], [{"f"}, {"m"}])
        assert english_italian.held_out(first.source)
        assert english_italian.held_out(second.source)


def test_same_seed_same_sentences():
    assert english_italian.sample(50, seed=1) == english_italian.sample(50, seed=1)
    assert english_italian.sample(50, seed=1) != english_italian.sample(50, seed=2)
    assert english_italian.split(40, n_test=20, seed=1) == english_italian.split(40, n_test=20, seed=1)
    assert english_italian.split(40, n_test=20, seed=1) != english_italian.split(40, n_test=20, seed=2)
    assert english_italian.pronoun_pairs(9, seed=4) == english_italian.pronoun_pairs(9, seed=4)


def test_count_is_the_number_of_sentences_in_a_small_lexicon(monkeypatch):
    kept = {"animal": ("dog", "dogs", "tired"), "place": ("hill", "hills", "wide")}
    for name in ("_NOUNS", "_ADJECTIVES"):
        monkeypatch.setattr(
            sampling, name, {kind: words[:1] for kind, words in getattr(sampling, name).items()}
        )
    monkeypatch.setattr(sampling, "_VERBS", {takes: verbs[:1] for takes, verbs in sampling._VERBS.items()})

    def one(kind):
        noun, _, adjective = kept[kind]
        return [f"{d} {a}{noun}" for d in ("the", "a") for a in ("", adjective + " ")]

    def phrases(kind):
        _, nouns, adjective = kept[kind]
        return one(kind) + [f"{d} {a}{nouns}" for d in ("the", "many") for a in ("", adjective + " ")]

    def sentences(*parts):
        return {" ".join(words).strip() for words in itertools.product(*parts)}

    degrees, animals, places = ("", "too ", "very "), phrases("animal"), phrases("place")
    where = ["", *(f"{p} {place}" for p in ("near", "behind", "beyond") for place in places)]
    made = {
        "intransitive": sentences(animals, ["slept", "didn't sleep"], where),
        "animal object": sentences(animals, ["followed", "didn't follow"], animals, where),
        "place object": sentences(animals, ["crossed", "didn't cross"], places),
        "copula": {
            f"{phrase} {be}{no} {degree}{kept[kind][2]}"
            for kind in kept for phrase in phrases(kind) for no in ("", "n't") for degree in degrees
            for be in (("were",) if phrase.split()[-1].endswith("s") else ("was",))
        },
        "pronoun": {
            f"{a} {verb} {b} because it was {degree}{kept[kind][2]}"
            for a in one("animal") for verb in ("crossed", "didn't cross") for b in one("place")
            for degree in degrees for kind in kept
        },
    }  # fmt: skip
    assert sampling.count_sentences() == {name: len(made[name]) for name in made}
    for english in set().union(*made.values()):
        translate(english)  # each is a sentence of the grammar


def test_the_language_is_too_large_to_memorize():
    counts = english_italian.count_sentences()
    assert set(counts) == set(CONSTRUCTIONS)
    assert sum(counts.values()) > 10**10
    assert counts["pronoun"] > 10**8


@pytest.mark.parametrize(
    ("english", "message"),
    [
        ("the dragon slept near the castel", "unknown words: 'dragon', 'castel'; close: "),
        ("the dogg slept", "unknown words: 'dogg'; close: dog, dogs"),
        ("the dogg slepp", "unknown words: 'dogg', 'slepp'; close: dog, dogs, sleep, sleepy, slept"),
        ("", "not complete at the start: expected one of the, a, an, many"),
        ("the dog", "not complete after 'the dog': expected one of didn't, crossed, "),
        ("dog slept", "breaks at the start: expected one of the, a, an, many; got 'dog'"),
        ("the dog didn't slept", "breaks after \"the dog didn't\": expected one of cross, .* got 'slept'"),
        ("the street slept", "breaks after 'the street': expected one of was, wasn't; got 'slept'"),
        ("the dogs was tired", "expected one of .*were, weren't; got 'was'"),
        ("many dog slept", "breaks after 'many': expected one of .* got 'dog'"),
        ("the wide dog slept", "breaks after 'the wide': expected one of river, .* got 'dog'"),
        ("the dog was wide", "breaks after 'the dog was': expected one of .* got 'wide'"),
        ("the dog crossed the cat", "breaks after 'the dog crossed the': expected one of .* got 'cat'"),
        (
            "the dog slept because it was tired",
            "expected one of near, behind, beyond, the end; got 'because'",
        ),
        ("the dogs left the hill because it was wide", "expected one of the end; got 'because'"),
        ("the dog left the hills because it was tired", "expected one of the end; got 'because'"),
        ("the dog left the hill because the", "breaks after .*because': expected one of it; got 'the'"),
        ("the dog slept slept", "got 'slept'"),
        ("a animal slept", "expected 'an animal slept', got 'a animal slept': write 'an' before a vowel"),
        ("an dog slept", "expected 'a dog slept'"),
        ("a angry dog slept", "expected 'an angry dog slept'"),
    ],
)
def test_translate_says_where_a_sentence_leaves_the_grammar(english, message):
    with pytest.raises(ValueError, match=message):
        translate(english)


def test_capitals_full_stop_and_curly_apostrophe_are_forgiven():
    assert translate(" The dog  didn’t sleep. ") == "il cane non dormì"


def test_only_one_full_stop_is_forgiven():
    with pytest.raises(ValueError, match=r"unknown words: 'slept\.'; close: sleep"):
        translate("the dog slept..")


def test_an_stands_before_every_vowel():
    for adjective in ("angry", "impatient"):
        assert translate(f"an {adjective} dog slept")
    for adjective in ("icy", "uneven", "inhospitable"):
        assert translate(f"a dog left an {adjective} field")


def test_at_most_six_words_that_could_stand_there_are_listed():
    for n, listed in ((6, list("abcdef")), (7, [*"abcdef", "…"])):
        reader = parser._Reader(["x"])
        assert reader.take(dict.fromkeys("abcdefg"[:n], True)) is None
        assert reader.wanted == listed


@given(st.lists(st.sampled_from(english_italian.ENGLISH_WORDS), max_size=9))
def test_any_words_are_translated_or_refused(words):
    try:
        italian = translate(" ".join(words))
    except ValueError:
        return
    assert agreeing(italian.split())


def test_swapped_words_are_refused_or_parse_anew():
    for pair in some_pairs()[:200]:
        words = pair.source.split()
        words[-1], words[-2] = words[-2], words[-1]
        with pytest.raises(ValueError, match=r"expected|not complete"):
            translate(" ".join(words))


@pytest.mark.parametrize("n", [0, -3, 100_001])
def test_numbers_outside_the_range_are_refused(n):
    for call in (
        lambda: english_italian.sample(n, seed=0),
        lambda: english_italian.split(n, n_test=5, seed=0),
        lambda: english_italian.split(5, n_test=n, seed=0),
        lambda: english_italian.pronoun_pairs(n, seed=0),
    ):
        with pytest.raises(ValueError, match=r"must lie from 1 to 100,000, got"):
            call()


def test_pronoun_facts_need_a_pronoun():
    with pytest.raises(ValueError, match=r"expected a sentence with 'because it was', got 'the dog slept'"):
        english_italian.pronoun_facts("the dog slept")
