// needs: english-italian-words
// The grammar of lesson 02, as exformer.corpora.english_italian: a sentence is a tree that determines both
// languages. A sentence: { subject, negative, verb, object, preposition, place }; a noun phrase: { kind, determiner, plural,
// noun, adjective }, with numbers of words in the lists.
"use strict";
(() => {
  const { nouns, adjectives, verbs, prepositions } = exformer.englishItalianWords;

  // Pairs [English, Italian] become a part of the two sentences; `content` are Italian words that carry content.
  function phrase({ kind, determiner, plural, noun, adjective }, afterNear = false) {
    const [gender, ...forms] = nouns[kind][noun];
    const [english, italian, the, nearThe, counted] = forms[Number(plural)];
    const described = adjective === null ? null : adjectives[kind][adjective];
    const form = described?.[1 + 2 * Number(gender === "f") + Number(plural)];
    const words = described ? [described[0], english] : [english];
    const article = determiner === "a" && /^[aeiou]/.test(words[0]) ? "an" : determiner;
    const its = determiner !== "the" ? counted : afterNear ? nearThe : the;
    return { src: [article, ...words], tgt: [its, italian, ...(form ? [form] : [])], content: [italian, ...(form ? [form] : [])] };
  }

  function verbOf({ subject, verb: [takes, at], negative }) {
    const [base, past, singular, plural] = verbs[takes][at];
    const italian = subject.plural ? plural : singular;
    return negative
      ? { src: ["didn't", base], tgt: ["non", italian], content: [italian] }
      : { src: [past], tgt: [italian], content: [italian] };
  }

  function placeOf({ preposition, place }) {
    const near = preposition === "near"; // "vicino a", and that "a" melts into a definite article: vicino al fiume
    const its = phrase(place, near);
    const italian = [prepositions[preposition], ...(near && place.determiner !== "the" ? ["a"] : [])];
    const content = near ? [italian[0], italian[1] ?? its.tgt[0]] : italian; // both words say "near"
    return [{ src: [preposition], tgt: italian, content }, its];
  }

  // Both sentences as lists of words, and the Italian words that carry content.
  function derive(sentence) {
    const parts = [phrase(sentence.subject), verbOf(sentence)];
    if (sentence.verb[0] !== "nothing") parts.push(phrase(sentence.object));
    if (sentence.verb[0] === "animal" && sentence.place) parts.push(...placeOf(sentence));
    const joined = (name) => parts.flatMap((part) => part[name]);
    return { source: joined("src"), target: joined("tgt"), content: joined("content") };
  }

  // The tree of an English sentence; null if the grammar does not generate it.
  function parse(text) {
    const words = text.trim().split(/\s+/);
    let at = 0;
    const found = (list) => list.indexOf(words[at]);
    const nounPhrase = (...kinds) => {
      const determiner = words[at] === "an" ? "a" : words[at];
      if (!["the", "a", "many"].includes(determiner)) return null;
      at++;
      for (const kind of kinds) {
        let adjective = found(adjectives[kind].map(([english]) => english));
        if (adjective < 0) adjective = null;
        const next = words[at + Number(adjective !== null)];
        const noun = nouns[kind].findIndex(([, one, many]) => one[0] === next || many[0] === next);
        if (noun < 0) continue;
        at += 1 + Number(adjective !== null);
        const plural = nouns[kind][noun][2][0] === next;
        return { the: true, a: !plural, many: plural }[determiner] ? { kind, determiner, plural, noun, adjective } : null;
      }
      return null;
    };
    const subject = nounPhrase("animal");
    const negative = words[at] === "didn't";
    at += Number(negative);
    let verb = null;
    for (const takes of Object.keys(verbs)) {
      const n = found(verbs[takes].map(([base, past]) => (negative ? base : past)));
      if (n >= 0) verb = [takes, n];
    }
    at++;
    if (!subject || !verb) return null;
    const sentence = { subject, negative, verb, object: null, preposition: "near", place: null };
    if (verb[0] !== "nothing" && !(sentence.object = nounPhrase(verb[0]))) return null;
    if (at < words.length && Object.hasOwn(prepositions, words[at])) {
      sentence.preposition = words[at++];
      if (!(sentence.place = nounPhrase("place"))) return null;
    }
    return derive(sentence).source.join(" ") === words.join(" ") ? sentence : null;
  }

  // An English word for each Italian one; none for articles and for the "a" of "vicino a".
  const meaning = new Map([["non", "didn't"], ...["molti", "molte"].map((word) => [word, "many"])]);
  for (const [, one, many] of Object.values(nouns).flat()) [one, many].forEach(([english, italian]) => meaning.set(italian, english));
  for (const [english, ...forms] of Object.values(adjectives).flat()) forms.forEach((form) => meaning.set(form, english));
  for (const [base, past, ...forms] of Object.values(verbs).flat())
    forms.forEach((form) => meaning.set(form, past).set(`non ${form}`, base)); // didn't find
  for (const [english, italian] of Object.entries(prepositions)) meaning.set(italian, english);

  exformer.englishItalian = { derive, parse, meaning };
})();
