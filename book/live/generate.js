// needs: sampling, random
// Text from a model, token by token; each step can be inspected before the next is computed.
"use strict";
(() => {
  const { transformLogits, penalizeRepetition, draw, best } = exformer;

  // Choose tokens until the end token or the limit; yield the results of each step.
  function* steps(ids, next, { limit, endId, temperature = 1, topK, topP, minP, repetitionPenalty, uniform }) {
    for (let n = 0; n < limit; n++) {
      const logits = next(ids);
      const penalized = repetitionPenalty ? penalizeRepetition(logits, ids, repetitionPenalty) : logits;
      const changed = temperature ? transformLogits(penalized, { temperature, topK, topP, minP }) : penalized;
      const id = temperature ? draw(changed, uniform[n]) : best(changed);
      yield { id, logits, changed, ids };
      if (id === endId) return;
      ids = [...ids, id];
    }
  }

  // Continue a prompt with a language model, as the library's generate does with the same seed.
  exformer.generate = function* (model, tokenizer, prompt, options = {}) {
    const { maxNewTokens, temperature = 1, seed = 0, hooks } = options;
    const { max_len: maxLen, begin_id: beginId } = model.config;
    const ids = [beginId ?? tokenizer.beginId, ...tokenizer.encode(prompt)];
    const limit = maxNewTokens ?? maxLen - ids.length;
    if (limit < 1) throw new Error(`the text fills the model's ${maxLen} positions: shorten it`);
    const rng = exformer.generator(seed);
    const uniform = temperature ? Array.from({ length: maxNewTokens ?? maxLen }, () => rng.uniform()) : [];
    let cache = model.newCache();
    let start = 0; // of the context
    const next = (all) => {
      if (all.length - start > maxLen) { // half of the context is read again, from position 0 on
        start = all.length - Math.max(1, Math.floor(maxLen / 2));
        cache = model.newCache();
      }
      const logits = model.forward(all.slice(start + cache.length), { cache, hooks });
      return logits.row(logits.rows - 1);
    };
    yield* steps(ids, next, { ...options, temperature, limit, endId: tokenizer.endId, uniform });
  };

  // Translate a sentence greedily, as the library's translate does; `prefix` holds target tokens that are given.
  exformer.translate = function* (model, [source, target], text, { maxNewTokens = Infinity, hooks, prefix = [], memory } = {}) {
    const ids = memory ? [] : source.encode(exformer.normalizeLine(text));
    if (!memory && !ids.length) return; // an empty sentence stays empty
    memory ??= model.encode([...ids, source.endId], { hooks });
    const cache = model.newCache();
    const next = (all) => {
      const logits = model.decode(all.slice(cache.length), memory, { cache, hooks });
      return logits.row(logits.rows - 1);
    };
    const limit = Math.min(maxNewTokens, model.config.max_len) - prefix.length;
    yield* steps([target.beginId, ...prefix], next, { limit, endId: target.endId, temperature: 0 });
  };
})();
