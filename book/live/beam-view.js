// needs: token-parts, reader, beam
// Beam search as a tree with summed log-probabilities, and the path of greedy decoding through it.
"use strict";
(() => {
  const { make, visible, signed, roving } = exformer;
  const LENGTH = 5; // tokens
  const PROMPTS = ["CORIOLANUS:\nI", "MENENIUS:\nThe king", "PETRUCHIO:\nShall I"];

  class BeamView {
    static question = "After “MENENIUS: The king”, a beam of 3 ends with a less probable text than greedy. Click the token at which it dropped greedy’s text.";
    static measured = "After 200 passages kept out of the training, a beam of 3 finds five tokens that are more probable than greedy’s in 66% of the cases, the same five in 32% and less probable ones in 2%. Where it gains, the median is 2.0 nats.";
    start = PROMPTS[0];

    constructor(figure) {
      Object.assign(this, { figure, beam: 3, chosen: null });
      const input = make("input", { type: "range", min: 1, max: 5, step: 1, value: 3 });
      this.output = make("output");
      input.addEventListener("input", () => {
        this.beam = Number(input.value);
        this.chosen = null;
        figure.change();
      });
      this.input = input;
      const prompts = PROMPTS.map((text) => make("button", { type: "button", textContent: text.replace("\n", " "), onclick: () => figure.write(text) }));
      this.tree = make("div", { className: "tree", role: "toolbar", "aria-label": "Tree of the beam search: each token with the log-probability of the text up to it" });
      this.tree.addEventListener("click", (event) => {
        const n = event.target.closest("button")?.dataset.n;
        if (n) this.choose(Number(n));
      });
      this.settle = roving(this.tree);
      this.verdict = make("div", { className: "verdicts" });
      this.head = make("p", { className: "head" });
      this.parts = [
        make("div", { className: "line" }, make("label", { className: "slider" }, make("span", {}, "Beam width"), this.output, input), make("span", { className: "buttons" }, ...prompts)),
        this.tree, this.head, this.verdict,
      ];
    }

    get settings() {
      return { text: String(this.beam), changed: this.beam !== 3 };
    }

    recall(text) {
      if (/^[1-5]$/.test(text)) this.beam = Number(text);
    }

    typed() {
      this.chosen = null;
    }

    unlock() {
      this.chosen = null;
      this.figure.change();
    }

    // The logits after a prefix are computed once for all searches.
    next(ids) {
      const { model, beginId } = this.figure;
      const text = ids.join(" ");
      if (this.known?.text !== text) {
        const next = exformer.nextOf(model, [beginId, ...ids]);
        const found = new Map();
        const once = (more, from) => {
          const name = more.join(" ");
          if (!found.has(name)) found.set(name, next(more, from));
          return found.get(name);
        };
        this.known = { text, once };
      }
      return this.known.once;
    }

    search(ids, beam) {
      const { tokenizer } = this.figure;
      const next = this.next(ids);
      const found = exformer.beamSearch(next, { beam, maxNewTokens: LENGTH, endId: tokenizer.endId, alpha: 0 });
      const path = [];
      for (let node = found.best; node.parent; node = node.parent) path.unshift(node);
      return { ...found, path };
    }

    *draw() {
      const { figure, beam } = this;
      this.output.textContent = this.input.ariaValueText = `${beam}${beam === 1 ? ": greedy" : ""}`;
      this.input.value = beam;
      const key = (node) => node.ids.join(" ");
      const greedy = this.search(figure.ids, 1);
      yield;
      for (let width = 2; width < beam; width++) {
        this.search(figure.ids, width);
        yield;
      }
      const found = this.search(figure.ids, beam);
      const nodes = new Map(found.tree.filter((node) => node.parent).map((node) => [key(node), { node, inBeam: true }]));
      for (const node of greedy.path) nodes.set(key(node), { node, greedy: true, inBeam: nodes.has(key(node)) });
      for (const node of found.path) nodes.get(key(node)).best = true;
      const all = [...nodes.values()].sort((a, b) => a.node.depth - b.node.depth || b.inBeam - a.inBeam || b.node.logProbability - a.node.logProbability);
      for (let depth = 1; depth <= LENGTH; depth++) all.filter((each) => each.node.depth === depth).forEach((each, n) => { each.place = each.inBeam ? n : beam; });
      this.nodes = all;
      this.dropped = all.find((each) => each.greedy && !each.inBeam);
      this.lost = found.logProbability < greedy.logProbability - 1e-4;
      this.paint(all, nodes, key);
      this.tell(greedy, found);
    }

    paint(all, nodes, key) {
      const { tokenizer } = this.figure;
      const rows = Math.max(...all.map((each) => each.place)) + 1;
      const at = (each) => [each.node.depth - 0.5, each.place + 0.5];
      const edge = (each) => {
        const parent = nodes.get(key(each.node.parent));
        const [[x0, y0], [x1, y1]] = [parent ? at(parent) : [0, rows / 2], at(each)];
        const kind = each.best ? "best" : each.greedy ? "greedy" : "";
        return `<path class="${kind}" vector-effect="non-scaling-stroke" d="M${x0} ${y0}C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}"/>`;
      };
      const order = [...all].sort((a, b) => (a.best ?? 0) - (b.best ?? 0));
      this.tree.style.setProperty("--rows", rows);
      const focused = this.tree.contains(document.activeElement) && document.activeElement.dataset.n;
      this.tree.innerHTML = `<svg viewBox="0 0 ${LENGTH} ${rows}" preserveAspectRatio="none" aria-hidden="true">${order.map(edge).join("")}</svg>`;
      this.tree.append(
        ...all.map((each, n) => {
          const text = visible(tokenizer.decode([each.node.id]));
          const of = [each.best && "the beam’s text", each.greedy && "greedy’s text", !each.inBeam && "not in the beam"].filter(Boolean).join(", ");
          const made = make("button", { type: "button", className: `node${each.best ? " best" : ""}${each.greedy ? " greedy" : ""}${each.inBeam ? "" : " out"}`, "data-n": n, title: text, "aria-pressed": n === this.chosen,
            "aria-label": `${text}, sum ${signed(each.node.logProbability)}${of && `, ${of}`}` }, make("b", {}, text), make("small", {}, signed(each.node.logProbability, 1)));
          made.style.gridArea = `${each.place + 1} / ${each.node.depth}`;
          return made;
        }),
      );
      this.settle(this.chosen ?? 0);
      if (focused) this.tree.querySelector(`[data-n="${focused}"]`)?.focus({ preventScroll: true });
    }

    tell(greedy, found) {
      const { tokenizer } = this.figure;
      const line = (name, kind, { path, logProbability }) => {
        const text = tokenizer.decode(path.map((node) => node.id)).replaceAll("\n", " ↵ ");
        return make("p", { className: kind }, make("b", {}, name), `: ${text} `, make("span", { className: "value" }, signed(logProbability)));
      };
      const difference = found.logProbability - greedy.logProbability;
      const told = Math.abs(difference) < 1e-4 ? "Both end with the same text." :
        difference > 0 ? `The beam’s text is ${Math.exp(difference).toLocaleString("en", { maximumSignificantDigits: 3 })} times as probable: ${signed(difference)} nats.` :
        `The beam’s text is less probable than greedy’s, by ${signed(-difference)} nats: a wider beam is no guarantee.`;
      const key = this.dropped ? " Dashed: outside the beam." : "";
      this.verdict.replaceChildren(line("Greedy", "greedy", greedy), line(`Beam of ${this.beam}`, "best", found), make("p", {}, told + key));
      this.summary = told;
      const each = this.nodes[this.chosen];
      this.head.textContent = each ? this.sumOf(each.node) : "Under each token: the log-probability of the text up to it. Click one for its sum.";
    }

    sumOf(node) {
      const steps = [];
      for (let each = node; each.parent; each = each.parent) steps.unshift(each);
      const names = visible(this.figure.tokenizer.decode(node.ids));
      const parts = steps.map((each) => signed(each.logProbability - each.parent.logProbability)).join(" ").replaceAll(/ (?=\d)/g, " + ").replaceAll(" −", " − ");
      return `log p(${names}) = ${parts}${steps.length > 1 ? ` = ${signed(node.logProbability)}` : ""}`;
    }

    choose(n) {
      this.chosen = this.chosen === n ? null : n;
      this.figure.change(() => this.head.textContent);
      const each = this.nodes[this.chosen];
      if (!each) return this.figure.answer("");
      if (!this.lost) return this.figure.answer(this.figure.text === PROMPTS[1] ? "Here the beam does not lose: set its width to 3." : "");
      if (each === this.dropped) this.figure.answer(`Solved: at this step ${this.beam} other beginnings were more probable, and none of them ended as well.`, true);
      else this.figure.answer(each.greedy && !each.inBeam ? "Not yet: its beginning had been dropped before." : "Not yet: this one is still in the beam.");
    }
  }

  exformer.BeamView = BeamView;
})();
