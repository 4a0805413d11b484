// needs: matrix
// A model's file calls exformer.provide; exformer.load fetches the file and builds the model.
"use strict";
(() => {
  // Shared by all figures of the page.
  const waiting = (exformer.waiting ??= new Map()); // promises of models, by name
  const provided = (exformer.provided ??= new Map()); // what a file has brought and nobody has built yet

  // Each number format: the array that reads it, and how it becomes float32 in a given array.
  const KINDS = { float16: [Uint16Array, widen], float32: [Float32Array, (floats, to) => to.set(floats)] };

  // A half has a sign, 5 bits of exponent with bias 15, and 10 bits of fraction. Moved to the bits of a float, whose
  // exponent has bias 127, they make a number that is 2^-112 times as large.
  function widen(halves, to) {
    if (globalThis.Float16Array) return to.set(new Float16Array(halves.buffer)); // not in browsers before 2025
    const bits = new Uint32Array(to.buffer, to.byteOffset, halves.length);
    for (let i = 0; i < halves.length; i++) bits[i] = ((halves[i] & 0x8000) << 16) | ((halves[i] & 0x7fff) << 13);
    for (let i = 0; i < halves.length; i++) to[i] *= 2 ** 112;
  }

  // The parameters as a tree, like the library's modules: p.layers[0].self_attention.w_q.weight. Every module knows its
  // path. A vector is an array of floats.
  function treeOf(tensors, kernel) {
    const root = {};
    let start = 0;
    for (const [name, ...shape] of tensors) {
      const path = name.split(".");
      const own = path.pop();
      const module = path.reduce((at, each) => (at[each] ??= { path: at.path ? `${at.path}.${each}` : each }), root);
      const end = start + sizeOf(shape);
      const values = exformer.part(kernel.numbers, start, end);
      module[own] = shape.length > 1 ? new exformer.Matrix(...shape, values, kernel) : values;
      start = end;
    }
    return root;
  }

  const sizeOf = (shape) => shape.reduce((a, b) => a * b);

  // Between two parts of the work the browser may draw a frame.
  const pause = (exformer.pause = () => new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel(); // setTimeout waits for 4 ms
    port1.onmessage = () => resolve(port1.close());
    port2.postMessage("go on");
  }));
  // Run a generator for some milliseconds at a time; return its result.
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

  async function build({ kind, config, card, dtype, tensors, tokenizers }, text) {
    if (!exformer.models[kind]) throw new Error(`no model of the kind ${kind} is known here`);
    const bytes = read(text);
    const [Numbers, decode] = KINDS[dtype];
    const found = bytes.length / Numbers.BYTES_PER_ELEMENT;
    const expected = tensors.reduce((sum, [, ...shape]) => sum + sizeOf(shape), 0);
    if (found !== expected) throw new Error(`the model's file is damaged: it has ${found} numbers, expected ${expected}`);
    await pause();
    const kernel = new exformer.Kernel(expected);
    decode(new Numbers(bytes.buffer), kernel.numbers);
    const model = new exformer.models[kind](config, treeOf(tensors, kernel));
    await pause();
    const made = tokenizers.map(exformer.makeTokenizer);
    await pause();
    return { model, tokenizer: model.encode ? [made[0], made.at(-1)] : made[0], card }; // both languages may share one
  }

  exformer.provide = (name, header, text) => provided.set(name, [header, text]);

  // The model of this name, with its tokenizer (a pair for translators) and its card.
  exformer.load = (name) => {
    if (!waiting.has(name))
      waiting.set(name, fetchScript(name).then(() => {
        if (!provided.has(name)) throw new Error(`the file of the model ${name} is damaged: load the page again`);
        const [header, text] = provided.get(name);
        provided.delete(name);
        return build(header, text);
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
})();
