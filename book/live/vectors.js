// needs: matrix
// What layers do with single vectors: normalization, softmax, positional encodings.
"use strict";
(() => {
  const { Matrix } = exformer;

  // Layer normalization, or root mean square normalization where the model has that, of each `width` columns.
  function normalize({ weight, bias }, x, { norm = "layer", width = x.cols, out = new Matrix(x.rows, x.cols) } = {}) {
    const [from, to] = [x.data, out.data];
    const epsilon = norm === "rms" ? 1e-6 : 1e-5;
    for (let start = 0; start < from.length; start += width) {
      let mean = 0;
      if (norm === "layer") for (let i = 0; i < width; i++) mean += from[start + i];
      mean /= width;
      let squares = 0;
      for (let i = 0; i < width; i++) {
        const apart = from[start + i] - mean;
        squares += apart * apart;
      }
      const scale = 1 / Math.sqrt(squares / width + epsilon); // where the mean is left alone, by the mean square
      for (let i = 0; i < width; i++) to[start + i] = (from[start + i] - mean) * scale * weight[i];
      if (bias) for (let i = 0; i < width; i++) to[start + i] += bias[i];
    }
    return out;
  }

  // In place, over a range of the numbers.
  function softmax(data, start = 0, end = data.length) {
    let most = -Infinity;
    for (let i = start; i < end; i++) if (data[i] > most) most = data[i];
    if (most === -Infinity) return data.fill(0, start, end); // where nothing may be attended to
    let sum = 0;
    for (let i = start; i < end; i++) sum += data[i] = Math.exp(data[i] - most);
    for (let i = start; i < end; i++) data[i] /= sum;
    return data;
  }

  // Row `position` of the sinusoidal encoding: sine, cosine, sine, …
  function sinusoidalCode(position, d, base = 10000) {
    return Float32Array.from({ length: d }, (_, i) => {
      const angle = position * base ** (-2 * Math.floor(i / 2) / d);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  }

  // Cosine and sine of the angle by which each pair of a head's columns is rotated at a position; computed once.
  const turns = {};
  function turnsOf(position, dHead, base = 10000) {
    const known = (turns[dHead] ??= []);
    return (known[position] ??= Float64Array.from({ length: dHead }, (_, i) => {
      const angle = position * base ** ((i % 2 - i) / dHead);
      return i % 2 ? Math.sin(angle) : Math.cos(angle);
    }));
  }

  // Rotate each pair of neighboring columns of every head by an angle that grows with the position, in place.
  function rotate(x, dHead, start) {
    const { data } = x;
    for (let t = 0; t < x.rows; t++) {
      const turn = turnsOf(start + t, dHead);
      for (let head = t * x.cols; head < (t + 1) * x.cols; head += dHead)
        for (let i = 0; i < dHead; i += 2) {
          const a = data[head + i];
          const b = data[head + i + 1];
          data[head + i] = a * turn[i] - b * turn[i + 1];
          data[head + i + 1] = a * turn[i + 1] + b * turn[i];
        }
    }
    return x;
  }

  function alibiSlopes(n) {
    const power = 2 ** Math.floor(Math.log2(n));
    const slope = (head, of) => 2 ** ((-8 * head) / of);
    return Array.from({ length: n }, (_, h) => (h < power ? slope(h + 1, power) : slope(2 * (h - power) + 1, 2 * power)));
  }

  Object.assign(exformer, { normalize, softmax, sinusoidalCode, rotate, alibiSlopes });
})();
