// needs: sampling
// Beam search: each step keeps the most probable prefixes. It also returns the tree of everything it tried.
"use strict";
(() => {
  const { logProbabilities, ranked } = exformer;
  const score = (logProbability, n, alpha) => logProbability / n ** alpha;

  // `next(ids, from)` returns the logits of the next token of a sequence, and the state from which its continuations start.
  exformer.beamSearch = (next, { beam, maxNewTokens, endId, alpha = 1 }) => {
    const tree = [];
    const grow = (parent, id, logProbability, from) => {
      const ids = parent ? [...parent.ids, id] : [];
      const node = { parent, id, ids, logProbability, from, depth: ids.length, kept: true };
      tree.push(node);
      return node;
    };
    let live = [grow(null, null, 0, null)];
    let best = null;
    let slots = beam;
    for (let n = 1; n <= maxNewTokens && live.length; n++) {
      const candidates = live.flatMap((node) => {
        const { logits, from } = next(node.ids, node.from);
        const further = logProbabilities(logits);
        return ranked(further, beam).map((id) => [node, id, Math.fround(node.logProbability + further[id]), from]);
      });
      candidates.sort((a, b) => b[2] - a[2]);
      const kept = candidates.slice(0, slots).map((each) => grow(...each));
      live = [];
      for (const node of kept) {
        node.ended = node.id === endId;
        if (node.ended) slots--;
        if (!node.ended && n < maxNewTokens) {
          live.push(node);
          continue;
        }
        node.score = score(node.logProbability, node.ids.length, alpha);
        if (!best || node.score > best.score) best = node;
      }
      // At best, a live sequence loses no probability and grows to the maximum length.
      if (best && live.length && best.score >= score(Math.max(...live.map((node) => node.logProbability)), maxNewTokens, alpha)) break;
    }
    const ids = best.ended ? best.ids.slice(0, -1) : best.ids;
    return { ids, logProbability: best.logProbability, score: best.score, best, tree };
  };

  // Such a function for a translator or a language model: sequences share the cache of their common prefix.
  exformer.nextOf = (model, first, memory) => (ids, from) => {
    const cache = from?.copy() ?? model.newCache();
    const all = [...first, ...ids].slice(cache.length);
    const logits = memory ? model.decode(all, memory, { cache }) : model.forward(all, { cache });
    return { logits: logits.row(logits.rows - 1), from: cache };
  };
})();
