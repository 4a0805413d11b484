// needs: layers
// What all models share: token ids in, logits out, one text at a time. Names and shapes are those of the Python library.
"use strict";
(() => {
  const { normalize, Cache } = exformer;

  class Model {
    constructor(config, parameters) {
      this.config = config;
      Object.defineProperty(this, "p", { value: parameters }); // is not listed: millions of numbers
    }

    newCache() {
      return new Cache(this.config.n_layers);
    }

    // The logits: dot products with the output layer, which may be tied to the embeddings.
    logitsOf(states, embedding) {
      return (this.p.output?.weight ?? embedding).products(states);
    }

    norm(module, x) {
      return this.config.pre_norm ? normalize(module, x, this.config) : x;
    }

    check(ids, start, what = "text") {
      const end = start + ids.length;
      if (!ids.length) throw new Error(`the ${what} has no tokens`);
      if (end > this.config.max_len) throw new Error(`the ${what} has ${end} tokens and max_len is ${this.config.max_len}: shorten it`);
    }
  }

  exformer.Model = Model;
  exformer.models ??= {}; // another figure of the page may have brought some
})();
