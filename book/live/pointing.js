// needs: sampling
// Translation word by word, with heads ablated and with words whose attention the reader chooses.
"use strict";
(() => {
  const { best, logSum } = exformer;
  const letters = /^[\p{L}\p{M}\p{N}]/u;

  exformer.strangeLetter = /[^\p{Script=Latin}\p{M}\p{N}\p{P}\p{Z}\p{S}\s]/u; // one that no German or English caption has
  exformer.escapeHtml = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  exformer.sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

  // Tokens to words: a list of lists of positions. A piece without a space before it belongs to the word before.
  function wordsOf(tokenizer, ids) {
    const words = [];
    ids.forEach((id, i) => {
      const piece = tokenizer.decode([id]);
      const begins = !words.length || /^\s/.test(piece) || !letters.test(piece) || !letters.test(words.at(-1).text.at(-1));
      if (begins) words.push({ text: piece.trim(), tokens: [i] });
      else {
        words.at(-1).text += piece;
        words.at(-1).tokens.push(i);
      }
    });
    return words;
  }

  // Translate greedily. `off` has paths and heads of the decoder ("decoder.3.cross_attention 2"), `pointed` goes from the
  // number of a target word to that of the source word which all heads shall attend to where that word begins; `memory` is
  // that of the text, where it is known. A generator: it stops after each token, so that the browser may draw in between,
  // and returns what it has found.
  exformer.pointedSteps = function* (model, [source, target], text, { off = [], pointed = new Map(), memory } = {}) {
    const { n_heads: nHeads, n_layers: nLayers, max_len: maxLen } = model.config;
    const srcIds = source.encode(exformer.normalizeLine(text));
    const srcWords = wordsOf(source, srcIds);
    const hooks = exformer.withoutHeads(off, nHeads);
    memory ??= model.encode([...srcIds, source.endId]);
    yield;
    const cache = model.newCache();
    const ids = [];
    const weights = []; // of each target token: its layers' heads, each a row over the source tokens
    let logProbability = 0;
    let nWords = 0;
    const step = (towards) => {
      const rows = [];
      const all = { ...hooks };
      for (let layer = 0; layer < nLayers; layer++)
        all[`decoder.${layer}.cross_attention.weights`] = (heads) => {
          for (const head of heads) if (towards) head.data.fill(0), towards.forEach((s) => { head.data[s] = 1 / towards.length; });
          rows.push(heads.map((head) => head.data.slice()));
        };
      const logits = model.decode([ids.at(-1) ?? target.beginId], memory, { cache, hooks: all });
      return { id: best(logits.data), logits: logits.data, rows };
    };
    while (ids.length < maxLen - 1) {
      let found = step();
      const piece = target.decode([found.id]);
      const begins = !ids.length || found.id === target.endId || /^\s/.test(piece) || !letters.test(piece);
      if (begins && pointed.has(nWords) && srcWords[pointed.get(nWords)]) {
        cache.truncate(ids.length);
        found = step(srcWords[pointed.get(nWords)].tokens);
      }
      logProbability += found.logits[found.id] - logSum(found.logits);
      if (found.id === target.endId) break;
      if (begins) nWords++;
      ids.push(found.id);
      weights.push(found.rows);
      yield;
    }
    return { text: target.decode(ids), srcIds, srcWords, ids, words: wordsOf(target, ids), weights, logProbability, memory };
  };

  exformer.pointedTranslation = (...asked) => {
    const steps = exformer.pointedSteps(...asked);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
    }
  };

  // The log-probability of target tokens under the whole model.
  exformer.logProbabilityOf = (model, [, target], ids, memory) => {
    const logits = model.decode([target.beginId, ...ids], memory);
    return [...ids, target.endId].reduce((sum, id, t) => sum + logits.row(t)[id] - logSum(logits.row(t)), 0);
  };

  // Hooks that take out heads, given as "path head".
  exformer.withoutHeads = (off, nHeads) => {
    const hooks = {};
    for (const each of off) {
      const [path, head] = each.split(" ");
      const [[name, take]] = Object.entries(exformer.knockOut(path, Number(head), nHeads));
      const before = hooks[name];
      hooks[name] = (heads) => take(before ? before(heads) : heads);
    }
    return hooks;
  };
})();
