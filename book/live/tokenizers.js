// Text to token ids and back: byte pairs, characters, words.
"use strict";
(() => {
  const SPECIALS = ["<pad>", "<s>", "</s>"];
  // White space as Unicode has it: JavaScript's \s lacks U+0085 and adds U+FEFF.
  const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

  // The library's rule for what people write, see normalize_text: characters that nobody sees are removed, but for
  // joiners and selectors that change what one sees, and a letter and its marks are composed.
  const CONTROLS = "\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f";
  const IGNORABLE =
    "\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f" +
    "\\ufeff\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}";
  const JOINED =
    "\\u0600-\\u061b\\u061d-\\u0dff\\u1000-\\u109f\\u1780-\\u17b3\\u17b6-\\u180a\\u1810-\\u1cff\\u2190-\\u21ff\\u2300-\\u27bf\\u2b00-\\u2bff" +
    "\\ua800-\\uabff\\ufb50-\\ufdff\\ufe70-\\ufefc\\u{10a00}-\\u{11fff}\\u{1f000}-\\u{1faff}";
  const VARIED = `${JOINED}\\u2200-\\u22ff\\u27c0-\\u27ff\\u2900-\\u2aff\\u3001-\\u303f\\u3200-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{323af}`;
  const SELECTORS = "\\u180b-\\u180f\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}";
  const SEEN_OR_UNSEEN = new RegExp(
    `([#*0-9]\\ufe0f(?=\\u20e3)|\\u{1f3f4}[\\u{e0020}-\\u{e007e}]{2,6}\\u{e007f}` +
      `|[${JOINED}][${SELECTORS}]?[\\u200c\\u200d](?=[${JOINED}])|[${VARIED}][${SELECTORS}])|[${CONTROLS}${IGNORABLE}]`,
    "gu",
  );
  const LONE_MARKS = new RegExp(`(^|[${SPACE}])\\p{M}+`, "gu");

  exformer.normalizeText = (text) => {
    if (/[\ud800-\udfff]/u.test(text)) throw new Error("the text holds half a character: type it anew");
    const seen = text.replace(/[\x1c-\x1f\u2800]/g, " ").normalize("NFC").replace(SEEN_OR_UNSEEN, "$1");
    return seen.normalize("NFC").replace(LONE_MARKS, "$1");
  };
  const wordsOf = (text) => exformer.normalizeText(text).split(new RegExp(`[${SPACE}]+`, "u")).filter(Boolean);
  exformer.normalizeLine = (text) => wordsOf(text).join(" ");

  const special = { padId: 0, beginId: 1, endId: 2 };

  // A table such as "41-5A AA" as the inside of a character class.
  const classOf = (table) =>
    table.replace(/[0-9A-F]+/g, (code) => `\\u{${code}}`).replace(/\s/g, "");

  const patterns = new Map(); // one for each version of the tables: it takes some milliseconds
  function pattern({ letters, numbers }) {
    if (!patterns.has(letters)) {
      const [l, n] = [classOf(letters), classOf(numbers)];
      const source = `'(?:[stmd]|re|ve|ll)| ?[${l}]+| ?[${n}]+| ?[^${l}${n}${SPACE}]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`;
      patterns.set(letters, new RegExp(source, "gu"));
    }
    return patterns.get(letters);
  }

  class BPETokenizer {
    constructor({ merges, unicode }) {
      Object.assign(this, special, { unicode, ranks: new Map(), pieces: new Map() });
      const printable = [[0x21, 0x7f], [0xa1, 0xad], [0xae, 0x100]].flatMap(([a, b]) => Array.from({ length: b - a }, (_, i) => a + i));
      const bytes = [...printable, ...Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => !printable.includes(byte))];
      this.tokens = [...SPECIALS.map(() => []), ...bytes.map((byte) => [byte])]; // the bytes of each id
      this.ofByte = new Map(bytes.map((byte, i) => [byte, i + SPECIALS.length]));
      for (let i = 0; i < merges.length; i += 2) {
        this.ranks.set(`${merges[i]} ${merges[i + 1]}`, this.tokens.length);
        this.tokens.push([...this.tokens[merges[i]], ...this.tokens[merges[i + 1]]]);
      }
      this.vocabSize = this.tokens.length;
    }

    encode(text) {
      return (exformer.normalizeText(text).match(pattern(this.unicode)) ?? []).flatMap((piece) => {
        if (!this.pieces.has(piece)) this.pieces.set(piece, this.merge(piece));
        return this.pieces.get(piece);
      });
    }

    // Merge the pair that was learned first, until no learned pair is left.
    merge(piece) {
      let ids = Array.from(new TextEncoder().encode(piece), (byte) => this.ofByte.get(byte));
      for (;;) {
        let best = Infinity;
        for (let i = 1; i < ids.length; i++) best = Math.min(best, this.ranks.get(`${ids[i - 1]} ${ids[i]}`) ?? Infinity);
        if (best === Infinity) return ids;
        const joined = [];
        for (let i = 0; i < ids.length; i++) {
          const pair = i + 1 < ids.length && this.ranks.get(`${ids[i]} ${ids[i + 1]}`) === best;
          joined.push(pair ? best : ids[i]);
          if (pair) i++;
        }
        ids = joined;
      }
    }

    decode(ids) {
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(ids.flatMap((id) => this.tokens[id])));
    }
  }

  class Vocabulary {
    constructor({ symbols }) {
      Object.assign(this, special, { tokens: [...SPECIALS, ...symbols], vocabSize: symbols.length + SPECIALS.length });
      this.ids = new Map(this.tokens.map((token, id) => [token, id]));
    }

    encode(text) {
      text = exformer.normalizeText(text);
      if (SPECIALS.some((token) => text.includes(token))) throw new Error(`a text must not hold ${SPECIALS.join(", ")}`);
      return this.cut(text).map((token) => {
        if (!this.ids.has(token)) throw new Error(`the model does not know “${token}”`);
        return this.ids.get(token);
      });
    }

    decode(ids) {
      return ids.filter((id) => id >= SPECIALS.length).map((id) => this.tokens[id]).join(this.between);
    }
  }

  class CharTokenizer extends Vocabulary {
    between = "";

    cut(text) {
      return [...text];
    }
  }

  class WordTokenizer extends Vocabulary {
    between = " ";

    cut(text) {
      return wordsOf(text);
    }
  }

  const KINDS = { "byte-pair": BPETokenizer, character: CharTokenizer, word: WordTokenizer };
  exformer.makeTokenizer = ({ kind, ...content }) => new KINDS[kind](content);
})();
