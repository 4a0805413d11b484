// Matrices and their products, which take most of the time.
"use strict";
globalThis.exformer ??= {};
(() => {
  const WASM = "AGFzbQEAAAABCgFgBn9/f39/fwACFAEIZXhmb3JtZXIGbWVtb3J5AgABAwIBAAcMAQhwcm9kdWN0cwAACrAEAa0EAgh/BXsgBEECdCEEA0AgBkEEaiAFSwRAIAVBBGshBgsgACEIQQAhBwNAIAEgBiAEbGohCiAKIARqIQsgCyAEaiEMIAwgBGohDSAIIARqIQn9DAAAAAAAAAAAAAAAAAAAAAAhDv0MAAAAAAAAAAAAAAAAAAAAACEP/QwAAAAAAAAAAAAAAAAAAAAAIRD9DAAAAAAAAAAAAAAAAAAAAAAhEQNAIAj9AAQAIRIgDiASIAr9AAQA/eYB/eQBIQ4gDyASIAv9AAQA/eYB/eQBIQ8gECASIAz9AAQA/eYB/eQBIRAgESASIA39AAQA/eYB/eQBIREgCP0ABBAhEiAOIBIgCv0ABBD95gH95AEhDiAPIBIgC/0ABBD95gH95AEhDyAQIBIgDP0ABBD95gH95AEhECARIBIgDf0ABBD95gH95AEhESAKQSBqIQogC0EgaiELIAxBIGohDCANQSBqIQ0gCEEgaiIIIAlJDQALIA4gD/0NAAECAwQFBgcQERITFBUWFyAOIA/9DQgJCgsMDQ4PGBkaGxwdHh/95AEhDiAQIBH9DQABAgMEBQYHEBESExQVFhcgECAR/Q0ICQoLDA0ODxgZGhscHR4f/eQBIRAgDiAQ/Q0AAQIDCAkKCxAREhMYGRobIA4gEP0NBAUGBwwNDg8UFRYXHB0eH/3kASEOIAIgByAFbCAGakECdGogDv0LBAAgB0EBaiIHIANJDQALIAZBBGoiBiAFSQ0ACwsAdgRuYW1lAlEBABMAAXgBAXcCA291dAMEcm93cwQFd2lkdGgFAW4GAW8HAXIIAXAJA2VuZAoCd2ELAndiDAJ3Yw0Cd2QOAWEPAWIQAWMRAWQSB251bWJlcnMDHAEAAwAHb3V0cHV0cwIHdmVjdG9ycwMFYWxvbmc="; // kernel.wat, see there
  const ROOM = 1 << 20; // numbers, for the logits of the longest texts
  const PAGE = 65536; // bytes

  // A view of some numbers of an array, as `subarray` gives it; Firefox 153 confuses its views in a loop.
  const part = (array, start, end) => new Float32Array(array.buffer, array.byteOffset + 4 * start, end - start);

  class Matrix {
    constructor(rows, cols, data = new Float32Array(rows * cols), kernel) {
      this.rows = rows;
      this.cols = cols;
      this.data = data;
      this.kernel = kernel; // of weights: what multiplies them fast, and where they are in its memory
      this.address = kernel && data.byteOffset;
    }

    row(i) {
      return part(this.data, i * this.cols, (i + 1) * this.cols);
    }

    // x W^T + bias, where this is W, and no number below the floor.
    products(x, bias, floor = -Infinity) {
      const { rows: n, cols: width, data: w } = this;
      let data = this.kernel?.products(x, this);
      if (!data) {
        data = new Float32Array(x.rows * n);
        for (let r = 0; r < x.rows; r++) dots(x.data, r * width, width, w, 0, width, n, data, r * n);
      }
      if (bias) for (let o = 0; o < data.length; o += n) for (let i = 0; i < n; i++) data[o + i] += bias[i];
      if (floor > -Infinity) for (let i = 0; i < data.length; i++) if (data[i] < floor) data[i] = floor;
      return new Matrix(x.rows, n, data);
    }
  }

  // A model's weights in memory that WebAssembly can read, with room for input and output. WebAssembly multiplies four
  // numbers at a time, five times as fast as JavaScript: on a slow laptop a reader notices.
  class Kernel {
    constructor(size) {
      this.room = [size, size + ROOM]; // for what goes in, and what comes out
      try {
        const pages = Math.ceil((4 * (size + 2 * ROOM)) / PAGE);
        const memory = new WebAssembly.Memory({ initial: pages, maximum: pages }); // views would be lost if it grew
        const module = new WebAssembly.Module(exformer.bytesOf(WASM));
        this.run = new WebAssembly.Instance(module, { exformer: { memory } }).exports.products;
        this.numbers = new Float32Array(memory.buffer);
      } catch { // the page forbids it: slower, and just as right
        this.numbers = new Float32Array(size);
      }
    }

    // x W^T; nothing where it must be computed otherwise.
    products(x, w) {
      const { rows: n, cols: width } = w;
      if (!this.run || x.rows * Math.max(n, width) > ROOM || width % 8 || n < 4) return null;
      const [from, to] = this.room;
      this.numbers.set(x.data, from);
      this.run(4 * from, w.address, 4 * to, x.rows, width, n);
      return this.numbers.slice(to, to + x.rows * n);
    }
  }

  // The dot products of `width` numbers of x, from index i on, with n rows of w, which begin at index j, `stride` apart.
  // Eight rows at a time, so that no sum waits for the one before: three times as fast.
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
  Object.assign(exformer, { Matrix, Kernel, part, dots });
})();
