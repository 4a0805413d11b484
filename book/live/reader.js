// needs: decoder-lm
// A text that a language model reads with a cache, so that a change at the end costs little.
"use strict";
(() => {
  class Reader {
    constructor(model, beginId) {
      Object.assign(this, { model, beginId, ids: [], rows: [], cache: model.newCache() });
    }

    // The logits of the next token: `rows[n]` after n tokens of the text, which the token that begins it precedes.
    read(text) {
      const all = [this.beginId, ...text];
      let same = 0;
      while (same < this.rows.length && this.ids[same] === all[same]) same++;
      if (same < all.length) {
        this.cache.truncate(same);
        this.rows.length = same;
        const logits = this.model.forward(all.slice(same), { cache: this.cache });
        for (let t = 0; t < logits.rows; t++) this.rows.push(logits.row(t));
        this.ids = all;
      }
      return this.rows.slice(0, all.length);
    }
  }

  // Multiplications for one more token after `n` others: one position with the cache, n + 1 without.
  exformer.multiplications = ({ d_model: d, d_ff: wide, n_layers: nLayers, vocab_size: vocab }, n, cached) => {
    let sum = 0;
    for (let t = cached ? n : 0; t <= n; t++) sum += nLayers * (4 * d * d + 2 * d * wide + 2 * (t + 1) * d) + d * vocab;
    return sum;
  };

  exformer.Reader = Reader;
})();
