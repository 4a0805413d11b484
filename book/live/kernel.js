// Matrices, and where the time goes: the products of a linear map, in WebAssembly or in plain JavaScript.
"use strict";
globalThis.exformer ??= {};
(() => {
  const WASM = "AGFzbQEAAAABCgFgBn9/f39/fwACFAEIZXhmb3JtZXIGbWVtb3J5AgABAwIBAAcMAQhwcm9kdWN0cwAACqwEAakEAgh/BXsgBEECdCEEA0AgBkEEaiAFSwRAIAVBBGshBgsgACEIQQAhBwNAIAEgBiAEbGohCiAKIARqIQsgCyAEaiEMIAwgBGohDSAIIARqIQn9DAAAAAAAAAAAAAAAAAAAAAAhDv0MAAAAAAAAAAAAAAAAAAAAACEP/QwAAAAAAAAAAAAAAAAAAAAAIRD9DAAAAAAAAAAAAAAAAAAAAAAhEQNAIAj9AAQAIRIgDiASIAr9AAQA/eYB/eQBIQ4gDyASIAv9AAQA/eYB/eQBIQ8gECASIAz9AAQA/eYB/eQBIRAgESASIA39AAQA/eYB/eQBIREgCP0ABBAhEiAOIBIgCv0ABBD95gH95AEhDiAPIBIgC/0ABBD95gH95AEhDyAQIBIgDP0ABBD95gH95AEhECARIBIgDf0ABBD95gH95AEhESAKQSBqIQogC0EgaiELIAxBIGohDCANQSBqIQ0gCEEgaiIIIAlJDQALIA4gD/0NAAECAwQFBgcQERITFBUWFyAOIA/9DQgJCgsMDQ4PGBkaGxwdHh/95AEhDiAQIBH9DQABAgMEBQYHEBESExQVFhcgECAR/Q0ICQoLDA0ODxgZGhscHR4f/eQBIRAgAiAHIAVsIAZqQQJ0aiAOIBD9DQABAgMICQoLEBESExgZGhsgDiAQ/Q0EBQYHDA0ODxQVFhccHR4f/eQB/QsEACAHQQFqIgcgA0kNAAsgBkEEaiIGIAVJDQALCwB2BG5hbWUCUQEAEwABeAEBdwIDb3V0AwRyb3dzBAV3aWR0aAUBbgYBbwcBcggBcAkDZW5kCgJ3YQsCd2IMAndjDQJ3ZA4BYQ8BYhABYxEBZBIHbnVtYmVycwMcAQADAAdvdXRwdXRzAgd2ZWN0b3JzAwVhbG9uZw=="; // kernel.wat, see there
  const SCRATCH = 1 << 21; // numbers that a pass may have as intermediate results
  const PAGE = 65536; // bytes

  // A view of some numbers of an array, as `subarray` gives it; Firefox 153 takes that in a loop for the one of the first round.
  const part = (array, start, end) => new Float32Array(array.buffer, array.byteOffset + 4 * start, end - start);

  class Matrix {
    constructor(rows, cols, data = new Float32Array(rows * cols)) {
      this.rows = rows;
      this.cols = cols;
      this.data = data;
    }

    row(i) {
      return part(this.data, i * this.cols, (i + 1) * this.cols);
    }
  }

  // A matrix in the memory of a kernel: weights, or an intermediate result.
  class Inside extends Matrix {
    constructor(kernel, start, rows, cols) {
      super(rows, cols, part(kernel.numbers, start, start + rows * cols));
      this.kernel = kernel;
      this.address = this.data.byteOffset;
    }

    // x W^T, where this is W
    products(x) {
      return this.kernel.products(x, this);
    }
  }

  let current = null; // the kernel of the pass that is computed now

  // A matrix for an intermediate result. Whatever it holds from before is to be written over, or filled.
  const room = (rows, cols) => (current ? current.room(rows, cols) : new Matrix(rows, cols));
  const copyOf = ({ rows, cols, data }) => new Matrix(rows, cols, data.slice());

  // The memory that holds a model's weights, and the products with them.
  class Kernel {
    constructor(size, { wasm = true } = {}) {
      this.top = this.size = 4 * Math.ceil(size / 4);
      Object.assign(this, { rooms: new Map(), passes: 0 });
      try {
        if (!wasm) throw new Error("not wanted");
        const pages = Math.ceil((4 * (this.size + SCRATCH)) / PAGE);
        const memory = new WebAssembly.Memory({ initial: pages, maximum: pages }); // views would be lost if it grew
        const module = new WebAssembly.Module(exformer.bytesOf(WASM));
        this.run = new WebAssembly.Instance(module, { exformer: { memory } }).exports.products;
        this.numbers = new Float32Array(memory.buffer);
      } catch { // an old browser, or a page that forbids it: slower, and just as right
        this.run = null;
        this.numbers = new Float32Array(this.size + SCRATCH);
      }
    }

    // Compute a matrix. Only that is kept: the next pass takes the room of all results on the way to it.
    pass(compute) {
      if (this.top > this.size + SCRATCH / 2) Object.assign(this, { rooms: new Map(), top: this.size });
      this.passes++;
      current = this;
      try {
        return copyOf(compute());
      } finally {
        current = null;
      }
    }

    // Matrices of one size are taken again in each pass: to make an array costs more than to fill a small one.
    room(rows, cols) {
      const size = rows * cols;
      let same = this.rooms.get(size);
      if (!same) this.rooms.set(size, (same = { all: [], used: 0, pass: 0 }));
      if (same.pass !== this.passes) {
        same.used = 0;
        same.pass = this.passes;
      }
      const again = same.all[same.used++];
      if (again) {
        again.rows = rows;
        again.cols = cols;
        return again;
      }
      if (this.top + size > this.numbers.length) return new Matrix(rows, cols);
      const made = new Inside(this, this.top, rows, cols);
      this.top += 4 * Math.ceil(size / 4);
      same.all.push(made);
      return made;
    }

    // x W^T: of each row of x the dot products with all rows of W.
    products(x, w) {
      const out = room(x.rows, w.rows);
      if (x.kernel !== this && this.run) {
        const inside = room(x.rows, x.cols);
        inside.data.set(x.data);
        x = inside;
      }
      if (this.run && x.kernel && out.kernel && x.cols % 8 === 0 && w.rows >= 4)
        this.run(x.address, w.address, out.address, x.rows, x.cols, w.rows);
      else
        for (let r = 0; r < x.rows; r++) dots(x.data, r * x.cols, x.cols, w.data, 0, w.cols, w.rows, out.data, r * w.rows);
      return out;
    }
  }

  // The dot products of `width` numbers of x, from the i-th on, with those of n rows of w, which begin at the j-th and
  // `stride` apart. Eight rows at a time, so that the processor need not wait for one sum: three times as fast.
  function dots(x, i, width, w, j, stride, n, out, o) {
    const end = o + n;
    for (; o + 8 <= end; o += 8, j += 8 * stride) {
      let a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
      for (let k = i, at = j; k < i + width; k++, at++) {
        const each = x[k];
        a += each * w[at];
        b += each * w[at + stride];
        c += each * w[at + 2 * stride];
        d += each * w[at + 3 * stride];
        e += each * w[at + 4 * stride];
        f += each * w[at + 5 * stride];
        g += each * w[at + 6 * stride];
        h += each * w[at + 7 * stride];
      }
      out[o] = a;
      out[o + 1] = b;
      out[o + 2] = c;
      out[o + 3] = d;
      out[o + 4] = e;
      out[o + 5] = f;
      out[o + 6] = g;
      out[o + 7] = h;
    }
    for (; o < end; o++, j += stride) {
      let sum = 0;
      for (let k = 0; k < width; k++) sum += x[i + k] * w[j + k];
      out[o] = sum;
    }
  }

  // Base64 to bytes.
  exformer.bytesOf = (text) =>
    Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  Object.assign(exformer, { Matrix, Kernel, Inside, room, copyOf, part, dots });
})();
