// needs: token-parts, reader
// The key–value cache: which of its entries an edited token invalidates, and what it saves.
"use strict";
(() => {
  const { make, visible, count, ranked, roving, TokenRow } = exformer;
  const LONGEST = 11; // tokens
  const EPSILON = 1e-6; // of an entry's length: an entry that moves less is the same

  class CacheView {
    static question = "A token is edited. Which of the three entries with a question mark must be computed anew? Mark them, then check. (Choose another token to edit that one instead.)";
    static measured = "What has changed is measured on the model in this page: an entry counts if it moves by more than a millionth of its length. Programs usually throw away all of layer 1 to the right as well, because that is simpler.";
    start = "O, I do beseech you";

    constructor(figure) {
      Object.assign(this, { figure, at: 2, marked: new Set(), checked: false });
      this.grid = make("div", { className: "entries", role: "group", "aria-label": "Entries of the cache: a row for each layer, a column for each token" });
      this.row = new TokenRow("Tokens of the text: choose the one to edit", (n) => this.choose(n));
      this.head = make("p", { className: "head" });
      this.cost = make("div", { className: "bars costs", role: "list", "aria-label": "What one more token costs" });
      this.asked = make("button", { type: "button", textContent: "Check", onclick: () => this.judge() });
      this.grid.addEventListener("click", (event) => {
        const name = event.target.closest("button")?.dataset.entry;
        if (!name) return;
        this.marked.has(name) ? this.marked.delete(name) : this.marked.add(name);
        this.checked = false;
        this.figure.answer("");
        this.figure.change();
      });
      this.parts = [make("div", { className: "line" }, this.head, make("span", { className: "buttons" }, this.asked)), this.grid, this.row.box, this.cost];
    }

    typed() {
      this.unlock(false);
    }

    unlock(draw = true) {
      Object.assign(this, { at: 2, checked: false });
      this.marked.clear();
      this.figure.answer("");
      if (draw) this.figure.change();
    }

    choose(column) {
      if (!column) return; // the token that begins every text
      Object.assign(this, { at: column - 1, checked: false });
      this.marked.clear();
      this.figure.answer("");
      this.figure.change(() => this.head.textContent);
    }

    // How far each entry moves when a token is edited: (layer, position), relative to its length.
    *compare(ids, edited) {
      const { model, beginId } = this.figure;
      const both = [];
      for (const each of [ids, edited]) {
        const cache = model.newCache();
        model.forward([beginId, ...each], { cache });
        both.push(cache.layers);
        yield;
      }
      const [old, now] = both;
      const length = (a) => Math.sqrt(a.reduce((sum, each) => sum + each * each, 0));
      const moved = (a, b) => length(a.map((each, i) => each - b[i])) / length(a);
      return old.map(({ k, v }, layer) =>
        Array.from({ length: ids.length + 1 }, (_, t) => Math.max(moved(k.row(t), now[layer].k.row(t)), moved(v.row(t), now[layer].v.row(t)))));
    }

    *draw() {
      const { figure } = this;
      const { tokenizer } = figure;
      const ids = figure.ids.slice(0, LONGEST);
      const spelled = (id) => visible(tokenizer.decode([id]));
      this.at = Math.min(this.at, ids.length - 1);
      const { at } = this;
      const rows = figure.reader.read(ids);
      if (!ids.length) {
        this.grid.replaceChildren();
        this.row.show([]);
        this.head.textContent = "Type a text.";
        return;
      }
      const other = ranked(rows[at], 2).find((id) => id !== ids[at]);
      const edited = ids.with ? ids.with(at, other) : [...ids.slice(0, at), other, ...ids.slice(at + 1)];
      const compared = [ids, edited].join();
      if (this.compared !== compared) this.moves = yield* this.compare(ids, edited);
      this.compared = compared;
      const column = at + 1; // the token that begins every text is number 0
      const last = ids.length;
      this.asks = new Map(last > column && column > 1 ? [[`3 ${column - 1}`, 0], [`3 ${last}`, 0], [`0 ${last}`, 0]].map(([name]) => [name, this.dies(name)]) : []);
      const top = this.moves.length - 1;
      this.grid.style.setProperty("--columns", last + 1);
      const focused = this.grid.contains(document.activeElement) && document.activeElement.dataset.entry;
      this.grid.replaceChildren(
        ...this.moves.map((_, n) => top - n).flatMap((layer) => [
          make("span", { className: "name" }, `layer ${layer + 1}`),
          ...this.moves[layer].map((_, t) => this.cell(layer, t)),
        ]),
      );
      if (focused) this.grid.querySelector(`[data-entry="${focused}"]`)?.focus({ preventScroll: true });
      this.row.show(
        [figure.beginId, ...ids].map((id, n) => ({ text: tokenizer.decode([id]).replace("\n", "↵"), note: String(n), kind: n === column ? "edited" : "", label: `${n}: ${spelled(id)}${n ? "" : ", which begins every text"}` })),
        column,
      );
      this.row.box.style.setProperty("--columns", last + 1);
      const dead = this.moves.flat().filter((each) => each > EPSILON).length;
      const all = this.moves.flat().length;
      this.head.textContent = `Token ${column} is edited: “${spelled(ids[at])}” becomes “${spelled(other)}”. ${this.checked ? `${dead} of ${all} entries have changed.` : ""}`;
      this.asked.disabled = !this.asks.size;
      this.price(ids);
    }

    dies(name) {
      const [layer, t] = name.split(" ").map(Number);
      return this.moves[layer][t] > EPSILON;
    }

    cell(layer, t) {
      const name = `${layer} ${t}`;
      const what = `layer ${layer + 1}, token ${t}`;
      const parts = [make("i", { className: "k" }, "k"), make("i", { className: "v" }, "v")];
      const dead = this.checked && this.dies(name);
      if (this.asks.has(name)) {
        const marked = this.marked.has(name);
        return make("button", { type: "button", className: `entry asked${marked ? " marked" : ""}${dead ? " dead" : ""}`, "data-entry": name, "aria-pressed": marked, "aria-label": `${what}: ${marked ? "must be computed anew" : "may stay"}${this.checked ? (dead ? "; it has changed" : "; it is the same") : ""}` }, ...parts, make("b", {}, this.checked ? (dead ? "✕" : "✓") : marked ? "✕" : "?"));
      }
      return make("span", { className: `entry${dead ? " dead" : ""}`, title: this.checked ? `${what}: moved by ${(100 * this.moves[layer][t]).toFixed(0)}% of its length` : what }, ...parts);
    }

    judge() {
      this.checked = true;
      this.figure.change();
      const right = [...this.asks].filter(([name, dies]) => dies === this.marked.has(name)).length;
      const why = "Entries before the edit live. In layer 1 keys and values are computed from their own token alone, so only the edited column dies; above, from states that have attended to it: everything to the right.";
      if (right === this.asks.size) this.figure.answer(`Solved. ${why}`, true);
      else this.figure.answer(`${right} of ${this.asks.size} right. ${why}`);
    }

    // The cost of the newest position with and without the cache: multiplications, and milliseconds once they are measured.
    price(ids) {
      const { model, beginId } = this.figure;
      const all = [beginId, ...ids];
      const cache = model.newCache();
      const ways = [
        { name: "With the cache", cached: true, run: () => { cache.truncate(ids.length); model.forward(all.slice(cache.length), { cache }); } },
        { name: "Without", cached: false, run: () => model.forward(all) },
      ];
      const most = exformer.multiplications(model.config, ids.length, false);
      const show = () => this.cost.replaceChildren(
        make("p", { className: "head" }, `Multiplications to compute position ${ids.length} and predict what follows, and the time they take here:`),
        ...ways.map(({ name, cached, ms }) => {
          const n = exformer.multiplications(model.config, ids.length, cached);
          const now = make("i", { className: "now", style: `width:${(100 * n) / most}%` });
          return make("div", { className: "bar", role: "listitem" }, make("span", { className: "name" }, name), make("span", { className: "track" }, now),
            make("span", { className: "value" }, `${(n / 1e6).toFixed(1)} million${ms === undefined ? "" : `, ${ms.toFixed(1)} ms`}`));
        }),
      );
      show();
      if (this.priced === all.join()) return;
      this.priced = all.join();
      const measure = (rest) => {
        if (this.priced !== all.join()) return;
        if (!rest.length) return show();
        const begun = performance.now();
        rest[0].run();
        const ms = performance.now() - begun;
        rest[0].ms = Math.min(rest[0].ms ?? Infinity, ms);
        setTimeout(measure, 30, rest.slice(1));
      };
      setTimeout(measure, 200, [...ways, ...ways, ...ways]); // the first run fills the cache and warms up
    }
  }

  exformer.CacheView = CacheView;
})();
