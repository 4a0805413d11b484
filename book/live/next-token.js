// needs: frame, weights, tokenizers, loss-view
// later: sample-view, beam-view, cache-view
// <exformer-next-token>: one text, token by token, seen in four ways: the loss of each token, sampling, beam search and
// the cache. An attribute (sample, beam, cache) selects the first view.
"use strict";
(() => {
  const { Figure, Reader, make, count } = exformer;
  const NAME = "shakespeare-bpe";
  // Title and class of each; all but the first are loaded when they are opened.
  const VIEWS = { loss: ["Loss", "LossView"], sample: ["Sampling", "SampleView"], beam: ["Beam", "BeamView"], cache: ["Cache", "CacheView"] };
  const LONGEST = 46; // tokens of a text: new ones have to fit into the model's 64 positions, too
  const SLICE = 12; // ms
  const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith("?") ? "" : "."}`;

  class NextToken extends Figure {
    static models = [NAME];

    start({ [NAME]: { model, tokenizer } }) {
      const beginId = model.config.begin_id ?? tokenizer.beginId;
      Object.assign(this, { model, tokenizer, beginId, reader: new Reader(model, beginId), views: {}, texts: {}, ids: [] });
      const tabs = Object.entries(VIEWS).map(([name, [title]]) =>
        make("button", { type: "button", role: "tab", textContent: title, id: `next-token-${name}`, "aria-controls": "next-token-panel", onclick: () => this.show(name) }));
      this.tabs = make("div", { className: "tabs", role: "tablist", "aria-label": "Views of the next token" }, ...tabs);
      exformer.roving(this.tabs);
      this.field = make("textarea", { rows: 2, spellcheck: false, autocomplete: "off" });
      this.field.addEventListener("input", () => this.write(this.field.value, false));
      this.note = make("p", { className: "note" });
      this.panel = make("div", { id: "next-token-panel", role: "tabpanel" });
      this.task = make("p", { className: "task" });
      this.result = make("p", { className: "answer" });
      this.measured = make("p", { className: "measured" });
      const text = make("label", { className: "text" }, make("span", {}, "Text"), this.field);
      this.box = make("div", { className: "next-token", hidden: true }, this.tabs, text, this.note, this.panel, this.task, this.result, this.measured);
      this.stage.append(this.box);
      this.stage.addEventListener("keydown", (event) => { if (event.key === "Escape") this.view.unlock?.(); });
      this.recall();
      return new Promise((resolve) => { this.drawn = resolve; }); // the still picture stays until there is something to see
    }

    show(name, text, settings) {
      this.asked = name;
      const View = exformer[VIEWS[name][1]];
      if (!View) {
        this.done = false;
        const go = () => { if (this.asked === name) this.show(name, text, settings); };
        return this.later(`${name}-view`).then(go, (error) => this.fail(error));
      }
      this.name = name;
      this.view = this.views[name] ??= new View(this);
      if (settings) this.view.recall?.(settings);
      const { question, measured } = View;
      for (const tab of this.tabs.children) {
        const chosen = tab.id === `next-token-${name}`;
        tab.setAttribute("aria-selected", chosen);
        tab.tabIndex = chosen ? 0 : -1;
      }
      this.panel.setAttribute("aria-labelledby", `next-token-${name}`);
      this.panel.className = `panel ${name}`;
      this.panel.replaceChildren(...this.view.parts);
      this.task.replaceChildren(make("b", {}, "Task. "), question);
      this.measured.textContent = measured;
      this.answer("");
      this.write(text ?? this.texts[name] ?? this.view.start);
    }

    // Another text, typed or put there.
    write(text, put = true) {
      if (put) this.field.value = text;
      if (this.texts[this.name] !== text) this.view.typed?.();
      this.text = this.texts[this.name] = text;
      this.change();
    }

    // Redraw the view in the next frame, once for all changes until then; afterwards announce what `words` returns.
    change(words) {
      this.words = words;
      this.done = false;
      this.waiting ??= requestAnimationFrame(() => {
        this.waiting = null;
        this.work((this.drawing = this.draw()));
      });
    }

    // Work for some milliseconds, then let the browser draw. Outdated work is dropped.
    work(drawing) {
      if (drawing !== this.drawing) return;
      const until = performance.now() + SLICE;
      try {
        while (performance.now() < until) if (drawing.next().done) return (this.done = true);
        exformer.pause().then(() => this.work(drawing));
      } catch (error) {
        this.fail(error);
      }
    }

    fail(error) {
      this.done = true;
      this.note.textContent = sentence(error.message);
      this.announce(this.note.textContent);
      this.box.hidden = false;
      this.drawn();
    }

    *draw() {
      const ids = this.tokenizer.encode(this.text);
      this.ids = ids.slice(0, LONGEST);
      this.note.textContent = ids.length > LONGEST ? `Your text has ${count(ids.length)} tokens; the first ${LONGEST} are shown.` : "";
      yield* this.view.draw();
      this.keep();
      if (this.words) this.announce(this.words());
      this.words = null;
      this.box.hidden = false;
      this.drawn();
    }

    // The verdict on the task.
    answer(text, solved = false) {
      this.result.classList.toggle("solved", solved);
      if (this.result.textContent === text) return;
      this.result.textContent = text;
      if (text) this.announce(text);
    }

    // The address: the view, its settings, the text.
    keep() {
      const { name, view, text } = this;
      const plain = text === view.start && !view.settings?.changed;
      this.state = plain && name === this.first ? "" : [name, view.settings?.text ?? "", text === view.start ? "" : text].join("|");
    }

    recall() {
      const [name, settings = "", ...text] = this.state.split("|");
      this.first = Object.keys(VIEWS).find((each) => this.hasAttribute(each)) ?? "loss";
      const chosen = Object.hasOwn(VIEWS, name) ? name : this.first;
      this.show(chosen, text.join("|").slice(0, 1000) || undefined, settings);
    }
  }

  customElements.define("exformer-next-token", NextToken);
})();
