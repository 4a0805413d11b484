// needs: token-parts, reader
// The loss of each token of a text, as color, and the distribution that the model predicted for one of them.
"use strict";
(() => {
  const { make, visible, percent, count, signed, ranked, probabilities, logSum, TokenRow, Bars } = exformer;
  const START = "KATHARINA:\nWhat is your crest? a coxcomb?";
  const READ = "KING RICHARD III:\nA horse! a horse! my kingdom for a horse!"; // in the training text
  const CHEAPER = 20; // nats
  const SHOWN = 7; // bars
  const STRONGEST = 8; // nats, the strongest color
  const words = (text) => text.trim().split(/\s+/);
  const rounded = (x) => (x < 1000 ? x.toFixed(1) : x < 1e6 ? count(Math.round(x)) : "over a million");

  class LossView {
    static question = "Replace one word so that the text becomes at least 20 nats cheaper.";
    static measured = "On 200 speeches kept out of training, the first token of a word costs 4.8 nats on average and a later one 3.2. With its words shuffled, all 200 cost more: on average 165 nats instead of 117.";
    start = START;

    constructor(figure) {
      this.figure = figure;
      this.row = new TokenRow("Tokens of the text, with the loss of each", (n) => this.choose(n));
      this.bars = new Bars("What the model expected there");
      this.sum = make("p", { className: "sum" });
      this.head = make("p", { className: "head" });
      this.shuffle = make("button", { type: "button", textContent: "Shuffle the words", onclick: () => this.mix() });
      this.back = make("button", { type: "button", textContent: "A line it has read", onclick: () => figure.write(READ) });
      this.first = make("button", { type: "button", textContent: "The first text", onclick: () => figure.write(START) });
      this.parts = [this.row.box, make("div", { className: "line" }, this.sum, make("span", { className: "buttons" }, this.shuffle, this.back, this.first)), this.head, this.bars.box];
    }

    // Escape lets go of a token; a text that was typed stays.
    unlock() {
      this.chosen = null;
      this.figure.change();
    }

    choose(n) {
      this.chosen = this.chosen === n ? null : n;
      this.figure.change(() => this.head.textContent);
    }

    // The first line, which says who speaks, stays.
    mix() {
      const [, speaker, text] = this.figure.text.match(/^([^\n]*:\n)?([^]*)$/);
      const all = words(text);
      for (let i = all.length - 1; i > 0; i--) {
        const j = Math.floor(Math.random() * (i + 1));
        [all[i], all[j]] = [all[j], all[i]];
      }
      this.figure.write((speaker ?? "") + all.join(" "));
    }

    read(ids) {
      const rows = this.figure.reader.read(ids);
      return ids.map((id, n) => logSum(rows[n]) - rows[n][id]);
    }

    *draw() {
      const { figure } = this;
      const { ids, tokenizer } = figure;
      const nats = this.read(ids);
      yield;
      const sum = nats.reduce((a, b) => a + b, 0);
      const most = nats.indexOf(Math.max(...nats));
      if (this.chosen >= ids.length) this.chosen = null;
      const at = this.chosen ?? most;
      this.row.show(
        ids.map((id, n) => ({ text: tokenizer.decode([id]), note: nats[n].toFixed(1), heat: nats[n] / STRONGEST, kind: "heated", label: `${visible(tokenizer.decode([id]))}, ${nats[n].toFixed(1)} nats` })),
        at,
      );
      const mean = sum / ids.length;
      this.sum.textContent = ids.length ? `Sum ${sum.toFixed(1)} nats, ${mean.toFixed(2)} per token: perplexity ${rounded(Math.exp(mean))}` : "Type a text.";
      this.head.hidden = this.bars.box.hidden = !ids.length;
      if (ids.length) this.explain(ids, at);
      this.check(ids, sum);
    }

    explain(ids, at) {
      const { tokenizer, reader } = this.figure;
      const spelled = (id) => visible(tokenizer.decode([id]));
      const p = probabilities(reader.read(ids)[at]);
      const order = ranked(p);
      const rank = order.indexOf(ids[at]);
      const shown = order.slice(0, SHOWN);
      if (rank >= SHOWN) shown.splice(SHOWN - 1, 1, ids[at]);
      const rest = 1 - shown.reduce((total, id) => total + p[id], 0);
      const rows = shown.map((id) => ({ id, name: spelled(id), p: p[id], was: 0, kind: id === ids[at] ? "actual" : "", label: `${spelled(id)}, ${percent(p[id])}${id === ids[at] ? ", the token of the text" : ""}` }));
      const others = `${count(p.length - shown.length)} others`;
      rows.push({ name: others, p: rest, was: 0, kind: "tail", label: `${others} together, ${percent(rest)}` });
      this.bars.show(rows, Math.max(...rows.map((row) => row.p)));
      const before = at ? `After “${visible(tokenizer.decode(ids.slice(Math.max(0, at - 4), at)))}”` : "At the start";
      const told = `The text has “${spelled(ids[at])}”: rank ${count(rank + 1)} of ${count(p.length)}, −log ${p[ids[at]].toPrecision(2)} = ${signed(-Math.log(p[ids[at]]), 1)} nats.`;
      this.head.replaceChildren(make("span", {}, `${before} the model expected: `), make("span", { className: "told" }, told));
    }

    // One word replaced, and the sum lower by at least `CHEAPER` nats; and how the losses of the tokens before it changed.
    check(ids, sum) {
      const { figure } = this;
      const [old, now] = [words(START), words(figure.text)];
      const changed = now.map((word, n) => word !== old[n]).flatMap((differs, n) => (differs ? [n] : []));
      if (old.length !== now.length || changed.length !== 1) {
        figure.answer("");
        if (figure.text !== START && !figure.words) figure.announce(this.sum.textContent);
        return;
      }
      const before = figure.tokenizer.encode(START);
      const losses = [before, ids].map((each) => this.read(each));
      const from = before.findIndex((id, n) => id !== ids[n]);
      const delta = sum - losses[0].reduce((a, b) => a + b, 0);
      const apart = Math.max(0, ...losses[0].slice(0, from).map((each, n) => Math.abs(each - losses[1][n])));
      const told = `${signed(delta, 1)} nats. The ${from} tokens before the change cost what they did (difference ${apart.toFixed(1)}): each is predicted from what precedes it.`;
      figure.answer(delta <= -CHEAPER ? `Solved: ${told}` : `Not yet: ${told}`, delta <= -CHEAPER);
    }
  }

  exformer.LossView = LossView;
})();
