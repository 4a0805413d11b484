// Matrices, and where the time goes: the products of a linear map, in WebAssembly or in plain JavaScript.
"use strict";
globalThis.exformer ??= {};
(() => {
  const WASM = "AGFzbQEAAAABCgFgBn9/f39/fwACFAEIZXhmb3JtZXIGbWVtb3J5AgABAwIBAAcMAQhwcm9kdWN0cwAACqwEAakEAgh/BXsgBEECdCEEA0AgBkEEaiAFSwRAIAVBBGshBgsgACEIQQAhBwNAIAEgBiAEbGohCiAKIARqIQsgCyAEaiEMIAwgBGohDSAIIARqIQn9DAAAAAAAAAAAAAAAAAAAAAAhDv0MAAAAAAAAAAAAAAAAAAAAACEP/QwAAAAAAAAAAAAAAAAAAAAAIRD9DAAAAAAAAAAAAAAAAAAAAAAhEQNAIAj9AAQAIRIgDiASIAr9AAQA/eYB/eQBIQ4gDyASIAv9AAQA/eYB/eQBIQ8gECASIAz9AAQA/eYB/eQBIRAgESASIA39AAQA/eYB/eQBIREgCP0ABBAhEiAOIBIgCv0ABBD95gH95AEhDiAPIBIgC/0ABBD95gH95AEhDyAQIBIgDP0ABBD95gH95AEhECARIBIgDf0ABBD95gH95AEhESAKQSBqIQogC0EgaiELIAxBIGohDCANQSBqIQ0gCEEgaiIIIAlJDQALIA4gD/0NAAECAwQFBgcQERITFBUWFyAOIA/9DQgJCgsMDQ4PGBkaGxwdHh/95AEhDiAQIBH9DQABAgMEBQYHEBESExQVFhcgECAR/Q0ICQoLDA0ODxgZGhscHR4f/eQBIRAgAiAHIAVsIAZqQQJ0aiAOIBD9DQABAgMICQoLEBESExgZGhsgDiAQ/Q0EBQYHDA0ODxQVFhccHR4f/eQB/QsEACAHQQFqIgcgA0kNAAsgBkEEaiIGIAVJDQALCwB2BG5hbWUCUQEAEwABeAEBdwIDb3V0AwRyb3dzBAV3aWR0aAUBbgYBbwcBcggBcAkDZW5kCgJ3YQsCd2IMAndjDQJ3ZA4BYQ8BYhABYxEBZBIHbnVtYmVycwMcAQADAAdvdXRwdXRzAgd2ZWN0b3JzAwVhbG9uZw=="; // kernel.wat, see there
  const SCRATCH = 1 << 18; // numbers that go in and come out of the kernel at once
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

  // The memory that holds a model's weights, and the products with them.
  class Kernel {
    constructor(size, { wasm = true } = {}) {
      this.size = size;
      try {
        if (!wasm) throw new Error("not wanted");
        const pages = Math.ceil((4 * (size + SCRATCH)) / PAGE);
        const memory = new WebAssembly.Memory({ initial: pages, maximum: pages }); // views would be lost if it grew
        const module = new WebAssembly.Module(exformer.bytesOf(WASM));
        this.run = new WebAssembly.Instance(module, { exformer: { memory } }).exports.products;
        this.numbers = new Float32Array(memory.buffer);
      } catch { // an old browser, or a page that forbids it: slower, and just as right
        this.run = null;
        this.numbers = new Float32Array(size);
      }
    }

    // x W^T: of each row of x the dot products with all rows of W.
    products(x, w) {
      const out = new Matrix(x.rows, w.rows);
      const inside = this.run && w.data.buffer === this.numbers.buffer && x.cols % 8 === 0 && w.rows >= 4;
      const atOnce = inside ? Math.floor(SCRATCH / (x.cols + w.rows)) : 0;
      for (let start = 0; start < x.rows; ) {
        if (!atOnce) {
          plainProducts(x, w, out);
          break;
        }
        const rows = Math.min(atOnce, x.rows - start);
        const result = this.size + rows * x.cols;
        this.numbers.set(part(x.data, start * x.cols, (start + rows) * x.cols), this.size);
        this.run(4 * this.size, w.data.byteOffset, 4 * result, rows, x.cols, w.rows);
        out.data.set(part(this.numbers, result, result + rows * w.rows), start * w.rows);
        start += rows;
      }
      return out;
    }
  }

  // Four rows of W at a time, so that the processor need not wait for one sum: two to four times as fast.
  function plainProducts(x, w, out) {
    const [from, weights, to, width] = [x.data, w.data, out.data, x.cols];
    const fours = w.rows - (w.rows % 4);
    for (let r = 0; r < x.rows; r++) {
      const start = r * width;
      for (let o = 0; o < fours; o += 4) {
        let at = o * width;
        let a = 0;
        let b = 0;
        let c = 0;
        let d = 0;
        for (let i = start; i < start + width; i++, at++) {
          const each = from[i];
          a += each * weights[at];
          b += each * weights[at + width];
          c += each * weights[at + 2 * width];
          d += each * weights[at + 3 * width];
        }
        const place = r * w.rows + o;
        to[place] = a;
        to[place + 1] = b;
        to[place + 2] = c;
        to[place + 3] = d;
      }
      for (let o = fours; o < w.rows; o++) {
        let sum = 0;
        for (let i = 0; i < width; i++) sum += from[start + i] * weights[o * width + i];
        to[r * w.rows + o] = sum;
      }
    }
  }

  // Base64 to bytes.
  exformer.bytesOf = (text) =>
    Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  Object.assign(exformer, { Matrix, Kernel, part });
})();
