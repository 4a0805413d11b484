// needs: frame, weights, tokenizers, encoder-decoder, pointing
// <exformer-heads>: an English caption, its German translation, and the heads of the encoder. A head can be chosen, which
// draws its weights, and taken out; the model translates again at once.
"use strict";
(() => {
  const { Figure, pointedTranslation, withoutHeads, strangeLetter, sum, escapeHtml: escape } = exformer;
  const NAME = "multi30k-en-de";
  const EXAMPLES = [
    "A boy is pushing a shopping cart through the supermarket.",
    "A man is jumping over a small white dog.",
    "A girl with a red bag is reading a book.",
    "A man is walking through the supermarket.",
  ];
  const FIRST = "1 0"; // layer and head that are chosen at first, counted from 0
  const SOUGHT = "2 3"; // without it, as without "1 1", the first caption gets a wrong article
  const LONGEST = 100; // characters; the captions of the training have 70 on average
  const SHOWN = 0.1; // weights below are not drawn
  const ROW = 28; // px between two words
  const GAP = 120; // px between the columns
  const HINT = "Rows are words, columns the words that they look at. Press a square to see its weights.";

  const HTML = `
    <form class="ask"><label>English <input type="text" spellcheck="false" autocomplete="off" lang="en"></label>
      <button type="submit">Translate</button></form>
    <div class="examples" role="group" aria-label="Other captions"></div>
    <div class="task"><p></p><p class="answer"></p></div>
    <p class="german" lang="de"></p>
    <p class="before"></p>
    <div class="parts">
      <div><div class="wall" role="group" aria-label="The heads of the encoder"></div><p class="hint"></p></div>
      <div>
        <div class="chosen"><b class="name"></b> <button type="button" class="take"></button></div>
        <div class="board"><ol class="from" aria-label="Words, and where they look"></ol><svg aria-hidden="true" preserveAspectRatio="none"></svg><ol class="to" aria-hidden="true"></ol></div>
      </div>
    </div>
    <div class="buttons"><button type="button" class="all">Take all out</button> <button type="button" class="again">Start again</button></div>`;

  const pathOf = (name) => `encoder.${name.split(" ")[0]}.self_attention ${name.split(" ")[1]}`;
  const title = (name) => `Layer ${Number(name.split(" ")[0]) + 1}, head ${Number(name.split(" ")[1]) + 1}`;

  class Heads extends Figure {
    static models = [NAME];

    one = (css) => this.stage.querySelector(css);
    all = (css) => [...this.stage.querySelectorAll(css)];

    start({ [NAME]: { model, tokenizer } }) {
      const { n_layers: layers, n_heads: heads } = model.config;
      const names = Array.from({ length: layers }, (_, layer) => Array.from({ length: heads }, (_, head) => `${layer} ${head}`));
      Object.assign(this, { model, tokenizer, names: names.flat(), off: new Set(), whole: null });
      this.stage.innerHTML = HTML;
      this.one(".examples").innerHTML = EXAMPLES.map((text) => `<button type="button">${escape(text)}</button>`).join("");
      const above = `<span></span>${names[0].map((_, head) => `<span class="above">head ${head + 1}</span>`).join("")}`;
      this.one(".wall").innerHTML = above + names.map((row, layer) => `<span>layer ${layer + 1}</span>${row.map((name) =>
        `<button type="button" class="head" data-head="${name}"><canvas></canvas></button>`).join("")}`).join("");
      this.one(".ask").addEventListener("submit", (event) => {
        event.preventDefault();
        this.ask(this.one("input").value);
      });
      this.all(".examples button").forEach((button) => button.addEventListener("click", () => this.ask(button.textContent)));
      this.all(".head").forEach((button) => button.addEventListener("click", () => this.choose(button.dataset.head)));
      this.one(".take").addEventListener("click", () => this.take([this.chosen]));
      this.one(".all").addEventListener("click", () => this.take(this.names));
      this.one(".again").addEventListener("click", () => {
        this.off.clear();
        this.chosen = FIRST;
        this.ask(EXAMPLES[0]);
      });
      this.read();
      this.translate();
    }

    // ---- what is asked for ----

    ask(text) {
      text = text.trim();
      this.cut = text.length > LONGEST;
      this.text = text.slice(0, LONGEST);
      this.one("input").value = this.text;
      this.whole = null;
      this.translate();
    }

    choose(name) {
      this.chosen = name;
      this.show();
      this.write();
      const looks = this.trouble ? [] : this.words().slice(0, -1).map((word, i) => `${word.text} looks at ${this.looked(i)}`);
      this.announce(`${title(name)}: ${looks.join(", ")}.`);
    }

    // Take some heads out, or put them back where all of them are out.
    take(heads) {
      const out = heads.some((name) => !this.off.has(name));
      heads.forEach((name) => (out ? this.off.add(name) : this.off.delete(name)));
      this.translate();
    }

    translate() {
      try {
        const line = exformer.normalizeLine(this.text);
        if (!line) throw new Error("Type an English caption, or choose one below.");
        this.whole ??= this.run(line, []);
        this.found = this.off.size ? this.run(line, [...this.off].map(pathOf)) : this.whole;
        this.trouble = null;
      } catch (error) {
        this.trouble = error.message;
      }
      this.show();
      this.write();
      const { trouble, off, found, whole } = this;
      this.announce(trouble ?? `${off.size ? `${off.size} of ${this.names.length} heads are out. ${found.text === whole.text ? "As before" : "Now"}: ` : ""}${found.text}`);
    }

    // The translation without some heads of the encoder, and the weights of all heads: layer by layer, one matrix a head.
    run(line, off) {
      const { n_heads: nHeads, n_layers: nLayers } = this.model.config;
      const [source] = this.tokenizer;
      const hooks = withoutHeads(off, nHeads);
      const rows = [];
      for (let layer = 0; layer < nLayers; layer++)
        hooks[`encoder.${layer}.self_attention.weights`] = (heads) => void rows.push(heads.map((head) => head.data.slice()));
      const memory = this.model.encode([...source.encode(line), source.endId], { hooks });
      return { ...pointedTranslation(this.model, this.tokenizer, this.text, { memory }), rows };
    }

    // ---- what was found ----

    // The words of the caption, and its end.
    words() {
      const { srcWords, srcIds } = this.whole;
      return [...srcWords, { text: "</s>", tokens: [srcIds.length] }];
    }

    // The weight that the whole model gives each word where a word looks, in a head.
    weightsOf(name, word) {
      const [layer, head] = name.split(" ").map(Number);
      const words = this.words();
      const n = this.whole.srcIds.length + 1;
      const { tokens } = words[word];
      return words.map((key) => sum(tokens.map((t) => sum(key.tokens.map((s) => this.whole.rows[layer][head][t * n + s])))) / tokens.length);
    }

    looked(word) {
      const weights = this.weightsOf(this.chosen, word);
      return this.words()[weights.indexOf(Math.max(...weights))].text;
    }

    // ---- what is shown ----

    show() {
      const { trouble, off, chosen, found, whole } = this;
      const strange = strangeLetter.exec(this.text)?.[0];
      this.one(".hint").textContent = strange ? `The model has learned from English captions and knows no “${strange}”: what it writes for it is a guess.`
        : this.cut ? `Only the first ${LONGEST} characters are translated: the model has learned from captions of 70.` : HINT;
      this.all(".head").forEach((button) => {
        const name = button.dataset.head;
        button.setAttribute("aria-pressed", String(name === chosen));
        button.setAttribute("aria-label", `${title(name)}${off.has(name) ? ", out" : ""}`);
        button.classList.toggle("out", off.has(name));
      });
      this.one(".name").textContent = title(chosen);
      this.one(".take").textContent = off.has(chosen) ? "Put it back" : "Take it out";
      this.one(".all").textContent = off.size === this.names.length ? "Put all back" : "Take all out";
      this.one(".parts").classList.toggle("empty", Boolean(trouble));
      if (trouble) {
        this.one(".german").textContent = trouble;
        this.one(".before").textContent = "";
        return this.showTask();
      }
      this.draw();
      const texts = (of) => of.words.map((word) => word.text);
      const old = new Set(texts(whole));
      this.one(".german").innerHTML = found === whole ? escape(found.text)
        : found.text.split(" ").map((word) => (old.has(word.replace(/[.,]$/, "")) ? escape(word) : `<u>${escape(word)}</u>`)).join(" ");
      this.one(".before").textContent = !off.size ? "" : found.text === whole.text ? "as before, word for word" : `before: ${whole.text}`;
      this.showTask();
    }

    draw() {
      const words = this.words();
      const rows = words.slice(0, -1).map((_, i) => this.weightsOf(this.chosen, i));
      this.one(".from").innerHTML = rows.map((_, i) => `<li>${escape(words[i].text)}<span class="visually-hidden"> looks at ${escape(this.looked(i))}</span></li>`).join("");
      this.one(".to").innerHTML = words.map((word) => `<li>${escape(word.text)}</li>`).join("");
      const y = (i) => (i + 0.5) * ROW;
      const svg = this.one(".board svg");
      svg.setAttribute("viewBox", `0 0 ${GAP} ${words.length * ROW}`);
      svg.style.height = `${words.length * ROW}px`;
      svg.innerHTML = rows.map((weights, i) => weights.map((weight, s) => weight < SHOWN ? "" :
        `<path d="M0 ${y(i)}C${GAP / 2} ${y(i)} ${GAP / 2} ${y(s)} ${GAP} ${y(s)}" stroke-width="${(6 * weight).toFixed(2)}" opacity="${(0.15 + 0.85 * weight).toFixed(2)}"/>`).join("")).join("");
      const ink = getComputedStyle(this).getPropertyValue("--high-edge").trim() || "#2a78b0";
      this.all(".head").forEach((button) => {
        const canvas = button.firstElementChild;
        Object.assign(canvas, { width: words.length, height: words.length - 1 });
        const pen = canvas.getContext("2d");
        pen.fillStyle = ink;
        for (let i = 0; i < words.length - 1; i++) this.weightsOf(button.dataset.head, i).forEach((weight, s) => {
          pen.globalAlpha = Math.min(1, weight);
          pen.fillRect(s, i, 1, 1);
        });
      });
    }

    showTask() {
      const first = this.text === EXAMPLES[0];
      const [ask, answer] = this.one(".task").children;
      ask.innerHTML = first
        ? "<b>Find it.</b> Without layer 2, head 2, <i>den Supermarkt</i> becomes the wrong <i>die Supermarkt</i>. Without one other head it does, too. Which?"
        : "<b>Try it.</b> How many heads can you take out before the translation changes?";
      const solved = first && !this.trouble && this.off.size === 1 && this.off.has(SOUGHT);
      answer.textContent = !solved ? "" : `Found: ${title(SOUGHT).toLowerCase()}. The fourteen others change nothing here.`;
      this.one(".task").classList.toggle("solved", solved);
    }

    // ---- the address ----

    read() {
      const parts = (this.state ?? "").split("|"); // a caption may have the sign itself
      const [chosen = "", off = ""] = parts.splice(Math.max(1, parts.length - 2));
      const text = parts.join("|");
      this.chosen = this.names.includes(chosen) ? chosen : FIRST;
      off.split(",").filter((each) => this.names.includes(each)).forEach((each) => this.off.add(each));
      this.cut = text.length > LONGEST;
      this.text = (text || EXAMPLES[0]).slice(0, LONGEST);
      this.one("input").value = this.text;
    }

    write() {
      const plain = this.text === EXAMPLES[0] && this.chosen === FIRST && !this.off.size;
      this.state = plain ? "" : `${this.text}|${this.chosen}|${[...this.off].join(",")}`;
    }
  }

  customElements.define("exformer-heads", Heads);
})();
