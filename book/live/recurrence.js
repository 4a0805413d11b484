// needs: frame, weights, tokenizers, recurrent, english-italian
// <exformer-recurrence>: an English sentence that the reader makes longer, or changes, between its translations by two
// models: the decoder of one starts from one vector, that of the other attends to the states after all words.
"use strict";
(() => {
  const { derive, parse, meaning } = exformer.englishItalian;
  const { nouns, adjectives, verbs, prepositions } = exformer.englishItalianWords;
  const MODELS = { a: "two-translators-one-vector", b: "two-translators-attention" };
  const FIRST = "many cats didn't find the hungry foxes beyond many sunny lakes"; // the lesson's
  const [SHORTEST, LONGEST] = [3, 12]; // words of a sentence
  const ROWS = 13; // of words, at most: twelve, and the end token
  const SOLVED = 5; // words of a sentence that translator C gets right
  const SHOWN = 0.08; // weights below are not drawn
  const MOST = 18; // words of a translation

  // What a sentence of 3, 4, … words has besides subject and verb; 1, 2, 3: adjectives of subject, object, place.
  const PARTS = ["", "1", "1 negative", "1 object", "1 negative object", "1 negative object 2", "1 object place"];
  PARTS.push("1 negative object place", "1 negative object place 2", "1 negative object place 2 3");

  const HTML = `
    <div class="chart">
      <p class="title">Content words that arrive</p>
      <div class="plot">
        <svg viewBox="0 0 9 100" preserveAspectRatio="none" aria-hidden="true"></svg>
        <span class="name b">D, attention</span><span class="name a">C, one vector</span>
        <i class="at"></i><i class="dot b"></i><i class="dot a"></i>
      </div>
      <label><span class="visually-hidden">Words in the English sentence</span><input type="range" min="${SHORTEST}" max="${LONGEST}"></label>
      <div class="ticks" aria-hidden="true">${Array.from({ length: 10 }, (_, i) => `<span>${i + SHORTEST}</span>`).join("")}</div>
      <p class="axis">words in the English sentence: <b>drag to make it longer or shorter</b></p>
    </div>
    <div class="board">
      <div class="head a"><b>C</b> <span>one vector</span><small></small></div>
      <div class="head source"><span>English</span><small></small></div>
      <div class="head b"><b>D</b> <span>attention</span><small></small></div>
      <ol class="words a" lang="it" aria-label="Translation by C"></ol>
      <div class="link a" aria-hidden="true"><svg preserveAspectRatio="none"></svg><div class="vector"></div></div>
      <ol class="words source" aria-label="English sentence"></ol>
      <div class="link b" aria-hidden="true"><svg preserveAspectRatio="none"></svg></div>
      <ol class="words b" lang="it" aria-label="Translation by D"></ol>
    </div>
    <p class="noticed"></p>
    <div class="task"><p><b>Try it.</b> Find the longest sentence that C translates without a mistake.</p><p class="answer"></p></div>
    <div class="buttons"><button type="button" class="other">Another sentence of this length</button> <button type="button" class="again">Start again</button></div>`;

  const percent = (x) => `${Math.round(100 * x)}%`;
  const several = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  const any = (n) => Math.floor(Math.random() * n);

  // Which words of a text are not in the longest common subsequence with another.
  function different(words, others) {
    const longest = Array.from({ length: words.length + 1 }, () => new Array(others.length + 1).fill(0));
    for (let i = words.length - 1; i >= 0; i--)
      for (let j = others.length - 1; j >= 0; j--)
        longest[i][j] = words[i] === others[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    const found = new Set();
    for (let i = 0, j = 0; i < words.length; ) {
      if (j < others.length && words[i] === others[j]) { i++; j++; }
      else if (j < others.length && longest[i][j + 1] >= longest[i + 1][j]) j++;
      else found.add(i++);
    }
    return found;
  }

  // How many of the content words are in a text, as the lesson counts.
  function arrived(content, words) {
    const left = [...words];
    return content.filter((word) => left.includes(word) && left.splice(left.indexOf(word), 1)).length;
  }

  class Recurrence extends exformer.Figure {
    static models = Object.values(MODELS);

    one = (css) => this.stage.querySelector(css);
    all = (css) => [...this.stage.querySelectorAll(css)];

    start(models) {
      this.models = Object.fromEntries(Object.entries(MODELS).map(([key, name]) => [key, models[name]]));
      this.best = 0;
      this.stage.innerHTML = HTML;
      this.drawCurves();
      this.one("input").addEventListener("input", (event) => this.reshape(Number(event.target.value)));
      this.one(".other").addEventListener("click", () => this.another());
      this.one(".again").addEventListener("click", () => this.begin(FIRST));
      this.one(".words.source").addEventListener("change", (event) => this.choose(event.target.dataset.slot, event.target.value));
      const list = this.one(".words.b");
      list.addEventListener("click", (event) => this.lock(event.target.closest("button")));
      list.addEventListener("pointerover", (event) => event.pointerType === "mouse" && this.point(event.target.closest("button")));
      list.addEventListener("focusin", (event) => this.point(event.target.closest("button")));
      for (const away of ["pointerleave", "focusout"]) list.addEventListener(away, () => this.point(null));
      list.addEventListener("keydown", (event) => this.walk(event));
      this.stage.addEventListener("keydown", ({ key }) => key === "Escape" && this.locked !== null && this.lock(null));
      this.begin(this.state);
    }

    // ---- the sentence; parts that it does not have are remembered, and come back when it grows ----

    begin(text) {
      const given = parse(text.slice(0, 200)) ?? parse(FIRST);
      const [takes, verb] = given.verb;
      const keep = (phrase, kind) => ({ kind, determiner: "the", plural: false, noun: 0, adjective: null, ...phrase, spare: phrase?.adjective ?? 0 });
      this.parts = { subject: keep(given.subject), animal: keep(null, "animal"), place: keep(null, "place"), where: keep(given.place, "place") };
      if (given.object) this.parts[takes] = keep(given.object);
      this.verbs = { nothing: 0, animal: 0, place: 0, [takes]: verb };
      Object.assign(this, { takes, negative: given.negative, near: Boolean(given.place), preposition: given.preposition, before: null });
      this.show();
    }

    sentence() {
      const { parts, takes } = this;
      return {
        subject: parts.subject,
        negative: this.negative,
        verb: [takes, this.verbs[takes]],
        object: parts[takes] ?? null,
        preposition: this.preposition,
        place: takes === "animal" && this.near ? parts.where : null,
      };
    }

    reshape(n) {
      const has = (part) => PARTS[n - SHORTEST].includes(part);
      this.takes = has("object") ? "animal" : "nothing";
      this.negative = has("negative");
      this.near = has("place");
      const { subject, animal, where } = this.parts;
      [subject, animal, where].forEach((phrase, i) => {
        phrase.adjective = has(String(i + 1)) ? phrase.adjective ?? phrase.spare : null;
      });
      this.show();
    }

    another() {
      for (const phrase of Object.values(this.parts)) {
        const [determiner, plural] = [["the", false], ["the", true], ["a", false], ["many", true]][any(4)];
        const spare = any(adjectives[phrase.kind].length);
        Object.assign(phrase, { determiner, plural, spare, noun: any(nouns[phrase.kind].length), adjective: phrase.adjective === null ? null : spare });
      }
      for (const takes of Object.keys(verbs)) this.verbs[takes] = any(verbs[takes].length);
      this.preposition = Object.keys(prepositions)[any(3)];
      this.show();
    }

    choose(slot, value) {
      const [part, of] = slot.split(".");
      const phrase = this.parts[part];
      if (of === "determiner") {
        phrase.determiner = value;
        if (value !== "the") phrase.plural = value === "many";
      } else if (of === "adjective") {
        phrase.adjective = value === "" ? null : Number(value);
        phrase.spare = phrase.adjective ?? phrase.spare;
      } else if (of === "noun") {
        const [noun, plural] = value.split(" ").map(Number);
        Object.assign(phrase, { noun, plural: Boolean(plural) });
      } else if (part === "negative") this.negative = value === "1";
      else if (part === "verb") {
        const [takes, n] = value.split(" ");
        this.takes = takes;
        this.verbs[takes] = Number(n);
      } else {
        this.near = value !== "";
        this.preposition = value || this.preposition;
      }
      this.show();
      this.one(`[data-slot="${slot}"]`)?.focus({ preventScroll: true });
    }

    // ---- what the models make of it ----

    // The translation, greedy; the weights of each step; and the encoder's last state.
    run(key, source) {
      const { model, tokenizer: [english, italian] } = this.models[key];
      const weights = [];
      const hooks = { "attention.weights": ([{ data }]) => { weights.push(data.slice()); } };
      const memory = model.encode([...english.encode(source.join(" ")), english.endId]);
      const cache = model.newCache();
      const ids = [italian.beginId];
      while (ids.length <= MOST) {
        const { data } = model.decode(ids.slice(-1), memory, { cache, hooks });
        const id = data.indexOf(Math.max(...data));
        if (id === italian.endId) break;
        ids.push(id);
      }
      return { words: italian.decode(ids).split(" ").filter(Boolean), weights, vector: memory.row(memory.rows - 1) };
    }

    // ---- what is shown ----

    show() {
      const sentence = this.sentence();
      const right = derive(sentence);
      const found = { right: right.target, a: this.run("a", right.source), b: this.run("b", right.source) };
      const { before } = this;
      const same = before && before.source.length === right.source.length;
      Object.assign(this, { right, found, locked: null });
      this.showSlots(sentence, right.source);
      const counts = {};
      for (const key of ["a", "b"]) {
        const { words } = found[key];
        counts[key] = arrived(right.content, words);
        this.showWords(key, words, right.target, same ? before[key] : null);
        const perfect = words.join(" ") === right.target.join(" ");
        this.one(`.head.${key} small`).innerHTML = `<span class="${perfect ? "right" : "wrong"}">${perfect ? "✓" : "✗"}</span> ${counts[key]} of ${right.content.length} arrive`;
        this.one(`.dot.${key}`).style.setProperty("--y", counts[key] / right.content.length);
        this.one(`.dot.${key}`).classList.toggle("perfect", perfect);
      }
      this.drawVector(found.a.vector);
      this.drawArcs();
      const n = right.source.length;
      this.stage.style.setProperty("--n", n);
      this.one("input").value = n;
      this.one(".head.source small").textContent = several(n, "word");
      this.one(".noticed").innerHTML = (same && this.noticed(before)) || "<b>Then change the first noun, and the last:</b> press the word, choose another. <span>Who notices?</span>";
      this.showTask(n);
      this.before = { source: right.source, right: right.target, a: found.a.words, b: found.b.words };
      this.state = right.source.join(" ") === FIRST ? "" : right.source.join(" ");
      this.announce(`${right.source.join(" ")}. Of ${several(right.content.length, "content word")} arrive: C ${counts.a}, D ${counts.b}. ${this.one(".noticed").textContent}`);
    }

    // How many words each translation changed after one was changed.
    noticed(before) {
      const changes = (now, then) => Math.max(different(now, then).size, different(then, now).size);
      const { right, found } = this;
      const english = [...different(right.source, before.source)];
      if (!english.length) return "";
      if (english.length > 1) return "<b>Another sentence.</b>";
      const said = `<b>${before.source[english[0]]} → ${right.source[english[0]]}.</b>`;
      const [due, a, b] = [changes(right.target, before.right), changes(found.a.words, before.a), changes(found.b.words, before.b)];
      const tell = (name, n) => `${name} changes ${n ? several(n, "word") : "nothing"}`;
      return `${said} ${tell("The right translation", due)}: ${tell("C", a)}, ${tell("D", b)}.`;
    }

    showTask(n) {
      const perfect = this.found.a.words.join(" ") === this.right.target.join(" ");
      if (perfect && n > this.best) Object.assign(this, { best: n, champion: this.right.source.join(" ") });
      const answer = !this.best ? "None yet." : `${this.best >= SOLVED ? "Solved" : "So far"}: ${this.best} words, “${this.champion}”.`;
      this.one(".answer").textContent = answer;
      this.one(".task").classList.toggle("solved", this.best >= SOLVED);
    }

    showWords(key, words, right, before) {
      const wrong = different(words, right);
      const changed = before ? different(words, before) : new Set();
      this.one(`.words.${key}`).innerHTML = words.map((word, i) => {
        const marks = `${wrong.has(i) ? " wrong" : ""}${changed.has(i) ? " changed" : ""}`;
        const [open, close] = key === "a" ? ["div", "div"] : [`button type="button" aria-pressed="false" data-word="${i}" tabindex="${i ? -1 : 0}"`, "button"];
        return `<li class="word${marks}"><${open}><b>${word}</b><span>${meaning.get(`${words[i - 1]} ${word}`) ?? meaning.get(word) ?? ""}</span><span class="visually-hidden">${marks}</span></${close}></li>`;
      }).join("");
    }

    // The English sentence: a choice for each word, and for each word that could be added.
    showSlots(sentence, source) {
      const slots = [];
      const slot = (name, label, value, options) => slots.push({ name, label, value, options });
      const phrase = (part, label) => {
        const { kind, determiner, plural, noun, adjective } = this.parts[part];
        slot(`${part}.determiner`, `article of the ${label}`, determiner, ["the", "a", "many"].map((each) => [each, each]));
        slot(`${part}.adjective`, `adjective of the ${label}`, adjective ?? "", [["", ""], ...adjectives[kind].map(([english], i) => [i, english])]);
        const forms = { the: [0, 1], a: [0], many: [1] }[determiner];
        slot(`${part}.noun`, label, `${noun} ${Number(plural)}`, forms.flatMap((form) => nouns[kind].map(([, ...two], i) => [`${i} ${form}`, two[form][0]])));
      };
      phrase("subject", "first noun");
      slot("negative.", "negation", this.negative ? "1" : "", [["", ""], ["1", "didn't"]]);
      slot("verb.", "verb", `${this.takes} ${this.verbs[this.takes]}`, Object.entries(verbs).flatMap(([takes, list]) => list.map(([base, past], i) => [`${takes} ${i}`, this.negative ? base : past])));
      if (this.takes !== "nothing") phrase(this.takes, "second noun");
      if (this.takes === "animal") slot("near.", "preposition", this.near ? this.preposition : "", [["", ""], ...Object.keys(prepositions).map((each) => [each, each])]);
      if (sentence.place) phrase("where", "third noun");
      let n = 0;
      this.rowOf = []; // the row of each English word, and of the end token
      this.one(".words.source").innerHTML = slots.map(({ name, label, value, options }, row) => {
        const there = value !== "";
        if (there) this.rowOf.push(row);
        const shown = there ? source[n++] : "+";
        const list = options.map(([key, text]) => `<option value="${key}"${key === value ? " selected" : ""}>${text || "(none)"}</option>`).join("");
        return `<li class="${there ? "there" : "free"}"><label><b aria-hidden="true">${shown}</b><select aria-label="${label}" data-slot="${name}">${list}</select></label></li>`;
      }).join("") + '<li class="end"><span>&lt;/s&gt;</span></li>';
      this.rowOf.push(slots.length);
    }

    // What C's decoder gets: the last state.
    drawVector(vector) {
      this.one(".vector").innerHTML = [...vector].map((x) => `<i class="${x < 0 ? "less" : ""}" style="--size:${Math.min(1, Math.abs(x)).toFixed(2)}"></i>`).join("");
      const end = this.rowOf.at(-1) + 0.5;
      const svg = this.one(".link.a svg");
      svg.setAttribute("viewBox", `0 0 10 ${ROWS}`);
      svg.innerHTML = `<path d="M10 ${end}C6 ${end} 5 ${end} 5 ${end > 7 ? 6.9 : end + 0.01}"/><path d="M5 1.1C5 .5 4 .5 0 .5"/>`;
    }

    drawArcs() {
      const { words, weights } = this.found.b;
      const svg = this.one(".link.b svg");
      svg.setAttribute("viewBox", `0 0 10 ${ROWS}`);
      svg.innerHTML = words.map((_, word) => this.rowOf.map((row, j) => {
        const weight = weights[word][j];
        const [from, to] = [row + 0.5, word + 0.5];
        return weight < SHOWN ? "" : `<path data-word="${word}" stroke-width="${(6 * weight).toFixed(1)}" d="M0 ${from}C5 ${from} 5 ${to} 10 ${to}"/>`;
      }).join("")).join("");
      this.point(null);
    }

    drawCurves() {
      const card = (key) => Object.values(this.models[key].card.scores);
      const x = (i) => 0.5 + 2 * i; // 3.5, 5.5, … words; 3 is at the left edge
      // Each share is the mean of two lengths, the first and the last too: from edge to edge.
      const line = (shares) => {
        const y = shares.map((share) => (100 - 100 * share).toFixed(1));
        return `M0 ${y[0]}${y.map((each, i) => `L${x(i)} ${each}`).join("")}L9 ${y.at(-1)}`;
      };
      const seeds = (key) => card(key)[0]["content by seed"].map((_, s) => line(card(key).map((each) => each["content by seed"][s])));
      this.one(".plot svg").innerHTML = [25, 50, 75, 100].map((y) => `<path class="grid" d="M0 ${y}H9"/>`).join("") + ["a", "b"].map((key) =>
        seeds(key).map((d) => `<path class="seed ${key}" d="${d}"/>`).join("") + `<path class="curve ${key}" d="${line(card(key).map(({ content }) => content))}"/>`).join("");
    }

    // ---- pointing at a word of D: where it looks ----

    point(button) {
      const word = this.locked ?? (button ? Number(button.dataset.word) : null);
      this.all(".link.b path").forEach((path) => {
        path.classList.toggle("faint", word !== null && Number(path.dataset.word) !== word);
        path.classList.toggle("strong", Number(path.dataset.word) === word);
      });
      const rows = this.all(".words.source li");
      for (const row of rows) {
        row.style.removeProperty("--weight");
        row.removeAttribute("data-weight");
      }
      if (word === null) return;
      this.rowOf.forEach((row, j) => {
        const weight = this.found.b.weights[word][j];
        rows[row].style.setProperty("--weight", weight.toFixed(2));
        if (weight >= SHOWN) rows[row].dataset.weight = percent(weight);
      });
    }

    lock(button) {
      const word = button ? Number(button.dataset.word) : null;
      this.locked = this.locked === word ? null : word;
      this.all(".words.b button").forEach((each) => each.setAttribute("aria-pressed", String(Number(each.dataset.word) === this.locked)));
      this.point(null);
      if (this.locked === null) return;
      const weights = this.found.b.weights[this.locked];
      const looks = [...this.right.source, "the end"].flatMap((each, j) => (weights[j] < SHOWN ? [] : `${each}, ${percent(weights[j])}`));
      this.announce(`${this.found.b.words[this.locked]} looks at ${looks.join("; ")}. Escape lets go.`);
    }

    walk(event) {
      const buttons = this.all(".words.b button");
      const to = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const next = buttons[buttons.indexOf(event.target.closest("button")) + to];
      if (!to || !next) return;
      event.preventDefault();
      next.focus();
    }
  }

  customElements.define("exformer-recurrence", Recurrence);
})();
