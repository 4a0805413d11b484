// needs: frame
// <exformer-lookup>: one query among the words of a sentence; the query and the values are dragged in a plane.
"use strict";
(() => {
  const { Figure } = exformer;
  const [LOW, HIGH, EDGE] = [-3, 6, 0.5]; // how far a vector goes, and the room around
  const BANK = [2, 2]; // water and money
  const CROSS = [3, 3];
  const DIVISOR = 2; // the root of the four columns of the lesson's table
  const SHARP = 0.99;
  // Each word with its vector; those with neither water nor money are one row.
  const SENTENCES = [
    { before: "she swam across a river to the", noun: "river", words: [["river", 1, 5, 0], ["bank", 1, ...BANK], ["swam", 1, 2, 0], ["five others", 5, 0, 0]] },
    { before: "she took some cash back to the", noun: "cash", words: [["cash", 1, 0, 5], ["bank", 1, ...BANK], ["six others", 6, 0, 0]] },
  ].map((each) => ({ ...each, counts: each.words.map(([, n]) => n), keys: each.words.map(([, , ...key]) => key) }));

  // ---- what is computed ----

  // Attention of one query; a key that stands for several words counts as many times.
  function attend(q, keys, values, counts) {
    const scores = keys.map((k) => (q[0] * k[0] + q[1] * k[1]) / DIVISOR);
    const most = Math.max(...scores);
    const powers = scores.map((score, i) => counts[i] * Math.exp(score - most));
    const sum = powers.reduce((a, b) => a + b);
    const weights = powers.map((power) => power / sum);
    return { scores, weights, mean: [0, 1].map((c) => values.reduce((all, v, i) => all + weights[i] * v[c], 0)) };
  }

  // The corners of the smallest polygon without dents that holds all points.
  function hull(points) {
    const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const half = (all) => all.reduce((kept, p) => {
      const turns = ([a, b]) => (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0;
      while (kept.length > 1 && !turns(kept.slice(-2))) kept.pop();
      return [...kept, p];
    }, []);
    return [...half(sorted).slice(0, -1), ...half(sorted.reverse()).slice(0, -1)];
  }

  const same = (a, b) => a[0] === b[0] && a[1] === b[1];
  const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
  const held = (x) => Math.min(HIGH, Math.max(LOW, Math.round(10 * x) / 10 || 0));
  const written = (x, digits = 1) => (Math.abs(x) < 0.5 / 10 ** digits ? 0 : x).toFixed(digits).replace("-", "−");
  const point = (v) => `(${v.map((x) => written(x)).join(", ")})`;

  // ---- what is drawn: a plane with the second axis upwards, and handles upon it ----

  const percent = (x) => (100 * (x - LOW + EDGE)) / (HIGH - LOW + 2 * EDGE);
  const placed = ([x, y]) => `left:${percent(x)}%;top:${100 - percent(y)}%`;
  const line = (name, a, b, width) => `<line class="${name}" x1="${a[0]}" y1="${-a[1]}" x2="${b[0]}" y2="${-b[1]}"${width === undefined ? "" : ` style="stroke-width:${width}"`}/>`;

  function arrow(role, [x, y]) {
    const long = Math.hypot(x, y);
    if (long < 0.4) return "";
    const [cos, sin] = [x / long, y / long];
    const head = [[0, 0], [-0.42, 0.19], [-0.42, -0.19]].map(([a, b]) => `${x + a * cos - b * sin} ${-(y + a * sin + b * cos)}`);
    return `${line(role, [0, 0], [x - 0.35 * cos, y - 0.35 * sin])}<path class="${role}" d="M${head.join("L")}Z"/>`;
  }

  const HTML = `
    <div class="board">
      <div class="plane">
        <svg viewBox="${LOW - EDGE} ${-HIGH - EDGE} ${HIGH - LOW + 2 * EDGE} ${HIGH - LOW + 2 * EDGE}" aria-hidden="true"></svg>
        <span class="water" style="${placed([HIGH + EDGE, 0])}">water</span><span class="money" style="${placed([0, HIGH + EDGE])}">money</span>
        <div class="names" aria-hidden="true"></div>
        ${[0, 1, 2, 3].map((i) => `<div class="handle value" data-moves="${i}" role="slider" tabindex="0" aria-valuemin="${LOW}" aria-valuemax="${HIGH}"></div>`).join("")}
        <div class="handle query" data-moves="q" role="slider" tabindex="0" aria-label="query" aria-valuemin="${LOW}" aria-valuemax="${HIGH}"><i>q</i></div>
        <span class="mean" aria-hidden="true">new bank</span>
      </div>
      <div class="side">
        <div class="sentences" role="group" aria-label="sentence">${SENTENCES.map(({ before }, i) => `<button type="button" data-sentence="${i}">${before} <b>bank</b></button>`).join("")}</div>
        <table class="scores"><thead><tr><th scope="col">word</th><th scope="col">score</th><td></td><th scope="col">weight</th></tr></thead><tbody></tbody></table>
        <p class="told"></p>
        <p class="hint">Drag the query <i>q</i> or a value (square). The thick arrows are keys.</p>
      </div>
    </div>
    <div class="task">
      <p><b>Try it.</b> Drag <i>q</i> until <i class="noun"></i> has ${SHARP} of the weight. Then bring the new <i>bank</i> to the cross: can <i>q</i> do it?</p>
      <p class="answer"></p><p class="answer"></p>
      <button type="button" class="again">Start again</button>
    </div>`;

  class Lookup extends Figure {
    start() {
      this.stage.innerHTML = HTML;
      for (const handle of this.all(".handle")) {
        handle.addEventListener("pointerdown", (event) => this.grab(event, handle));
        handle.addEventListener("keydown", (event) => this.press(event, handle.dataset.moves));
      }
      for (const button of this.all("[data-sentence]")) button.addEventListener("click", () => this.begin(Number(button.dataset.sentence), this.q));
      this.one(".again").addEventListener("click", () => this.begin(0, BANK));
      this.read();
      this.show();
    }

    one = (css) => this.stage.querySelector(css);
    all = (css) => [...this.stage.querySelectorAll(css)];

    // ---- moving ----

    // A sentence with its own values; what was solved in another one is open again.
    begin(n, q) {
      [this.n, this.q, this.solved] = [n, q, [false, false]];
      this.values = SENTENCES[n].keys;
      this.show();
      this.write();
      this.tell();
    }

    at = (moves) => (moves === "q" ? this.q : this.values[moves]);

    to(moves, [x, y]) {
      const there = [held(x), held(y)];
      if (same(there, this.at(moves))) return;
      if (moves === "q") this.q = there;
      else this.values = this.values.with(Number(moves), there);
      this.show();
      this.write();
      this.tell();
    }

    grab(event, handle) {
      if (event.button > 0) return;
      event.preventDefault();
      handle.focus({ preventScroll: true });
      const { moves } = handle.dataset;
      const [from, unit] = [this.at(moves), this.one(".plane").getBoundingClientRect().width / (HIGH - LOW + 2 * EDGE)];
      const move = ({ clientX, clientY }) => this.to(moves, [from[0] + (clientX - event.clientX) / unit, from[1] - (clientY - event.clientY) / unit]);
      handle.setPointerCapture(event.pointerId);
      handle.addEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) handle.addEventListener(name, () => handle.removeEventListener("pointermove", move), { once: true });
    }

    press(event, moves) {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }[event.key];
      if (!way || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const [x, y] = this.at(moves);
      const step = event.shiftKey ? 1 : 0.1;
      this.to(moves, [x + step * way[0], y + step * way[1]]);
    }

    // ---- showing ----

    show() {
      const { words, keys, counts, noun } = SENTENCES[this.n];
      const { scores, weights, mean } = attend(this.q, keys, this.values, counts);
      Object.assign(this, { weights, mean });
      const moved = this.values.map((v, i) => !same(v, keys[i]));
      this.one("svg").innerHTML = [
        line("axis", [LOW - EDGE, 0], [HIGH + EDGE, 0]), line("axis", [0, LOW - EDGE], [0, HIGH + EDGE]),
        `<polygon class="hull" points="${hull(this.values).map(([x, y]) => `${x},${-y}`).join(" ")}"/>`,
        ...keys.map((k) => arrow("key", k)),
        ...this.values.map((v, i) => (moved[i] ? line("way", keys[i], v) : "") + line("pull", mean, v, 14 * weights[i])),
        arrow("query", this.q),
        `<path class="cross" d="M${CROSS[0] - 0.2} ${-CROSS[1] - 0.2}l.4 .4m0-.4l-.4 .4"/><circle class="mean" cx="${mean[0]}" cy="${-mean[1]}" r=".17"/>`,
      ].join("");
      this.one(".names").innerHTML = keys.map((k, i) => (moved[i] ? `<span class="of-key" style="${placed(k)}">key</span>` : "")
        + `<span style="${placed(this.values[i])}"${this.values[i][1] > 0.5 ? ' class="above"' : ""}>${words[i][0]}</span>`).join("");
      for (const handle of this.all(".handle")) {
        const [at, i] = [this.at(handle.dataset.moves), handle.dataset.moves];
        handle.hidden = !at;
        if (!at) continue;
        handle.style.cssText = placed(at);
        if (i !== "q") handle.setAttribute("aria-label", `value of ${words[i][0]}`);
        handle.setAttribute("aria-valuenow", at[0]);
        handle.setAttribute("aria-valuetext", `water ${written(at[0])}, money ${written(at[1])}`);
      }
      this.one(".plane > .mean").style.cssText = placed(mean);
      for (const button of this.all("[data-sentence]")) button.setAttribute("aria-pressed", String(Number(button.dataset.sentence) === this.n));
      this.one("tbody").innerHTML = words.map(([name], i) => `<tr><th scope="row">${name}</th><td>${written(scores[i])}</td><td><div><i style="width:${100 * weights[i]}%"></i></div></td><td>${written(weights[i], 3)}</td></tr>`).join("");
      this.one(".told").innerHTML = `query ${point(this.q)}, length ${written(Math.hypot(...this.q))}<br><b>new bank ${point(mean)}</b>`;
      this.one(".noun").textContent = noun;
      this.judge(moved.some(Boolean));
    }

    // ---- the task ----

    judge(moved) {
      const { noun } = SENTENCES[this.n];
      const away = far(this.mean, CROSS);
      this.solved = [this.solved[0] || this.weights[0] >= SHARP - 0.0005, this.solved[1] || away < 0.1];
      const edge = !moved && away < 1.6;
      const told = [
        this.solved[0] ? "Sharp: a longer query puts the scores farther apart." : `Now ${noun} has ${written(this.weights[0], 3)}.`,
        this.solved[1] ? "There: a mean never leaves the shaded area, so a value had to move. No weight changed."
          : `The new bank is ${written(away)} away from the cross.${edge ? " Here the shaded area ends. What moves its corners?" : ""}`,
      ];
      this.all(".answer").forEach((answer, i) => {
        answer.textContent = told[i];
        answer.classList.toggle("solved", this.solved[i]);
      });
    }

    tell() {
      const all = SENTENCES[this.n].words.map(([name], i) => `${name} ${written(this.weights[i], 2)}`).join(", ");
      this.announce(`Weights: ${all}. New bank at ${point(this.mean)}. ${this.all(".solved").map((each) => each.textContent).join(" ")}`);
    }

    // ---- the address, which may hold anything: the sentence, then query and values in tenths ----

    read() {
      const [n, ...rest] = this.state.split(",").map((each) => (each.trim() ? Number(each) : NaN));
      const good = SENTENCES[n] && rest.every(Number.isFinite) && rest.length === 2 + 2 * SENTENCES[n].keys.length;
      const pairs = good ? Array.from({ length: rest.length / 2 }, (_, i) => [held(rest[2 * i] / 10), held(rest[2 * i + 1] / 10)]) : [BANK, ...SENTENCES[0].keys];
      [this.n, this.q, this.values, this.solved] = [good ? n : 0, pairs[0], pairs.slice(1), [false, false]];
    }

    write() {
      const now = [this.n, ...[this.q, ...this.values].flat().map((x) => Math.round(10 * x))].join();
      this.state = now === [0, ...[BANK, ...SENTENCES[0].keys].flat().map((x) => 10 * x)].join() ? "" : now;
    }
  }

  exformer.lookup = { attend, hull }; // for the tests, which compare them with PyTorch
  customElements.define("exformer-lookup", Lookup);
})();
