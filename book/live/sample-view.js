// needs: token-parts, reader, random
// The distribution of the next token, truncated and reshaped; the random number that samples from it; and the text.
"use strict";
(() => {
  const { make, visible, percent, count, ranked, probabilities, transformLogits, draw, best, TokenRow, Bars } = exformer;
  const NEW = 16; // tokens
  const SHOWN = 7; // bars
  const TOP_K = [1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320, 640, null];
  const off = { temperature: 1, topK: null, topP: 1, minP: 0 };
  const first = { ...off, topK: 40, seed: 5 };

  class SampleView {
    static question = "With one slider, leave exactly 1 token at “es”, where the model is sure, and 20 or more at “␣b”, just before it.";
    static measured = "Dashed outlines: the probabilities before the cut. Min-p cuts every token with less than that share of the largest probability. At 16,500 positions of text kept out of the training, top-p 0.9 keeps 47 tokens on average, at some 1 and at others 218. Every cut has its price: the true token is not among the 40 most probable at 20% of the positions.";
    start = "CORIOLANUS:\nI do beseech you";

    constructor(figure) {
      Object.assign(this, { figure, set: { ...first }, hand: new Map(), chosen: null });
      this.row = new TokenRow("Tokens of the text, with the number of tokens that could be sampled in the place of each", (n) => this.choose(n));
      this.bars = new Bars("Probability of the next token: choose one", (id) => this.take(id));
      this.head = make("p", { className: "head" });
      this.strip = make("div", { className: "strip" });
      this.code = make("code", { className: "python" });
      const slider = (key, name, min, max, step, show, value = (x) => x, place = (x) => x) => {
        const input = make("input", { type: "range", min, max, step, value: place(this.set[key]) });
        const output = make("output");
        const refresh = () => {
          input.value = place(this.set[key]);
          output.textContent = show(this.set[key]);
          input.setAttribute("aria-valuetext", output.textContent);
        };
        input.addEventListener("input", () => {
          this.set[key] = value(Number(input.value));
          figure.change();
        });
        return { refresh, box: make("label", { className: "slider" }, make("span", {}, name), output, input) };
      };
      this.sliders = [
        slider("temperature", "Temperature", 0, 2, 0.05, (x) => (x ? x.toFixed(2) : "0: greedy")),
        slider("topK", "Top-k", 0, TOP_K.length - 1, 1, (x) => x ?? "all", (x) => TOP_K[x], (x) => TOP_K.indexOf(x)),
        slider("topP", "Top-p", 0.05, 1, 0.01, (x) => x.toFixed(2)),
        slider("minP", "Min-p", 0, 0.5, 0.01, (x) => x.toFixed(2)),
      ];
      const again = make("button", { type: "button", textContent: "Next seed", onclick: () => {
        this.set.seed = (this.set.seed + 1) % 1000;
        this.hand.clear();
        figure.change();
      } });
      const reset = make("button", { type: "button", textContent: "Reset", onclick: () => this.unlock() });
      this.seed = make("span", { className: "seed" });
      this.parts = [
        make("div", { className: "sliders" }, ...this.sliders.map((each) => each.box)),
        this.row.box,
        this.head,
        this.bars.box,
        this.strip,
        make("div", { className: "line" }, this.code, make("span", { className: "buttons" }, this.seed, again, reset)),
      ];
    }

    choose(n) {
      this.chosen = n;
      this.figure.change(() => this.head.textContent);
    }

    // Put another token in the place of the chosen one; what follows is sampled again.
    take(id) {
      const { ids, tokenizer } = this.figure;
      const at = this.at;
      if (at < ids.length) return this.figure.write(tokenizer.decode([...ids.slice(0, at), id, ...ids.slice(at + 1)]));
      for (const n of this.hand.keys()) if (n > at) this.hand.delete(n);
      this.hand.set(at, id);
      this.figure.change();
    }

    // For the address: those settings that are not the first ones.
    get settings() {
      const text = Object.keys(first).map((key) => this.set[key] ?? "all").join(",");
      return { text, changed: Object.keys(first).some((key) => this.set[key] !== first[key]) };
    }

    recall(text) {
      const numbers = text.split(",").map((each) => (each === "all" ? null : Number(each)));
      const within = (x, least, most, other) => (x >= least && x <= most ? x : other);
      const [temperature, topK, topP, minP, seed] = numbers;
      Object.assign(this.set, {
        temperature: within(temperature, 0, 2, 1), topK: TOP_K.includes(topK) ? topK : first.topK, topP: within(topP, 0.05, 1, 1),
        minP: within(minP, 0, 0.5, 0), seed: Number.isInteger(seed) ? within(seed, 0, 999, first.seed) : first.seed,
      });
    }

    unlock() {
      Object.assign(this, { set: { ...first }, chosen: null });
      this.hand.clear();
      this.figure.write(this.start);
    }

    typed() {
      this.hand.clear();
      this.chosen = null;
    }

    change(logits) {
      const { temperature, topK, topP, minP } = this.set;
      return transformLogits(logits, temperature ? { temperature, topK: topK ?? undefined, topP, minP } : { topK: 1 });
    }

    // The library's generate, with the same seed; tokens that were chosen by hand stay.
    *sample(ids) {
      const { figure, set } = this;
      const rng = exformer.generator(set.seed);
      const uniform = Array.from({ length: NEW }, () => rng.uniform());
      const all = [...ids];
      const rows = () => figure.reader.read(all);
      for (let n = 0; n < NEW; n++) {
        const logits = rows().at(-1);
        const id = this.hand.get(all.length) ?? (set.temperature ? draw(this.change(logits), uniform[n]) : best(logits));
        if (id === figure.tokenizer.endId) break;
        all.push(id);
        yield;
      }
      return { all, rows: rows(), uniform };
    }

    *draw() {
      const { figure, set } = this;
      const { ids, tokenizer } = figure;
      for (const each of this.sliders) each.refresh();
      this.seed.textContent = `seed ${set.seed}`;
      const { all, rows, uniform } = yield* this.sample(ids);
      const changed = [];
      for (let n = 0; n < all.length; n++) {
        changed.push(this.change(rows[n]));
        yield;
      }
      this.kept = changed.map((logits) => logits.reduce((sum, each) => sum + (each > -Infinity), 0));
      this.at = Math.min(this.chosen ?? ids.length, all.length - 1);
      this.row.show(
        all.map((id, n) => {
          const kind = n < ids.length ? "given" : this.hand.has(n) ? "new hand" : "new";
          return { text: tokenizer.decode([id]), note: count(this.kept[n]), kind, label: `${visible(tokenizer.decode([id]))}, one of ${count(this.kept[n])}` };
        }),
        this.at,
      );
      this.all = all;
      if (all.length) this.explain(all, rows[this.at], changed[this.at], uniform[this.at - ids.length]);
      this.code.textContent = this.python();
      this.check();
    }

    explain(all, logits, changed, u) {
      const { figure, at } = this;
      const { tokenizer, ids } = figure;
      const spelled = (id) => visible(tokenizer.decode([id]));
      const [was, now] = [probabilities(logits), probabilities(changed)];
      const shown = ranked(logits, SHOWN);
      if (!shown.includes(all[at])) shown.splice(SHOWN - 1, 1, all[at]);
      const rest = [was, now].map((p) => Math.max(0, 1 - shown.reduce((total, id) => total + p[id], 0)));
      const kept = this.kept[at] - shown.filter((id) => now[id] > 0).length;
      const rows = shown.map((id) => ({
        id, name: spelled(id), p: now[id], was: was[id],
        kind: (id === all[at] ? "actual" : "") + (now[id] > 0 ? "" : " cut"),
        label: `${spelled(id)}, ${now[id] > 0 ? percent(now[id]) : "cut"}, before ${percent(was[id])}: take it`,
      }));
      const others = `${count(was.length - shown.length)} others`;
      rows.push({ name: others, p: rest[1], was: rest[0], kind: `tail${kept ? "" : " cut"}`, label: `${others} together, ${percent(rest[1])}, ${count(kept)} left, before ${percent(rest[0])}` });
      this.bars.show(rows, Math.max(...rows.flatMap((row) => [row.p, row.was])));
      const before = visible(tokenizer.decode(all.slice(Math.max(0, at - 4), at)));
      const how = at < ids.length ? "stands in your text" : this.hand.has(at) ? "was chosen by you" : this.set.temperature ? "was sampled" : "is the most probable";
      const left = this.kept[at] === 1 ? "1 token is" : `${count(this.kept[at])} tokens are`;
      this.head.textContent = `${at ? `After “${before}”` : "At the start"} ${left} left of ${count(was.length)}; “${spelled(all[at])}” ${how}.`;
      this.cutStrip(now, all[at], this.hand.has(at) || !this.set.temperature ? undefined : u);
    }

    // The numbers from 0 to 1, a piece for each token in the order of the ids, and the random number among them.
    cutStrip(p, id, u) {
      const paths = ["", "", ""];
      const names = [];
      let sum = 0;
      for (let n = 0, shown = 0; n < p.length; n++) {
        if (!p[n]) continue;
        paths[n === id ? 2 : shown++ % 2] += `M${sum.toFixed(5)} 0h${p[n].toFixed(5)}v1h-${p[n].toFixed(5)}z`;
        if (p[n] > 0.07) names.push(make("span", { style: `left:${100 * (sum + p[n] / 2)}%`, className: n === id ? "taken" : "" }, visible(this.figure.tokenizer.decode([n]))));
        sum += p[n];
      }
      const svg = `<svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">${paths.map((d, n) => `<path class="piece${n}" d="${d}"/>`).join("")}</svg>`;
      const tip = u === undefined ? "" : `<span class="pin" style="left:${100 * u}%"></span>`;
      this.strip.innerHTML = `<div class="pieces">${svg}${tip}</div>`;
      this.strip.firstChild.append(...names);
      const told = u === undefined ? "No random number here: this token was given." : `Random number ${u.toFixed(3)}: it falls on “${visible(this.figure.tokenizer.decode([id]))}”. One piece per remaining token, in the order of their ids.`;
      this.strip.append(make("small", {}, told));
    }

    // The Python call that generates this text.
    python() {
      const { temperature, topK, topP, minP, seed } = this.set;
      const float = (x) => x.toFixed(2).replace(/0$/, "");
      const given = [`max_new_tokens=${NEW}`, temperature === 1 ? "" : `temperature=${float(temperature)}`];
      if (temperature) given.push(topK ? `top_k=${topK}` : "", topP < 1 ? `top_p=${float(topP)}` : "", minP ? `min_p=${float(minP)}` : "", `seed=${seed}`);
      const prompt = JSON.stringify(this.figure.tokenizer.decode(this.figure.ids));
      return this.hand.size ? "with a token chosen by hand no seed gives this text" : `generate(model, tokenizer, ${prompt}, ${given.filter(Boolean).join(", ")})`;
    }

    check() {
      const { figure, set } = this;
      if (figure.text !== this.start) return figure.answer("");
      const [unsure, sure] = this.kept.slice(5, 7); // CORIOLANUS : ↵ I ␣do ␣b es eech ␣you
      const moved = Object.keys(off).filter((key) => set[key] !== off[key]);
      if (!moved.length || (moved.length === 1 && set.topK === first.topK)) return figure.answer("");
      const told = `${count(unsure)} at “␣b”, ${count(sure)} at “es”.`;
      if (moved.length > 1) return figure.answer(`${told} One slider alone: put the others where they change nothing.`);
      if (sure === 1 && unsure >= 20) return figure.answer(`Solved: ${told} ${moved[0] === "topP" ? "Top-p" : "Min-p"} asks how sure the model is.`, true);
      const why = moved[0] === "topK" ? "Top-k leaves as many everywhere." : moved[0] === "temperature" ? (set.temperature ? "Temperature reshapes, it cuts nothing." : "Greedy leaves one everywhere.") : "";
      figure.answer(`Not yet: ${told} ${why}`);
    }
  }

  exformer.SampleView = SampleView;
})();
