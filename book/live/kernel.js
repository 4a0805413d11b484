// Matrices, and where the time goes: the products of a linear map, in WebAssembly or in plain JavaScript.
"use strict";
globalThis.exformer ??= {};
(() => {
  const WASM = "AGFzbQEAAAABIgRgCH9/f39/f399AGABewF9YAF7AXtgCX9/f39/f39/fQACFAEIZXhmb3JtZXIGbWVtb3J5AgABAwYFAAECAAMHIQMIcHJvZHVjdHMAAAlub3JtYWxpemUAAwZhdHRlbmQABAqIDAXMBAIIfwV7IARBAnQhBANAIAhBBGogBUsEQCAFQQRrIQgLIAAhCkEAIQkDQCABIAggBGxqIQwgDCAEaiENIA0gBGohDiAOIARqIQ8gCiAEaiEL/QwAAAAAAAAAAAAAAAAAAAAAIRD9DAAAAAAAAAAAAAAAAAAAAAAhEf0MAAAAAAAAAAAAAAAAAAAAACES/QwAAAAAAAAAAAAAAAAAAAAAIRMDQCAK/QAEACEUIBAgFCAM/QAEAP3mAf3kASEQIBEgFCAN/QAEAP3mAf3kASERIBIgFCAO/QAEAP3mAf3kASESIBMgFCAP/QAEAP3mAf3kASETIAr9AAQQIRQgECAUIAz9AAQQ/eYB/eQBIRAgESAUIA39AAQQ/eYB/eQBIREgEiAUIA79AAQQ/eYB/eQBIRIgEyAUIA/9AAQQ/eYB/eQBIRMgDEEgaiEMIA1BIGohDSAOQSBqIQ4gD0EgaiEPIApBIGoiCiALSQ0ACyAQIBH9DQABAgMEBQYHEBESExQVFhcgECAR/Q0ICQoLDA0ODxgZGhscHR4f/eQBIRAgEiAT/Q0AAQIDBAUGBxAREhMUFRYXIBIgE/0NCAkKCwwNDg8YGRobHB0eH/3kASESIBAgEv0NAAECAwgJCgsQERITGBkaGyAQIBL9DQQFBgcMDQ4PFBUWFxwdHh/95AEhECAGBEAgECAGIAhBAnRq/QAEAP3kASEQCyACIAkgBWwgCGpBAnRqIBAgB/0T/ekB/QsEACAJQQFqIgkgA0kNAAsgCEEEaiIIIAVJDQALCxkAIAD9HwAgAP0fAZIgAP0fAiAA/R8DkpIL7QEBAnsgAEMAAK7C/RP96QEhACAAQzuquD/9E/3mAf1qIQEgACABQwCAMT/9E/3mAf3lASEAIAAgAUODgF45/RP95gH95AEhAENnaVA5/RMhAiACIAD95gFDzkO3Ov0T/eQBIQIgAiAA/eYBQwiJCDz9E/3kASECIAIgAP3mAUPBqSo9/RP95AEhAiACIAD95gFDqqoqPv0T/eQBIQIgAiAA/eYBQwAAAD/9E/3kASECIAIgAP3mAUMAAIA//RP95AEhAiACIAD95gFDAACAP/0T/eQBIQIgAiAB/fgBQf8A/RH9rgFBF/2rAf3mAQupAgICfwN7IAAgBCAFbEECdGohCANA/QwAAAAAAAAAAAAAAAAAAAAAIQsgBgRAQQAhCQNAIAsgACAJav0ABAD95AEhCyAJQRBqIgkgBUECdEkNAAsgCxABIAWzlf0TIQsL/QwAAAAAAAAAAAAAAAAAAAAAIQpBACEJA0AgACAJav0ABAAgC/3lASEMIAogDCAM/eYB/eQBIQogCUEQaiIJIAVBAnRJDQALQwAAgD8gByAKEAEgBbOVkpGV/RMhDEEAIQkDQCABIAlq/QAEACAMIAAgCWr9AAQAIAv95QH95gH95gEhCiACBEAgCiACIAlq/QAEAP3kASEKCyADIAlqIAr9CwQAIAlBEGoiCSAFQQJ0SQ0ACyADIAlqIQMgACAJaiIAIAhJDQALC4MDAwN/AX0CeyAGQQJ0IQYgB0ECdCEHIAQgBUECdGohC0MAAID/IQwgBCEKA0D9DAAAAAAAAAAAAAAAAAAAAAAhDUEAIQkDQCANIAAgCWr9AAQAIAEgCWr9AAQA/eYB/eQBIQ0gCUEQaiIJIAZJDQALIAogCCANEAGUOAIAIAwgCioCAJchDCABIAdqIQEgCkEEaiIKIAtJDQALIAtDAACA//0T/QsEAP0MAAAAAAAAAAAAAAAAAAAAACENIAQhCgNAIAr9AAQAIAz9E/3lARACIQ4gCiAO/QsEACANIA795AEhDSAKQRBqIgogC0kNAAsgDRAB/RMhDUEAIQkDQCADIAlq/QwAAAAAAAAAAAAAAAAAAAAA/QsEACAJQRBqIgkgBkkNAAsgBCEKA0AgCv0JAgAgDf3nASEOQQAhCQNAIAMgCWogAyAJav0ABAAgDiACIAlq/QAEAP3mAf3kAf0LBAAgCUEQaiIJIAZJDQALIAIgB2ohAiAKQQRqIgogC0kNAAsL"; // kernel.wat, see there
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

    // x W^T + bias, where this is W; nothing of it below the floor
    products(x, bias, floor) {
      return this.kernel.products(x, this, bias, floor);
    }
  }

  // The kernel of the pass that is computed now: of the page, where several figures may bring this file.
  const page = exformer;
  const kernel = () => page.current;
  // A matrix for an intermediate result. Whatever it holds from before is to be written over, or filled.
  const room = (rows, cols) => kernel()?.room(rows, cols) ?? new Matrix(rows, cols);
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
        this.run = new WebAssembly.Instance(module, { exformer: { memory } }).exports;
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
      page.current = this;
      try {
        return copyOf(compute());
      } finally {
        page.current = null;
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

    // A matrix as it is, or copied to where the kernel finds it; copies of few sizes, as the rows grow in number.
    inside(x) {
      if (x.kernel === this) return x;
      const size = x.rows * x.cols;
      const copy = room(2 ** Math.ceil(Math.log2(x.rows)), x.cols);
      copy.data.set(x.data.length === size ? x.data : part(x.data, 0, size));
      return copy;
    }

    // Where a vector of the weights begins; 0 where there is none.
    addressOf(vector) {
      return vector?.buffer === this.numbers.buffer ? vector.byteOffset : 0;
    }

    // x W^T + bias: of each row of x the dot products with all rows of W; nothing below the floor.
    products(x, w, bias, floor = -Infinity) {
      const out = room(x.rows, w.rows);
      const address = this.addressOf(bias);
      if (this.run && out.kernel && x.cols % 8 === 0 && w.rows >= 4 && !bias === !address) {
        const from = this.inside(x);
        if (from.kernel) {
          this.run.products(from.address, w.address, out.address, x.rows, x.cols, w.rows, address, floor);
          return out;
        }
      }
      const { data } = out;
      for (let r = 0, o = 0; r < x.rows; r++) {
        dots(x.data, r * x.cols, x.cols, w.data, 0, w.cols, w.rows, data, o);
        if (bias) for (let i = 0; i < w.rows; i++) data[o + i] += bias[i];
        o += w.rows;
      }
      if (floor > -Infinity) for (let i = 0; i < data.length; i++) if (data[i] < floor) data[i] = floor;
      return out;
    }

    // x normalized, group by group of `width` numbers, to out; false where it must be computed otherwise.
    normalize(x, gain, bias, out, width, center, epsilon) {
      const [gains, biases] = [this.addressOf(gain), this.addressOf(bias)];
      if (!this.run || !x.kernel || !out.kernel || width % 4 || !gains || !bias !== !biases) return false;
      this.run.normalize(x.address, gains, biases, out.address, x.data.length / width, width, center, epsilon);
      return true;
    }

    // softmax(factor q k^T) v to out, head by head, as `attend` of layers.js has it; false where it must be computed otherwise.
    attend(q, k, v, out, { columns, shared, dHead, causal, start, factor }) {
      if (!this.run || dHead % 4) return false;
      const [from, keys, values, weights] = [this.inside(q), this.inside(k), this.inside(v), room(1, 64 * Math.ceil(k.rows / 64) + 4)];
      if (!(from.kernel && keys.kernel && values.kernel && weights.kernel && out.kernel)) return false;
      for (let t = 0; t < q.rows; t++)
        for (let h = 0; h < columns.length; h++) {
          const at = 4 * (t * q.cols + columns[h]);
          const seen = causal ? Math.min(start + t + 1, k.rows) : k.rows;
          this.run.attend(from.address + at, keys.address + 4 * shared[h], values.address + 4 * shared[h],
            out.address + at, weights.address, seen, dHead, k.cols, factor);
        }
      return true;
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
  Object.assign(exformer, { Matrix, Kernel, Inside, kernel, room, copyOf, part, dots });
})();
