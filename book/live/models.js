// needs: layers
// The models: token ids in, logits out, one text at a time. Names and shapes are those of the Python library.
"use strict";
(() => {
  const { Matrix, linear, add, normalize, embed, addPositions, attend, layer, Cache } = exformer;

  class Model {
    constructor(config, parameters) {
      this.config = config;
      Object.defineProperty(this, "p", { value: parameters }); // is not listed: millions of numbers
    }

    // The results on the way to what is computed are given up: see kernel.js.
    pass(compute) {
      return this.p.kernel.pass(compute);
    }

    newCache() {
      return new Cache(this.config.n_layers);
    }

    // Scores of all tokens by the dot product with their rows: the tied output layer, or one of its own.
    logitsOf(states, table) {
      return (this.p.output?.weight ?? table).products(states);
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

  class DecoderLM extends Model {
    // Logits (position, vocab): those of row t are for the token after token t. A cache holds the tokens before.
    forward(ids, { cache, hooks } = {}) {
      const { p, config } = this;
      const start = cache?.length ?? 0;
      this.check(ids, start);
      return this.pass(() => {
        let x = addPositions(p.positions, embed(p.embedding, ids, Math.sqrt(config.d_model)), config, start);
        for (let i = 0; i < config.n_layers; i++)
          x = layer(p.layers[i], x, config, { causal: true, cache: cache?.layers[i], hooks });
        return this.logitsOf(this.norm(p.norm, x), p.embedding.table);
      });
    }
  }

  class EncoderLM extends Model {
    // Logits (position, vocab): those of row t are for token t itself, masked or not.
    forward(ids, { segments = ids.map(() => 0), hooks } = {}) {
      const { p, config } = this;
      this.check(ids, 0);
      return this.pass(() => {
        let x = addPositions(p.positions, embed(p.embedding, ids, 1), config, 0);
        if (config.n_segments) x = add(x, embed(p.segments, segments, 1));
        x = normalize(p.norm_embedding, x, config);
        for (let i = 0; i < config.n_layers; i++) x = layer(p.layers[i], x, config, { hooks });
        const h = linear(p.transform, this.norm(p.norm, x));
        h.data.forEach((each, i) => { h.data[i] = exformer.activation.gelu(each); });
        const output = { weight: p.embedding.table, bias: p.output_bias };
        return linear(output, normalize(p.norm_output, h, config));
      });
    }
  }

  class EncoderDecoder extends Model {
    // The memory (src, d_model): a vector for each source token.
    encode(ids, { hooks } = {}) {
      const { p, config } = this;
      this.check(ids, 0, "sentence");
      return this.pass(() => {
        const embedding = config.share_embeddings ? p.tgt_embedding : p.src_embedding;
        let x = addPositions(p.src_positions, embed(embedding, ids, Math.sqrt(config.d_model)), config, 0);
        for (let i = 0; i < config.n_layers; i++) x = layer(p.encoder[i], x, config, { hooks });
        return this.norm(p.encoder_norm, x);
      });
    }

    // Logits (tgt, vocab) of the token after each target token.
    decode(ids, memory, { cache, hooks } = {}) {
      const { p, config } = this;
      const start = cache?.length ?? 0;
      this.check(ids, start, "translation");
      return this.pass(() => {
        let x = addPositions(p.tgt_positions, embed(p.tgt_embedding, ids, Math.sqrt(config.d_model)), config, start);
        for (let i = 0; i < config.n_layers; i++)
          x = layer(p.decoder[i], x, config, { causal: true, memory, cache: cache?.layers[i], memoryCache: cache?.memories[i], hooks });
        return this.logitsOf(this.norm(p.decoder_norm, x), p.tgt_embedding.table);
      });
    }
  }

  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  // From W x + b and U h + b of the gates, one after the other, to the next state, as PyTorch orders them.
  const CELLS = {
    rnn: (wx, uh, { h }) => ({ h: h.map((_, i) => Math.tanh(wx[i] + uh[i])) }),
    gru: (wx, uh, { h }) => ({
      h: h.map((each, i) => {
        const [reset, update] = [i, i + h.length].map((at) => sigmoid(wx[at] + uh[at]));
        const candidate = Math.tanh(wx[i + 2 * h.length] + reset * uh[i + 2 * h.length]);
        return (1 - update) * candidate + update * each;
      }),
    }),
    lstm: (wx, uh, { h, c }) => {
      const gate = (n, i) => wx[i + n * h.length] + uh[i + n * h.length];
      const cell = c.map((each, i) => sigmoid(gate(1, i)) * each + sigmoid(gate(0, i)) * Math.tanh(gate(2, i)));
      return { h: h.map((_, i) => sigmoid(gate(3, i)) * Math.tanh(cell[i])), c: cell };
    },
  };

  class RecurrentEncoderDecoder extends Model {
    newCache() {
      return { length: 0, states: null, copy() { return { ...this, states: this.states?.slice() }; } };
    }

    // Run the layers over x from their first states; return all states of the last layer, and the last of all.
    unroll(p, x, states) {
      const { config } = this;
      const last = [];
      for (let n = 0; n < config.n_layers; n++) {
        const part = (name, input) => linear({ weight: p[`weight_${name}_l${n}`], bias: p[`bias_${name}_l${n}`] }, input);
        const wx = part("ih", x);
        const out = new Matrix(x.rows, config.d_model);
        let state = states[n];
        for (let t = 0; t < x.rows; t++) {
          state = CELLS[config.cell](wx.row(t), part("hh", new Matrix(1, config.d_model, state.h)).data, state);
          out.row(t).set(state.h);
        }
        last.push(state);
        x = out;
      }
      return [x, last];
    }

    embedded(module, ids) {
      return embed(module, ids, Math.sqrt(this.config.d_model));
    }

    // The memory (src, d_model): the state after each source token.
    encode(ids) {
      const { p } = this;
      this.check(ids, 0, "sentence");
      const zeros = () => new Float32Array(this.config.d_model);
      const states = Array.from({ length: this.config.n_layers }, () => ({ h: zeros(), c: zeros() }));
      return this.pass(() => this.unroll(p.encoder, this.embedded(p.src_embedding, ids), states)[0]);
    }

    decode(ids, memory, { cache, hooks } = {}) {
      const { p, config } = this;
      this.check(ids, cache?.length ?? 0, "translation");
      const last = memory.row(memory.rows - 1); // every layer starts from it, and an LSTM's cell state too
      const first = Array.from({ length: config.n_layers }, () => ({ h: last, c: last }));
      return this.pass(() => {
        let [h, states] = this.unroll(p.decoder, this.embedded(p.tgt_embedding, ids), cache?.states ?? first);
        if (cache) Object.assign(cache, { states, length: cache.length + ids.length });
        if (config.attention) {
          const context = attend("attention", h, memory, memory, { nHeads: 1, scale: 1, hooks });
          const both = new Matrix(h.rows, 2 * config.d_model);
          for (let t = 0; t < h.rows; t++) {
            both.row(t).set(context.row(t));
            both.row(t).set(h.row(t), config.d_model);
          }
          h = linear(p.combine, both);
          h.data.forEach((each, i) => { h.data[i] = Math.tanh(each); });
        }
        return this.logitsOf(h, p.tgt_embedding.table);
      });
    }
  }

  exformer.models = { DecoderLM, EncoderLM, EncoderDecoder, RecurrentEncoderDecoder };
})();
