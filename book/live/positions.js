// needs: frame, vectors, position-heads
// <exformer-positions>: a query and a key that are moved along a text, and their score under three codes.
"use strict";
(() => {
  const { Matrix, Figure } = exformer;
  const LAST = 79; // the largest position
  const TRAINED = 11; // no string of the training was longer
  const START = { n: 6, m: 5 };
  const FAR = 40;
  const NEARLY = 0.95;
  const CODES = ["no code", "sinusoidal", "rotary"];
  const WAYS = {
    "no code": "nothing turns",
    sinusoidal: "a code is added",
    rotary: "<i>q</i> turned by <i>n</i>, <i>k</i> by <i>m</i>",
  };

  // ---- what is computed ----

  const dot = (a, b) => a.reduce((sum, each, i) => sum + each * b[i], 0);

  // The query or key of a token at each position, as the reader's first head makes it.
  function vectors(code, head, name) {
    return Array.from({ length: LAST + 1 }, (_, position) => {
      if (code === "no code") return head[name];
      if (code === "rotary") return exformer.rotate(new Matrix(1, 8, Float32Array.from(head[name])), 8, position).data;
      const x = head[`x_${name}`];
      const codes = exformer.sinusoidalCode(position, x.length);
      const coded = new Matrix(1, x.length, Float32Array.from(x, (each, i) => each + codes[i]));
      const normal = exformer.normalize(head, coded).data;
      return head[`w_${name}`].map((row, i) => dot(row, normal) + head[`b_${name}`][i]);
    });
  }

  // A head's queries and keys at all positions, and its scores: q · k / √d of query n and key m.
  class Head {
    constructor(code, numbers) {
      this.q = vectors(code, numbers, "q");
      this.k = vectors(code, numbers, "k");
      this.scores = this.q.map((q) => this.k.map((k) => dot(q, k) / Math.sqrt(8)));
      const all = this.scores.flat();
      this.least = Math.min(...all);
      this.most = Math.max(...all);
      // The arrow that just fits a circle; one in a hundred is longer.
      const fitting = (all) => all.flatMap((v) => [0, 2, 4, 6].map((i) => Math.hypot(v[i], v[i + 1]))).sort((a, b) => a - b)[Math.floor(3.96 * all.length) - 1];
      this.fitting = { query: fitting(this.q), key: fitting(this.k) };
    }

    // What two columns of query and key add to the score.
    share({ n, m }, i) {
      return (this.q[n][i] * this.k[m][i] + this.q[n][i + 1] * this.k[m][i + 1]) / Math.sqrt(8);
    }
  }

  const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
  const place = (position) => (100 * position) / LAST; // in percent of the ruler
  const written = (x) => (Math.abs(x) < 0.05 ? 0 : x).toFixed(1).replace("-", "−");
  const whole = (x) => String(x).replace("-", "−");

  // ---- what is drawn ----

  const ARROW = (role) => `<g class="${role}"><line y2="0"/><path d="M0 0L-3.6 8L3.6 8Z"/></g>`;
  const CIRCLE = `<svg viewBox="-32 -32 64 64" aria-hidden="true"><circle r="28.5"/><path class="ticks" d="M0-28.5v5M0 28.5v-5M-28.5 0h5M28.5 0h-5"/>${ARROW("key")}${ARROW("query")}</svg>`;

  const lane = (code) => `
    <div class="lane" data-code="${code}">
      <div class="about"><b>${code}</b><span class="way">${WAYS[code]}</span></div>
      <div class="scored"><span class="score"></span><span class="was"></span></div>
      <div class="circles">${`<div class="columns">${CIRCLE}<span></span></div>`.repeat(4)}</div>
      <div class="strip"><div class="inner">
        <i class="trained">${code === "no code" ? "<span>trained</span>" : ""}</i><i class="at query"></i><i class="at key"></i>
        <svg viewBox="0 0 ${LAST} 100" preserveAspectRatio="none" aria-hidden="true">
          <path class="zero"/><path class="alone"/><path class="both"/></svg>
        <i class="before"></i><i class="dot"></i>
      </div></div>
    </div>`;

  const slider = (name, label, inside) =>
    `<div class="handle ${name}" data-moves="${name}" role="slider" tabindex="0" aria-label="${label}" aria-valuemin="0" aria-valuemax="${LAST}">${inside}</div>`;

  const HTML = `
    <div class="board">
      <div class="hint"><b>Drag <i>q</i>, <i>k</i>, or both</b><span class="where"></span></div>
      <div class="ruler"><div class="inner">
        <i class="trained"></i>
        <i class="at query"></i><i class="at key"></i><i class="span"></i>
        <div class="ticks">${[0, 10, 20, 30, 40, 50, 60, 70, LAST].map((n) => `<span style="left:${place(n)}%">${n === LAST ? "" : n}</span>`).join("")}</div>
        <div class="way-of" data-moves="query"></div><div class="way-of" data-moves="key"></div>
        ${slider("query", "query", "<i>q</i>")}
        ${slider("both", "query and key together", "<span></span>")}
        ${slider("key", "key", "<i>k</i>")}
      </div></div>
      ${CODES.map(lane).join("")}
      <p class="legend"><span><i class="mark dot"></i>score of <i>q</i> for <i>k</i>, drawn at <i>k</i></span> <span><i class="mark both"></i>its path when both move</span> <span><i class="mark alone"></i>its path when <i>k</i> moves alone</span></p>
    </div>
    <div class="task">
      <p><b>Try it.</b> The rotary head looks for the token before: offset 1. Find a key more than ${FAR} positions from the query whose score is at least 95% as high.</p>
      <p class="answer"></p>
      <div class="buttons"><button type="button" class="exchange">Exchange <i>q</i> and <i>k</i></button><button type="button" class="again">Start again</button></div>
    </div>`;

  class Positions extends Figure {
    start() {
      this.heads = Object.fromEntries(CODES.map((code) => [code, new Head(code, exformer.positionHeads[code])]));
      this.stage.innerHTML = HTML;
      for (const handle of this.all(".handle")) {
        const moves = handle.dataset.moves;
        handle.addEventListener("pointerdown", (event) => this.grab(event, moves));
        handle.addEventListener("keydown", (event) => this.press(event, moves));
      }
      for (const way of this.all(".way-of")) way.addEventListener("pointerdown", (event) => this.grab(event, way.dataset.moves, true));
      this.one(".exchange").addEventListener("click", () => this.to({ n: this.at.m, m: this.at.n }, "exchange"));
      this.one(".again").addEventListener("click", () => this.again());
      this.stage.addEventListener("keydown", (event) => event.key === "Escape" && this.again());
      this.at = this.read();
      this.before = null;
      this.show();
    }

    one = (css) => this.stage.querySelector(css);
    all = (css) => [...this.stage.querySelectorAll(css)];

    // ---- moving ----

    // What is moved by some positions: query, key or both, as far as the text goes.
    moved({ n, m }, moves, by) {
      if (moves === "query") return { n: clamp(n + by, 0, LAST), m };
      if (moves === "key") return { n, m: clamp(m + by, 0, LAST) };
      by = clamp(by, -Math.min(n, m), LAST - Math.max(n, m));
      return { n: n + by, m: m + by };
    }

    grab(event, moves, jump = false) {
      if (event.button > 0) return;
      event.preventDefault();
      const handle = this.one(`.handle.${moves}`);
      handle.focus({ preventScroll: true });
      const box = this.one(".ruler .inner").getBoundingClientRect();
      const position = (x) => ((x - box.left) / box.width) * LAST;
      const begun = { ...this.at };
      this.gesture = null; // each drag is a gesture of its own
      if (jump) {
        const by = Math.round(position(event.clientX)) - (moves === "query" ? begun.n : begun.m);
        Object.assign(begun, this.moved(begun, moves, by));
        this.to(begun, moves);
      }
      const from = position(event.clientX);
      const move = (each) => this.to(this.moved(begun, moves, Math.round(position(each.clientX) - from)), moves);
      const target = event.currentTarget;
      target.setPointerCapture(event.pointerId);
      target.addEventListener("pointermove", move);
      const end = () => target.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) target.addEventListener(name, end, { once: true });
    }

    press(event, moves) {
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -LAST, End: LAST };
      const by = steps[event.key];
      if (by === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.to(this.moved(this.at, moves, by), moves);
    }

    // Place query and key. What the scores were before this gesture stays in sight.
    to(at, gesture) {
      if (at.n === this.at.n && at.m === this.at.m) return;
      if (gesture !== this.gesture || gesture === "exchange") this.before = { ...this.at };
      this.gesture = gesture;
      this.at = { ...at };
      this.show();
      this.write();
      this.announce(`Query at ${at.n}, key at ${at.m}, offset ${whole(at.n - at.m)}. ${CODES.map((code) => `${code}: ${this.told(code)}`).join("; ")}. ${this.found() ?? ""}`);
    }

    again() {
      this.to(START, "again");
      this.before = this.gesture = null;
      this.show();
    }

    // ---- showing ----

    score(code, { n, m } = this.at) {
      return this.heads[code].scores[n][m];
    }

    changed(code) {
      return written(this.score(code)) !== written(this.score(code, this.before));
    }

    told(code) {
      const was = !this.before ? "" : this.changed(code) ? `, was ${written(this.score(code, this.before))}` : ", as before";
      return written(this.score(code)) + was;
    }

    show() {
      const { n, m } = this.at;
      const offset = n - m;
      const style = this.one(".board").style;
      style.setProperty("--n", `${place(n)}%`);
      style.setProperty("--m", `${place(m)}%`);
      style.setProperty("--middle", `${place((n + m) / 2)}%`);
      style.setProperty("--low", `${place(Math.min(n, m))}%`);
      style.setProperty("--span", `${place(Math.abs(offset))}%`);
      for (const [moves, at] of [["query", n], ["key", m], ["both", n]]) {
        const handle = this.one(`.handle.${moves}`);
        handle.setAttribute("aria-valuenow", at);
        handle.setAttribute("aria-valuetext", moves === "both" ? `query at ${n}, key at ${m}, offset ${offset}` : `position ${at}`);
      }
      this.one(".handle.both span").textContent = `offset ${whole(offset)}`;
      this.one(".where").textContent = `query: digit 3 at ${n}; key: digit 7 at ${m}`;
      for (const code of CODES) this.showLane(code);
      const answer = this.found();
      this.one(".task").classList.toggle("solved", Boolean(answer));
      this.one(".answer").textContent = answer ?? this.near();
    }

    showLane(code) {
      const head = this.heads[code];
      const row = this.one(`.lane[data-code="${code}"]`);
      const part = (css) => row.querySelector(css);
      const { n, m } = this.at;
      const height = (score) => (head.most === head.least ? 30 : 8 + (84 * (head.most - score)) / (head.most - head.least));
      const points = (places) => places.map(([x, score], i) => `${i ? "L" : "M"}${x} ${height(score).toFixed(2)}`).join("");
      const all = Array.from({ length: LAST + 1 }, (_, i) => i);
      const offset = n - m;
      part(".alone").setAttribute("d", points(all.map((key) => [key, head.scores[n][key]])));
      part(".both").setAttribute("d", points(all.filter((key) => key + offset >= 0 && key + offset <= LAST).map((key) => [key, head.scores[key + offset][key]])));
      part(".zero").setAttribute("d", head.least < 0 && head.most > 0 ? `M0 ${height(0)}H${LAST}` : "");
      part(".dot").style.cssText = `left:${place(m)}%;top:${height(head.scores[n][m])}%`;
      const before = part(".before");
      before.hidden = !this.before;
      if (this.before) before.style.cssText = `left:${place(this.before.m)}%;top:${height(this.score(code, this.before))}%`;
      part(".score").textContent = written(head.scores[n][m]);
      const was = part(".was");
      was.textContent = !this.before ? "" : this.changed(code) ? `was ${written(this.score(code, this.before))}` : "as before";
      row.classList.toggle("still", Boolean(this.before) && !this.changed(code));
      row.classList.toggle("moved", Boolean(this.before) && this.changed(code));
      row.querySelectorAll(".columns").forEach((columns, i) => {
        for (const [role, vector] of [["query", head.q[n]], ["key", head.k[m]]]) {
          const [x, y] = [vector[2 * i], vector[2 * i + 1]];
          const length = (27 * Math.hypot(x, y)) / head.fitting[role];
          const arrow = columns.querySelector(`g.${role}`);
          arrow.setAttribute("transform", `rotate(${((Math.atan2(x, y) * 180) / Math.PI).toFixed(2)})`);
          arrow.querySelector("line").setAttribute("y2", -Math.max(0, length - 5).toFixed(2));
          arrow.querySelector("path").setAttribute("transform", `translate(0 ${-length.toFixed(2)})`);
        }
        columns.querySelector("span").textContent = written(head.share(this.at, 2 * i));
      });
    }

    // ---- the task ----

    percent() {
      return this.score("rotary") / this.score("rotary", START);
    }

    found() {
      const offset = this.at.n - this.at.m;
      if (Math.abs(offset) <= FAR || this.percent() < NEARLY) return null;
      const turns = (w) => whole(Math.round((Math.abs(offset - 1) * w) / (2 * Math.PI)));
      return `Found: offset ${whole(offset)} scores ${written(this.score("rotary"))}. Between it and offset 1, the first hand comes round ${turns(1)} times and the second once, so both show nearly the same time.`;
    }

    near() {
      const offset = this.at.n - this.at.m;
      if (offset === 1) return `Now the key is the token before: the rotary score is ${written(this.score("rotary"))}.`;
      const score = `the rotary score is ${written(this.score("rotary"))}, for the token before ${written(this.score("rotary", START))}`;
      return `At offset ${whole(offset)} ${score}.`;
    }

    // ---- the address, which may hold anything ----

    read() {
      const [n, m] = this.state.split(",").map((each) => (each.trim() ? Math.round(Number(each)) : NaN));
      return Number.isFinite(n) && Number.isFinite(m) ? { n: clamp(n, 0, LAST), m: clamp(m, 0, LAST) } : { ...START };
    }

    write() {
      const { n, m } = this.at;
      this.state = n === START.n && m === START.m ? "" : `${n},${m}`;
    }
  }

  exformer.PositionHead = Head; // for the tests, which compare it with the library
  customElements.define("exformer-positions", Positions);
})();
