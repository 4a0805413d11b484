// needs: vectors
// From logits to a token: temperature, top-k, top-p, min-p, repetition penalty, sampling.
"use strict";
(() => {
  const { softmax } = exformer;
  const probabilities = (logits) => softmax(Float64Array.from(logits));

  // The ids of the n most probable tokens, best first and the lower id first in a tie.
  function ranked(logits, n = logits.length) {
    const ids = [];
    for (let id = 0; id < logits.length; id++) {
      let at = ids.length;
      if (at === n && !(logits[id] > logits[ids[n - 1]])) continue;
      while (at && logits[id] > logits[ids[at - 1]]) at--;
      ids.splice(at, 0, id);
      if (ids.length > n) ids.pop();
    }
    return ids;
  }

  function keepTopK(logits, k) {
    const out = logits.slice().fill(-Infinity);
    for (const id of ranked(logits, k)) out[id] = logits[id];
    return out;
  }

  function keepTopP(logits, p) {
    if (p >= 1) return logits;
    const sorted = probabilities(logits).filter((each) => each > 0).sort().reverse();
    let n = 0;
    for (let reached = 0; n < sorted.length && reached < p; n++) reached += sorted[n];
    return keepTopK(logits, n);
  }

  // In the library's order: each step sees what the one before has left.
  function transformLogits(logits, { temperature = 1, topK, topP, minP } = {}) {
    const by = Math.fround(temperature); // as the library, whose logits are float32
    logits = logits.map((each) => each / by);
    if (topK) logits = keepTopK(logits, topK);
    if (topP !== undefined) logits = keepTopP(logits, topP);
    if (minP) {
      const least = Math.fround(logits[best(logits)] + Math.fround(Math.log(minP)));
      logits = logits.map((each) => (each >= least ? each : -Infinity));
    }
    return logits;
  }

  // Tokens that the text holds already become less probable.
  function penalizeRepetition(logits, ids, penalty) {
    const out = logits.slice();
    const by = Math.fround(penalty); // the library computes in float32
    for (const id of new Set(ids)) out[id] = logits[id] > 0 ? logits[id] / by : logits[id] * by;
    return out;
  }

  // The first token at which the summed probability exceeds the random number.
  function draw(logits, uniform) {
    const summed = probabilities(logits);
    for (let i = 1; i < summed.length; i++) summed[i] += summed[i - 1];
    const wanted = summed[summed.length - 1] * uniform;
    return summed.findIndex((each) => each > wanted);
  }

  // The most probable token, the first in a tie.
  function best(logits) {
    let id = 0;
    for (let i = 1; i < logits.length; i++) if (logits[i] > logits[id]) id = i;
    return id;
  }

  // The logarithm of the sum of exp(logit): a logit minus this is a log-probability.
  function logSum(logits) {
    const most = logits[best(logits)];
    let sum = 0;
    for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i] - most);
    return most + Math.log(sum);
  }

  function logProbabilities(logits) {
    const shift = logSum(logits);
    return logits.map((each) => each - shift);
  }

  Object.assign(exformer, { probabilities, logSum, logProbabilities, ranked, transformLogits, penalizeRepetition, draw, best });
})();
