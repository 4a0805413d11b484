// needs: frame, weights, tokenizers, encoder-decoder, pointing
// <exformer-translator>: a German caption, its English translation, and between them the cross-attention. An English
// word can be pointed at another German word, and heads can be ablated; the model translates again at once.
"use strict";
(() => {
  const { Figure, pointedTranslation, logProbabilityOf, strangeLetter, sum, escapeHtml: escape } = exformer;
  const NAME = "multi30k-de-en";
  const EXAMPLES = [
    "Zwei Hunde spielen im hohen Gras mit einem orangen Spielzeug.",
    "Ein Mann mit einem Rock sitzt auf einem Einrad und jongliert dabei mit Messern.",
    "Drei Männer gehen auf einer Straße in den Bergen.",
    "Ein junges Mädchen läuft allein durch einen Park.",
  ];
  const HINT = "Choose an English word, then the German word that it should attend to. Or drag from one to the other.";
  const SOLVED = /\bwith (an? )?(\w+ )?grass\b/; // the first task, on the first example
  const LONGEST = 160; // characters; the captions of the training have 70 on average
  const SHOWN = 0.1; // weights below are not drawn
  const ROW = 30; // px between two words
  const GAP = 104; // px between the columns
  const LONG = 11; // letters that fit beside it on a phone

  const HTML = `
    <form class="ask"><label>German <input type="text" maxlength="${LONGEST}" spellcheck="false" autocomplete="off" lang="de"></label>
      <button type="submit">Translate</button></form>
    <div class="examples" role="group" aria-label="Other captions"></div>
    <div class="board">
      <svg aria-hidden="true"></svg>
      <ol class="source" lang="de" aria-label="German words"></ol>
      <ol class="target" lang="en" aria-label="English words"></ol>
    </div>
    <p class="hint"></p>
    <p class="before"></p>
    <div class="task"><p></p><p class="answer"></p></div>
    <details class="heads"><summary>Take heads out</summary>
      <p>Each square is a head of the cross-attention: English words below each other, German words side by side. Press one, or a whole layer, to take it out.</p>
      <div class="grid"></div>
      <p class="loss"></p></details>
    <div class="buttons"><button type="button" class="again">Start again</button></div>`;

  // Which words of `after` are not in the longest common subsequence with `before`: those that changed or moved.
  function changes(before, after) {
    const long = Array.from({ length: before.length + 1 }, () => new Array(after.length + 1).fill(0));
    for (let i = before.length - 1; i >= 0; i--)
      for (let j = after.length - 1; j >= 0; j--)
        long[i][j] = before[i] === after[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
    const changed = after.map(() => true);
    for (let i = 0, j = 0; i < before.length && j < after.length;) {
      if (before[i] === after[j]) changed[j++] = (i++, false);
      else if (long[i + 1][j] > long[i][j + 1]) i++;
      else j++;
    }
    return changed;
  }

  class Translator extends Figure {
    static models = [NAME];

    one = (css) => this.stage.querySelector(css);
    all = (css) => [...this.stage.querySelectorAll(css)];

    start({ [NAME]: { model, tokenizer } }) {
      Object.assign(this, { model, tokenizer, off: new Set(), pointed: new Map(), chosen: null, whole: null, cut: false });
      const { n_layers: layers, n_heads: heads } = model.config;
      this.stage.innerHTML = HTML;
      this.one(".heads").open = this.hasAttribute("heads");
      this.one(".examples").innerHTML = EXAMPLES.map((text) => `<button type="button">${escape(text)}</button>`).join("");
      this.one(".grid").innerHTML = Array.from({ length: layers }, (_, layer) =>
        `<button type="button" class="layer" data-layer="${layer}">layer ${layer + 1}</button>${Array.from({ length: heads }, (_, head) =>
          `<button type="button" class="head" data-head="decoder.${layer}.cross_attention ${head}" aria-label="layer ${layer + 1}, head ${head + 1}"><canvas></canvas></button>`).join("")}`).join("");
      this.one(".ask").addEventListener("submit", (event) => {
        event.preventDefault();
        this.ask(this.one("input").value);
      });
      this.all(".examples button").forEach((button) => button.addEventListener("click", () => this.ask(button.textContent)));
      this.all(".head").forEach((button) => button.addEventListener("click", () => this.toggle([button.dataset.head])));
      this.all(".layer").forEach((button) => button.addEventListener("click", () =>
        this.toggle(this.all(`[data-head^="decoder.${button.dataset.layer}."]`).map((head) => head.dataset.head))));
      this.one(".again").addEventListener("click", () => this.ask(EXAMPLES[0], { afresh: true }));
      this.one(".heads").addEventListener("toggle", () => this.found && !this.trouble && this.showHeads());
      this.stage.addEventListener("keydown", (event) => this.press(event));
      this.one(".board").addEventListener("pointerdown", (event) => this.grab(event));
      return this.first();
    }

    // The first translation takes a tenth of a second: the still picture stays until it is there.
    async first() {
      this.read();
      this.stage.hidden = true;
      try {
        this.whole = await exformer.inSlices(exformer.pointedSteps(this.model, this.tokenizer, this.text));
        await exformer.pause(); // then it is drawn
      } catch { // `translate` will say it
        this.whole = null;
      }
      this.stage.hidden = false;
      this.translate();
    }

    // ---- what is asked for ----

    // A new sentence: nothing is pointed, the heads stay as they are unless the reader starts afresh.
    ask(text, { afresh = false } = {}) {
      text = text.trim();
      this.cut = text.length > LONGEST;
      text = text.slice(0, LONGEST);
      if (afresh) this.off.clear();
      this.pointed.clear();
      this.text = text;
      this.one("input").value = text;
      this.whole = null;
      this.translate();
    }

    toggle(heads) {
      const out = heads.some((head) => !this.off.has(head));
      heads.forEach((head) => (out ? this.off.add(head) : this.off.delete(head)));
      this.translate();
    }

    // Point an English word at a German one; at its own again, and the pointer is gone.
    point(word, at) {
      if (this.attended(word) === at && this.pointed.has(word)) this.pointed.delete(word);
      else this.pointed.set(word, at);
      for (const other of [...this.pointed.keys()]) if (other > word) this.pointed.delete(other); // what came later is another text
      this.chosen = null;
      this.translate();
      this.all(".target button")[word]?.focus({ preventScroll: true });
    }

    translate() {
      try {
        if (!exformer.normalizeLine(this.text)) throw new Error("Type a German caption, or choose one below.");
        this.whole ??= pointedTranslation(this.model, this.tokenizer, this.text);
        for (const [word, at] of this.pointed) if (!(word >= 0) || !this.whole.srcWords[at]) this.pointed.delete(word);
        const changed = this.off.size || this.pointed.size;
        const { off, pointed, whole: { memory } } = this; // the encoder stays as it is
        this.found = changed ? pointedTranslation(this.model, this.tokenizer, this.text, { off, pointed, memory }) : this.whole;
        for (const word of [...this.pointed.keys()]) if (!this.found.words[word]) this.pointed.delete(word);
        this.trouble = null;
      } catch (error) {
        this.trouble = error.message;
      }
      this.chosen = null;
      this.show();
      this.write();
    }

    // ---- what was found ----

    // The weight of each German word where an English word begins: the mean over all heads that are in.
    weightsOf(word) {
      const rows = this.found.weights[this.found.words[word].tokens[0]].flatMap((heads, layer) =>
        heads.filter((_, head) => !this.off.has(`decoder.${layer}.cross_attention ${head}`)));
      return this.found.srcWords.map(({ tokens }) => sum(rows.map((row) => sum(tokens.map((t) => row[t])))) / (rows.length || 1));
    }

    attended(word) {
      const weights = this.weightsOf(word);
      return weights.indexOf(Math.max(...weights));
    }

    // ---- what is shown ----

    show() {
      const { trouble } = this;
      this.one(".board").hidden = Boolean(trouble);
      const strange = strangeLetter.exec(this.text)?.[0];
      this.one(".hint").textContent = trouble
        ?? (strange ? `The model has learned from German captions and knows no “${strange}”: what it writes for it is a guess.`
          : this.cut ? `Only the first ${LONGEST} characters are translated: the model has learned from captions of 70. ${HINT}` : HINT);
      this.one(".hint").classList.toggle("trouble", Boolean(trouble));
      if (trouble) return this.announce(trouble);
      const { srcWords, words, text } = this.found;
      const list = (css, of) => {
        this.one(css).innerHTML = of.map(({ text: word }, i) => `<li><button type="button" tabindex="${i ? -1 : 0}"${word.length > LONG ? ` class="long" title="${escape(word)}"` : ""}>${escape(word)}</button></li>`).join("");
      };
      list(".source", srcWords);
      list(".target", words);
      const changedWords = changes(this.whole.words.map((word) => word.text), words.map((word) => word.text));
      this.all(".target button").forEach((button, i) => {
        button.setAttribute("aria-label", `${words[i].text}, attends to ${srcWords[this.attended(i)]?.text}`);
        button.setAttribute("aria-pressed", "false");
        button.classList.toggle("new", changedWords[i]);
        button.classList.toggle("pointed", this.pointed.has(i));
      });
      this.draw();
      this.showHeads();
      const changed = text !== this.whole.text;
      const touched = this.off.size || this.pointed.size;
      this.one(".before").innerHTML = !touched ? "" : changed ? `<span>before</span> ${escape(this.whole.text)}` : "<span>as before, word for word</span>";
      this.showTask();
      this.announce(touched ? `${changed ? "Now" : "As before"}: ${text}` : text);
    }

    draw() {
      const { srcWords, words } = this.found;
      const rows = Math.max(srcWords.length, words.length, 1);
      const height = rows * ROW;
      const y = (i, n) => ((i + 0.5) * height) / n;
      const svg = this.one(".board svg");
      this.one(".board").style.setProperty("--rows", rows);
      svg.setAttribute("viewBox", `0 0 ${GAP} ${height}`);
      svg.innerHTML = words.map((_, w) => this.weightsOf(w).map((weight, s) => {
        if (weight < SHOWN) return "";
        const [from, to] = [y(s, srcWords.length), y(w, words.length)];
        const path = `M0 ${from}C${GAP / 2} ${from} ${GAP / 2} ${to} ${GAP} ${to}`;
        return `<path class="${this.pointed.has(w) ? "pointed" : ""}" data-word="${w}" d="${path}" stroke-width="${(7 * weight).toFixed(2)}" opacity="${(0.15 + 0.85 * weight).toFixed(2)}"/>`;
      }).join("")).join("");
    }

    // Each head's weights as a small picture; those that are out are crossed.
    showHeads() {
      const { srcWords, words, weights } = this.found;
      this.all(".head").forEach((button) => button.setAttribute("aria-pressed", String(this.off.has(button.dataset.head))));
      this.all(".layer").forEach((button) =>
        button.setAttribute("aria-pressed", String(this.all(`[data-head^="decoder.${button.dataset.layer}."]`).every((head) => this.off.has(head.dataset.head)))));
      if (!this.one(".heads").open) return; // nobody sees what follows
      const n = this.off.size;
      this.one(".loss").textContent = n ? `${n} of 16 heads are out.` : "All 16 heads are in.";
      if (this.found !== this.whole) {
        const { found } = this;
        requestAnimationFrame(() => exformer.pause().then(() => this.addLoss(found)));
      }
      const ink = getComputedStyle(this).getPropertyValue("--encoder-edge").trim() || "#741af2";
      this.all(".head").forEach((button, i) => {
        const [layer, head] = [Math.floor(i / this.model.config.n_heads), i % this.model.config.n_heads];
        const canvas = button.firstElementChild;
        Object.assign(canvas, { width: srcWords.length || 1, height: words.length || 1 });
        const pen = canvas.getContext("2d");
        pen.fillStyle = ink;
        words.forEach(({ tokens: [first] }, w) => srcWords.forEach(({ tokens }, s) => {
          pen.globalAlpha = Math.min(1, sum(tokens.map((t) => weights[first][layer][head][t])));
          pen.fillRect(s, w, 1, 1);
        }));
      });
    }

    // How probable the translation is to the whole model; computed once the translation can be seen.
    addLoss(found) {
      if (found !== this.found || this.trouble) return;
      const loss = this.whole.logProbability - logProbabilityOf(this.model, this.tokenizer, found.ids, this.whole.memory);
      if (loss > 0.005) this.one(".loss").textContent += ` To the whole model, this translation is ${loss.toFixed(1)} nats less probable than its own.`;
    }

    showTask() {
      const first = this.text === EXAMPLES[0];
      const solved = first && SOLVED.test(this.found.text);
      const [ask, answer] = this.one(".task").children;
      ask.innerHTML = first ? "<b>Try it.</b> Make the dogs play with the <i>grass</i>, without typing a word." : "<b>Try it.</b> Point a word at another one. What comes after it, and is anything lost?";
      answer.textContent = !first ? "" : solved ? "Solved: where it attends decides which word comes next, and the rest of the sentence follows." : "";
      this.one(".task").classList.toggle("solved", solved);
    }

    // ---- pointing: by a press on two words, by dragging, or with the keys ----

    choose(word) {
      this.chosen = this.chosen === word ? null : word;
      this.all(".target button").forEach((button, i) => button.setAttribute("aria-pressed", String(i === this.chosen)));
      this.one(".board").classList.toggle("choosing", this.chosen !== null);
      this.all("svg path").forEach((path) => path.classList.toggle("faint", this.chosen !== null && Number(path.dataset.word) !== this.chosen));
      this.one(".hint").textContent = this.chosen === null
        ? HINT
        : `Now choose the German word that “${this.found.words[word].text}” should attend to. Escape lets go.`;
      if (this.chosen !== null) this.announce(this.one(".hint").textContent);
    }

    press(event) {
      const button = event.target.closest(".board button");
      if (event.key === "Escape") {
        const chosen = this.chosen;
        if (chosen === null) return;
        this.choose(chosen);
        this.all(".target button")[chosen].focus();
        return;
      }
      if (!button) return;
      const side = button.closest("ol");
      const buttons = [...side.querySelectorAll("button")];
      const i = buttons.indexOf(button);
      const steps = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: buttons.length - 1 };
      let to = buttons[steps[event.key]];
      if (["ArrowLeft", "ArrowRight"].includes(event.key)) {
        const other = this.all(`${event.key === "ArrowLeft" ? ".source" : ".target"} button`);
        to = side.matches(event.key === "ArrowLeft" ? ".target" : ".source") ? other[Math.min(i, other.length - 1)] : null;
      }
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.take(button);
        if (side.matches(".target") && this.chosen !== null) to = this.all(".source button")[this.attended(this.chosen)];
      }
      if (!to) return;
      event.preventDefault();
      to.focus();
    }

    take(button) {
      const i = [...button.closest("ol").querySelectorAll("button")].indexOf(button);
      if (button.closest(".target")) this.choose(i);
      else if (this.chosen !== null) this.point(this.chosen, i);
    }

    grab(event) {
      const from = event.target.closest(".board button");
      if (!from || event.button > 0) return;
      const word = from.closest(".target") ? this.all(".target button").indexOf(from) : null;
      const box = this.one(".board svg").getBoundingClientRect();
      const begin = from.getBoundingClientRect();
      let line = null;
      if (event.pointerType !== "touch") event.preventDefault(); // no text is selected on the way
      const move = (each) => {
        if (word === null || (!line && Math.hypot(each.clientX - event.clientX, each.clientY - event.clientY) < 6)) return;
        line ??= this.one(".board svg").appendChild(document.createElementNS("http://www.w3.org/2000/svg", "line"));
        line.setAttribute("class", "pulled");
        for (const [name, value] of [["x1", GAP], ["y1", begin.top + begin.height / 2 - box.top], ["x2", each.clientX - box.left], ["y2", each.clientY - box.top]]) line.setAttribute(name, value);
      };
      const end = (each) => {
        removeEventListener("pointermove", move);
        removeEventListener("pointerup", end);
        removeEventListener("pointercancel", end);
        line?.remove();
        if (each.type === "pointercancel") return;
        const over = document.elementFromPoint(each.clientX, each.clientY)?.closest(".board button");
        if (line && over?.closest(".source")) this.point(word, this.all(".source button").indexOf(over));
        else if (over === from) {
          from.focus({ preventScroll: true });
          this.take(from);
        }
      };
      addEventListener("pointermove", move);
      addEventListener("pointerup", end);
      addEventListener("pointercancel", end);
    }

    // ---- the address ----

    read() {
      const parts = (this.state ?? "").split("|"); // a caption may have the sign itself
      const [off = "", pointed = ""] = parts.splice(Math.max(1, parts.length - 2));
      const text = parts.join("|");
      const heads = new Set(this.all(".head").map((button) => button.dataset.head));
      off.split(",").filter((each) => heads.has(each)).forEach((each) => this.off.add(each));
      this.text = (text || EXAMPLES[0]).slice(0, LONGEST);
      this.one("input").value = this.text;
      for (const each of pointed.split(",")) {
        const [word, at] = each.split(">").map(Number);
        if (each && Number.isInteger(word) && Number.isInteger(at)) this.pointed.set(word, at);
      }
    }

    write() {
      const plain = this.text === EXAMPLES[0] && !this.off.size && !this.pointed.size;
      this.state = plain ? "" : `${this.text}|${[...this.off].join(",")}|${[...this.pointed].map(([word, at]) => `${word}>${at}`).join(",")}`;
    }
  }

  customElements.define("exformer-translator", Translator);
})();
