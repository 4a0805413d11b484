// needs: models
// The recurrent translator, with attention and without.
"use strict";
(() => {
  const { Matrix, Model, linear, embed, attend } = exformer;

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
      return this.unroll(p.encoder, this.embedded(p.src_embedding, ids), states)[0];
    }

    decode(ids, memory, { cache, hooks } = {}) {
      const { p, config } = this;
      this.check(ids, cache?.length ?? 0, "translation");
      const last = memory.row(memory.rows - 1); // every layer starts from it, and an LSTM's cell state too
      const first = Array.from({ length: config.n_layers }, () => ({ h: last, c: last }));
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
      return this.logitsOf(h, p.tgt_embedding.weight);
    }
  }

  exformer.models.RecurrentEncoderDecoder = RecurrentEncoderDecoder;
})();
