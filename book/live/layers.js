// needs: vectors
// The parts of a transformer layer, each a function of `p`, the module with its parameters, and its input.
"use strict";
(() => {
  const { Matrix, dots, normalize, sinusoidalCode, rotate, alibiSlopes, softmax } = exformer;

  // What a figure may read and change: hooks["layers.0.self_attention.weights"] = (weights) => other weights.
  // Scores become weights in place: a hook that keeps them copies them.
  const through = (hooks, path, name, value) => hooks?.[`${path}.${name}`]?.(value) ?? value;

  const linear = ({ weight, bias }, x, floor) => weight.products(x, bias, floor);

  function add(a, b) {
    const out = new Matrix(a.rows, a.cols);
    for (let i = 0; i < out.data.length; i++) out.data[i] = a.data[i] + b.data[i];
    return out;
  }

  // The error function by its series, exact to a float's last digit.
  function erf(x) {
    if (Math.abs(x) > 6) return Math.sign(x);
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) sum += term *= (2 * x * x) / (2 * n + 1);
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
  }

  const silu = (x) => x / (1 + Math.exp(-x));
  const ACTIVATIONS = {
    relu: (x) => (x > 0 ? x : 0),
    gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
    silu,
    squared_relu: (x) => (x > 0 ? x * x : 0),
    swiglu: silu,
  };

  function feedForward(p, x, config) {
    const kind = config.activation;
    const rectified = kind === "relu" || kind === "squared_relu";
    const hidden = linear(p.w_1, x, rectified ? 0 : undefined);
    const { data } = hidden;
    const activation = ACTIVATIONS[kind];
    if (kind === "squared_relu") for (let i = 0; i < data.length; i++) data[i] *= data[i];
    else if (!rectified) for (let i = 0; i < data.length; i++) data[i] = activation(data[i]);
    if (kind === "swiglu") {
      const gate = linear(p.w_3, x).data;
      for (let i = 0; i < data.length; i++) data[i] *= gate[i];
    }
    return linear(p.w_2, hidden);
  }

  function embed({ weight }, ids, factor) {
    const out = new Matrix(ids.length, weight.cols);
    ids.forEach((id, t) => {
      if (!(id >= 0 && id < weight.rows)) throw new Error(`there is no token ${id}: ids go up to ${weight.rows - 1}`);
      const row = weight.row(id);
      for (let i = 0; i < row.length; i++) out.data[t * weight.cols + i] = row[i] * factor;
    });
    return out;
  }

  // In place; p is undefined where the model has no parameters for positions.
  function addPositions(p, x, { positions }, start) {
    if (positions !== "sinusoidal" && positions !== "learned") return x;
    for (let t = 0; t < x.rows; t++) {
      const code = positions === "learned" ? p.weight.row(start + t) : sinusoidalCode(start + t, x.cols);
      for (let i = 0; i < x.cols; i++) x.data[t * x.cols + i] += code[i];
    }
    return x;
  }

  // Rows that are appended one by one, with room for more: keys or values of earlier positions.
  class Rows extends Matrix {
    append(x) {
      const start = this.rows * this.cols;
      if (start + x.data.length > this.data.length) {
        const more = new Float32Array(2 * (start + x.data.length));
        more.set(this.data);
        this.data = more;
      }
      for (let i = 0; i < x.data.length; i++) this.data[start + i] = x.data[i];
      this.rows += x.rows;
      return this;
    }

    truncate(rows) {
      this.rows = Math.min(rows, this.rows);
    }

    copy() {
      return new Rows(this.rows, this.cols, this.data.slice());
    }
  }

  // What a model keeps between two steps: keys and values of each layer, and of the memory for cross-attention.
  class Cache {
    constructor(nLayers) {
      this.layers = Array.from({ length: nLayers }, () => ({ k: null, v: null }));
      this.memories = Array.from({ length: nLayers }, () => ({}));
    }

    get length() {
      return this.layers[0].k?.rows ?? 0;
    }

    truncate(length) {
      for (const { k, v } of this.layers) [k, v].forEach((rows) => rows?.truncate(length));
    }

    copy() {
      const other = new Cache(0);
      other.layers = this.layers.map(({ k, v }) => ({ k: k && k.copy(), v: v && v.copy() }));
      other.memories = this.memories.map((each) => ({ ...each }));
      return other;
    }
  }

  function softmaxRows(x) {
    for (let start = 0; start < x.data.length; start += x.cols) softmax(x.data, start, start + x.cols);
    return x;
  }

  // Add n weighted rows of v to `width` numbers of out, from index o on. The weights begin at index i, the rows at index
  // j, `stride` apart. Four rows at a time.
  function mix(weights, i, n, v, j, stride, width, out, o) {
    const end = i + n;
    for (; i + 4 <= end; i += 4, j += 4 * stride) {
      const a = weights[i];
      const b = weights[i + 1];
      const c = weights[i + 2];
      const d = weights[i + 3];
      for (let k = 0, at = j; k < width; k++, at++)
        out[o + k] += a * v[at] + b * v[at + stride] + c * v[at + 2 * stride] + d * v[at + 3 * stride];
    }
    for (; i < end; i++, j += stride) for (let k = 0; k < width; k++) out[o + k] += weights[i] * v[j + k];
  }

  // softmax(q k^T / √d_head + bias) v, head by head; query t is at position `start` + t of the keys.
  function attend(path, q, k, v, { nHeads, nKvHeads = nHeads, causal = false, start = 0, slopes, scale, hooks }) {
    const dHead = q.cols / nHeads;
    const factor = scale ?? 1 / Math.sqrt(dHead);
    const columns = Array.from({ length: nHeads }, (_, h) => h * dHead); // where those of a head begin
    const shared = columns.map((_, h) => Math.floor((h * nKvHeads) / nHeads) * dHead); // and in keys and values

    let scores = columns.map((column, h) => {
      const out = new Matrix(q.rows, k.rows);
      for (let t = 0; t < q.rows; t++) {
        const row = t * k.rows;
        const seen = causal ? Math.min(start + t + 1, k.rows) : k.rows;
        dots(q.data, t * q.cols + column, dHead, k.data, shared[h], k.cols, seen, out.data, row);
        for (let s = 0; s < seen; s++) out.data[row + s] *= factor;
        if (slopes) for (let s = 0; s < seen; s++) out.data[row + s] -= slopes[h] * Math.abs(start + t - s);
        for (let s = seen; s < k.rows; s++) out.data[row + s] = -Infinity;
      }
      return out;
    });
    scores = through(hooks, path, "scores", scores);
    const weights = through(hooks, path, "weights", scores.map(softmaxRows));

    const heads = new Matrix(q.rows, q.cols);
    columns.forEach((column, h) => {
      const { data } = weights[h];
      for (let t = 0; t < q.rows; t++) {
        const row = t * k.rows;
        let n = k.rows;
        while (n && !data[row + n - 1]) n--; // what comes later is not attended to
        mix(data, row, n, v.data, shared[h], v.cols, dHead, heads.data, t * q.cols + column);
      }
    });
    return through(hooks, path, "heads", heads);
  }

  function multiHeadAttention(p, query, source, config, { causal, positions, cache, memoryCache, hooks } = {}) {
    const nHeads = config.n_heads;
    const nKvHeads = config.n_kv_heads ?? nHeads;
    const dHead = config.d_model / nHeads;
    const start = cache?.k?.rows ?? 0;
    const turned = (name, x, module, norm) => {
      const out = linear(module, x);
      if (config.qk_norm) normalize(norm, out, { norm: "rms", width: dHead, out });
      if (positions === "rotary") rotate(out, dHead, start);
      return through(hooks, p.path, name, out);
    };
    const q = turned("q", query, p.w_q, p.norm_q);
    let { k, v } = memoryCache ?? {};
    if (!memoryCache || memoryCache.source !== source) {
      k = turned("k", source, p.w_k, p.norm_k);
      v = through(hooks, p.path, "v", linear(p.w_v, source));
      if (memoryCache) Object.assign(memoryCache, { source, k, v });
    }
    if (cache) {
      k = (cache.k ??= new Rows(0, k.cols)).append(k);
      v = (cache.v ??= new Rows(0, v.cols)).append(v);
    }
    const slopes = positions === "alibi" ? alibiSlopes(nHeads) : null;
    const heads = attend(p.path, q, k, v, { nHeads, nKvHeads, causal, start, slopes, hooks });
    return through(hooks, p.path, "output", linear(p.w_o, heads));
  }

  // x + f(norm(x)) where the model normalizes first, else norm(x + f(x)).
  function residual(p, x, config, hooks, sublayer) {
    const out = config.pre_norm ? add(x, sublayer(normalize(p, x, config))) : normalize(p, add(x, sublayer(x)), config);
    return through(hooks, p.path, "residual", out);
  }

  // A layer of an encoder, of a decoder-only model (causal), or, with a memory, of a decoder.
  function layer(p, x, config, { causal = false, memory, cache, memoryCache, hooks } = {}) {
    x = residual(memory ? p.norm_self : p.norm_attention, x, config, hooks, (h) =>
      multiHeadAttention(p.self_attention, h, h, config, { causal, positions: config.positions, cache, hooks }));
    if (memory)
      x = residual(p.norm_cross, x, config, hooks, (h) =>
        multiHeadAttention(p.cross_attention, h, memory, config, { memoryCache, hooks }));
    return residual(p.norm_feed_forward, x, config, hooks, (h) =>
      through(hooks, p.feed_forward.path, "output", feedForward(p.feed_forward, h, config)));
  }

  // Hooks that ablate a head: its columns become zero before the output projection.
  exformer.knockOut = (path, head, nHeads) => ({
    [`${path}.heads`]: (heads) => {
      const dHead = heads.cols / nHeads;
      for (let t = 0; t < heads.rows; t++) heads.row(t).fill(0, head * dHead, (head + 1) * dHead);
      return heads;
    },
  });
  Object.assign(exformer, { linear, add, embed, addPositions, attend, layer, Cache, activation: ACTIVATIONS });
})();
