// needs: kernel
// A model's file calls exformer.provide; exformer.load fetches the file and builds the model.
"use strict";
(() => {
  const waiting = new Map(); // promises of models, by name
  const provided = new Map(); // what a file has brought and nobody has built yet

  // Each kind of numbers: its bytes, and how they become floats in a place that is given.
  const KINDS = {
    float32: { size: 4, decode: (bytes, to) => to.set(new Float32Array(bytes.buffer)) },
    float16: {
      size: 2,
      decode: (bytes, to) => {
        const halves = new Uint16Array(bytes.buffer);
        for (let i = 0; i < halves.length; i++) to[i] = ofHalf[halves[i]];
      },
    },
  };
  // All 65,536 numbers of half precision: sign, five bits of exponent, ten of fraction.
  const ofHalf = Float32Array.from({ length: 65536 }, (_, half) => {
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
    return half >> 15 ? -size : size;
  });

  // The parameters by the names of the library's state dict; they share the memory of one kernel.
  class Parameters {
    constructor(tensors, count, options) {
      this.kernel = new exformer.Kernel(count, options);
      this.matrices = new Map();
      let start = 0;
      for (const [name, ...shape] of tensors) {
        const [rows, cols] = shape.length > 1 ? shape : [1, ...shape];
        this.matrices.set(name, new exformer.Matrix(rows, cols, exformer.part(this.kernel.numbers, start, start + rows * cols)));
        start += rows * cols;
      }
    }

    find(name) {
      return this.matrices.get(name);
    }

    get(name) {
      const found = this.find(name);
      if (!found) throw new Error(`the model's file has no parameter ${name}`);
      return found;
    }
  }

  // Between two parts of the work the browser may draw a frame.
  const pause = (exformer.pause = () => new Promise((resolve) => setTimeout(resolve)));
  // What a generator returns; it works for some milliseconds at a time.
  exformer.inSlices = async (steps, slice = 12) => {
    for (let until = performance.now() + slice; ; ) {
      const { done, value } = steps.next();
      if (done) return value;
      if (performance.now() < until) continue;
      await pause();
      until = performance.now() + slice;
    }
  };

  function read(text) {
    try {
      return exformer.bytesOf(text);
    } catch {
      throw new Error("the model's file is damaged: it is no base64");
    }
  }

  async function build({ kind, config, card, dtype, tensors, tokenizers }, text, options) {
    if (!exformer.models[kind]) throw new Error(`no model of the kind ${kind} is known here`);
    const bytes = read(text);
    const found = bytes.length / KINDS[dtype].size;
    const expected = tensors.reduce((sum, [, ...shape]) => sum + shape.reduce((a, b) => a * b), 0);
    if (found !== expected) throw new Error(`the model's file is damaged: it has ${found} numbers, expected ${expected}`);
    await pause();
    const parameters = new Parameters(tensors, expected, options);
    KINDS[dtype].decode(bytes, parameters.kernel.numbers);
    const model = new exformer.models[kind](config, parameters);
    await pause();
    const made = tokenizers.map(exformer.makeTokenizer);
    await pause();
    return { model, tokenizer: made.length > 1 ? made : made[0], card };
  }

  exformer.provide = (name, header, text) => provided.set(name, [header, text]);

  // The model of this name, with its tokenizer (a pair for translators) and its card.
  exformer.load = (name, options) => {
    if (!waiting.has(name))
      waiting.set(name, fetchScript(name).then(() => {
        if (!provided.has(name)) throw new Error(`the file of the model ${name} is damaged: load the page again`);
        const [header, text] = provided.get(name);
        provided.delete(name);
        return build(header, text, options);
      }).catch((error) => {
        waiting.delete(name); // who asks again tries again
        throw error;
      }));
    return waiting.get(name);
  };

  // Scripts may be loaded from file://, where fetch may not.
  function fetchScript(name) {
    if (provided.has(name)) return Promise.resolve();
    if (exformer.coming?.[name]) return exformer.coming[name].finally(() => delete exformer.coming[name]);
    const file = exformer.files?.[name];
    if (!file) return Promise.reject(new Error(`this page has no model called ${name}`));
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = file;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`the file of the model ${name} could not be loaded: is the page whole?`));
      document.head.append(script);
    });
  }
  exformer.Parameters = Parameters;
})();
