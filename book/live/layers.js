// needs: kernel
// The parts of a transformer layer, each a function of the parameters `p`, the path of its own, and its input.
"use strict";
(() => {
  const { Matrix, part } = exformer;

  // What a figure may look at and change: hooks["layers.0.self_attention.weights"] = (weights) => other weights.
  const through = (hooks, name, value) => hooks?.[name]?.(value) ?? value;

  // Add one vector to each row, in place.
  function addToRows(x, vector) {
    for (let at = 0; at < x.data.length; ) for (let i = 0; i < x.cols; i++) x.data[at++] += vector[i];
    return x;
  }

  function linear(p, path, x) {
    const out = p.kernel.products(x, p.get(`${path}.weight`));
    const bias = p.find(`${path}.bias`)?.data;
    return bias ? addToRows(out, bias) : out;
  }

  function add(a, b) {
    const out = new Matrix(a.rows, a.cols);
    for (let i = 0; i < out.data.length; i++) out.data[i] = a.data[i] + b.data[i];
    return out;
  }

  // Layer normalization, or root mean square normalization where the model has that, of each `width` columns.
  function normalize(p, path, x, { norm = "layer", width = x.cols } = {}) {
    const gain = p.get(`${path}.gain`).data;
    const bias = p.find(`${path}.bias`)?.data;
    const out = new Matrix(x.rows, x.cols);
    for (let start = 0; start < x.data.length; start += width) {
      let mean = 0;
      if (norm === "layer") for (let i = start; i < start + width; i++) mean += x.data[i] / width;
      let variance = 0; // or the mean square, where the mean is left alone
      for (let i = start; i < start + width; i++) variance += (x.data[i] - mean) ** 2 / width;
      const scale = 1 / Math.sqrt(variance + (norm === "rms" ? 1e-6 : 1e-5));
      for (let i = 0; i < width; i++) out.data[start + i] = (x.data[start + i] - mean) * scale * gain[i] + (bias ? bias[i] : 0);
    }
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
    relu: (x) => Math.max(x, 0),
    gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
    silu,
    squared_relu: (x) => Math.max(x, 0) ** 2,
    swiglu: silu,
  };

  function feedForward(p, path, x, config) {
    const hidden = linear(p, `${path}.w_1`, x);
    const activation = ACTIVATIONS[config.activation];
    const gate = config.activation === "swiglu" ? linear(p, `${path}.w_3`, x).data : null;
    for (let i = 0; i < hidden.data.length; i++) {
      const active = activation(hidden.data[i]);
      hidden.data[i] = gate ? active * gate[i] : active;
    }
    return linear(p, `${path}.w_2`, hidden);
  }

  function embed(p, path, ids, factor) {
    const table = p.get(`${path}.table`);
    const out = new Matrix(ids.length, table.cols);
    ids.forEach((id, t) => {
      if (!(id >= 0 && id < table.rows)) throw new Error(`there is no token ${id}: ids go up to ${table.rows - 1}`);
      const [from, to] = [table.row(id), out.row(t)];
      for (let i = 0; i < to.length; i++) to[i] = from[i] * factor;
    });
    return out;
  }

  // Row `position` of the sinusoidal encoding: sine, cosine, sine, …
  function sinusoidalCode(position, d, base = 10000) {
    return Float32Array.from({ length: d }, (_, i) => {
      const angle = position * base ** (-2 * Math.floor(i / 2) / d);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  }

  function addPositions(p, path, x, { positions }, start) {
    if (positions !== "sinusoidal" && positions !== "learned") return x;
    const table = positions === "learned" ? p.get(`${path}.table`) : null;
    const codes = new Matrix(x.rows, x.cols);
    for (let t = 0; t < x.rows; t++) codes.row(t).set(table ? table.row(start + t) : sinusoidalCode(start + t, x.cols));
    return add(x, codes);
  }

  // Rotate each pair of neighboring columns of every head by an angle that grows with the position.
  function rotate(x, dHead, start, base = 10000) {
    const out = new Matrix(x.rows, x.cols);
    for (let t = 0; t < x.rows; t++)
      for (let pair = 0; pair < dHead; pair += 2) {
        const angle = (start + t) * base ** (-pair / dHead);
        const cos = Math.cos(angle);
        const sin = Math.sin(angle);
        for (let at = t * x.cols + pair; at < (t + 1) * x.cols; at += dHead) { // the same angle in every head
          out.data[at] = x.data[at] * cos - x.data[at + 1] * sin;
          out.data[at + 1] = x.data[at] * sin + x.data[at + 1] * cos;
        }
      }
    return out;
  }

  function alibiSlopes(n) {
    const power = 2 ** Math.floor(Math.log2(n));
    const slope = (head, of) => 2 ** ((-8 * head) / of);
    return Array.from({ length: n }, (_, h) => (h < power ? slope(h + 1, power) : slope(2 * (h - power) + 1, 2 * power)));
  }

  // Rows that are appended one by one: keys or values of earlier positions.
  class Rows {
    constructor(cols) {
      this.all = new Matrix(0, cols);
    }

    append(x) {
      const { rows, cols, data } = this.all;
      const end = (rows + x.rows) * cols;
      const room = end <= data.buffer.byteLength / 4 ? new Float32Array(data.buffer) : new Float32Array(2 * end);
      if (room.buffer !== data.buffer) room.set(data);
      room.set(x.data, rows * cols);
      this.all = new Matrix(rows + x.rows, cols, part(room, 0, end));
      return this.all;
    }

    truncate(rows) {
      rows = Math.min(rows, this.all.rows);
      this.all = new Matrix(rows, this.all.cols, part(this.all.data, 0, rows * this.all.cols));
    }

    copy() {
      const other = new Rows(this.all.cols);
      other.all = new Matrix(this.all.rows, this.all.cols, this.all.data.slice());
      return other;
    }
  }

  // What a model keeps between two steps: of each layer keys and values, of a cross-attention those of the memory.
  class Cache {
    constructor(nLayers) {
      this.layers = Array.from({ length: nLayers }, () => ({ k: null, v: null }));
      this.memories = Array.from({ length: nLayers }, () => ({}));
    }

    get length() {
      return this.layers[0].k?.all.rows ?? 0;
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

  function softmax(row) {
    let most = -Infinity;
    for (let i = 0; i < row.length; i++) if (row[i] > most) most = row[i];
    if (most === -Infinity) return row.fill(0); // where nothing may be attended to
    let sum = 0;
    for (let i = 0; i < row.length; i++) sum += row[i] = Math.exp(row[i] - most);
    for (let i = 0; i < row.length; i++) row[i] /= sum;
    return row;
  }

  function softmaxRows(scores) {
    const out = new Matrix(scores.rows, scores.cols, scores.data.slice());
    for (let t = 0; t < out.rows; t++) softmax(out.row(t));
    return out;
  }

  // The dot product of n numbers of a, from the i-th on, and n numbers of b, from the j-th on.
  function dot(a, i, b, j, n) {
    let sum = 0;
    for (const end = i + n; i < end; ) sum += a[i++] * b[j++];
    return sum;
  }

  // a += factor b, for n numbers of each.
  function addTimes(a, i, factor, b, j, n) {
    for (const end = i + n; i < end; ) a[i++] += factor * b[j++];
  }

  // softmax(q k^T / √d_head + bias) v, head by head; query t is at position `start` + t of the keys.
  function attend(path, q, k, v, { nHeads, nKvHeads = nHeads, causal = false, start = 0, slopes, scale, hooks }) {
    const dHead = q.cols / nHeads;
    const factor = scale ?? 1 / Math.sqrt(dHead);
    const columns = Array.from({ length: nHeads }, (_, h) => h * dHead); // where those of a head begin
    const shared = columns.map((_, h) => Math.floor((h * nKvHeads) / nHeads) * dHead); // and in keys and values
    const seen = (t) => (causal ? Math.min(start + t + 1, k.rows) : k.rows);

    let scores = columns.map((column, h) => {
      const out = new Matrix(q.rows, k.rows);
      for (let t = 0; t < q.rows; t++) {
        const row = out.row(t).fill(-Infinity, seen(t));
        for (let s = 0; s < seen(t); s++) {
          row[s] = dot(q.data, t * q.cols + column, k.data, s * k.cols + shared[h], dHead) * factor;
          if (slopes) row[s] -= slopes[h] * Math.abs(start + t - s);
        }
      }
      return out;
    });
    scores = through(hooks, `${path}.scores`, scores);
    const weights = through(hooks, `${path}.weights`, scores.map(softmaxRows));

    const heads = new Matrix(q.rows, q.cols);
    columns.forEach((column, h) => {
      for (let t = 0; t < q.rows; t++) {
        const row = weights[h].row(t);
        for (let s = 0; s < k.rows; s++)
          if (row[s]) addTimes(heads.data, t * q.cols + column, row[s], v.data, s * v.cols + shared[h], dHead);
      }
    });
    return through(hooks, `${path}.heads`, heads);
  }

  function multiHeadAttention(p, path, query, source, config, { causal, positions, cache, memoryCache, hooks } = {}) {
    const nHeads = config.n_heads;
    const nKvHeads = config.n_kv_heads ?? nHeads;
    const dHead = config.d_model / nHeads;
    const start = cache?.k?.all.rows ?? 0;
    const project = (name, x) => {
      let out = linear(p, `${path}.w_${name}`, x);
      if (config.qk_norm && name !== "v") out = normalize(p, `${path}.norm_${name}`, out, { norm: "rms", width: dHead });
      if (positions === "rotary" && name !== "v") out = rotate(out, dHead, start);
      return through(hooks, `${path}.${name}`, out);
    };
    const q = project("q", query);
    let { k, v } = memoryCache?.source === source ? memoryCache : { k: project("k", source), v: project("v", source) };
    if (memoryCache) Object.assign(memoryCache, { source, k, v });
    if (cache) {
      k = (cache.k ??= new Rows(k.cols)).append(k);
      v = (cache.v ??= new Rows(v.cols)).append(v);
    }
    const slopes = positions === "alibi" ? alibiSlopes(nHeads) : null;
    const heads = attend(path, q, k, v, { nHeads, nKvHeads, causal, start, slopes, hooks });
    return through(hooks, `${path}.output`, linear(p, `${path}.w_o`, heads));
  }

  // x + f(norm(x)) where the model normalizes first, else norm(x + f(x)).
  function residual(p, norm, x, config, hooks, sublayer) {
    const out = config.pre_norm ? add(x, sublayer(normalize(p, norm, x, config))) : normalize(p, norm, add(x, sublayer(x)), config);
    return through(hooks, `${norm}.residual`, out);
  }

  // A layer of an encoder, of a decoder-only model (causal), or, with a memory, of a decoder.
  function layer(p, path, x, config, { causal = false, memory, cache, memoryCache, hooks } = {}) {
    const self = `${path}.self_attention`;
    const feed = `${path}.feed_forward`;
    x = residual(p, `${path}.norm_${memory ? "self" : "attention"}`, x, config, hooks, (h) =>
      multiHeadAttention(p, self, h, h, config, { causal, positions: config.positions, cache, hooks }));
    if (memory)
      x = residual(p, `${path}.norm_cross`, x, config, hooks, (h) =>
        multiHeadAttention(p, `${path}.cross_attention`, h, memory, config, { memoryCache, hooks }));
    return residual(p, `${path}.norm_feed_forward`, x, config, hooks, (h) =>
      through(hooks, `${feed}.output`, feedForward(p, feed, h, config)));
  }

  // Hooks that take a head out of an attention: its columns become zero before the output projection.
  exformer.knockOut = (path, head, nHeads) => ({
    [`${path}.heads`]: (heads) => {
      const dHead = heads.cols / nHeads;
      for (let t = 0; t < heads.rows; t++) heads.row(t).fill(0, head * dHead, (head + 1) * dHead);
      return heads;
    },
  });
  Object.assign(exformer, { linear, add, addToRows, normalize, embed, addPositions, sinusoidalCode, rotate, alibiSlopes, attend, layer, softmax, Cache, activation: ACTIVATIONS });
})();
