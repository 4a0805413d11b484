// needs: frame
// <exformer-merges>: predict which pair byte-pair encoding merges next, in a text of the reader's own.
"use strict";
(() => {
  const { Figure } = exformer;
  const TEXT = "Peter Piper picked a peck of pickled peppers";
  const LONGEST = 160; // characters of the text
  const MOST = 60; // merges that an address may ask for
  const CHOICES = 6;

  // ---- what is computed: words are lists of tokens, a pair is two tokens and a count ----

  const split = (text) => text.split(/\s+/u).filter(Boolean).map((word) => Array.from(word));

  // Which text comes first: by the codes of its characters.
  function order(a, b) {
    const [x, y] = [a, b].map((each) => Array.from(each, (c) => c.codePointAt(0)));
    for (let i = 0; i < Math.min(x.length, y.length); i += 1) if (x[i] !== y[i]) return x[i] - y[i];
    return x.length - y.length;
  }

  const inOrder = (a, b) => order(a.pair[0], b.pair[0]) || order(a.pair[1], b.pair[1]);

  // All pairs of neighbors; the one that is merged next comes first.
  function ranked(words) {
    const found = new Map();
    for (const word of words) {
      for (let i = 1; i < word.length; i += 1) {
        const name = `${word[i - 1]} ${word[i]}`;
        if (!found.has(name)) found.set(name, { pair: [word[i - 1], word[i]], count: 0 });
        found.get(name).count += 1;
      }
    }
    return [...found.values()].sort((a, b) => b.count - a.count || inOrder(a, b));
  }

  function merge(word, [first, second]) {
    const joined = [];
    for (let i = 0; i < word.length; i += 1) {
      const fits = word[i] === first && word[i + 1] === second;
      joined.push(fits ? first + second : word[i]);
      if (fits) i += 1;
    }
    return joined;
  }

  // The merges of a text, as many as there are up to n.
  function learn(text, n) {
    let words = split(text);
    const merges = [];
    while (merges.length < n) {
      const [best] = ranked(words);
      if (!best) break;
      merges.push(best);
      words = words.map((word) => merge(word, best.pair));
    }
    return { words, merges };
  }

  // A token in a sentence: a long one is cut.
  const named = (text) => (Array.from(text).length > 12 ? `${Array.from(text).slice(0, 11).join("")}…` : text);

  const encode = (word, merges) => merges.reduce((tokens, { pair }) => merge(tokens, pair), Array.from(word));

  // ---- what is drawn ----

  const HTML = `
    <label class="given"><span>Text</span><input type="text" class="text" maxlength="${LONGEST}" autocomplete="off" spellcheck="false"></label>
    <div class="words" tabindex="0" role="group" aria-label="the text in tokens"></div>
    <p class="question"></p>
    <div class="choices"></div>
    <div class="told"><p class="answer"></p><button type="button" class="next">Next merge</button></div>
    <p class="made" tabindex="0" role="group" aria-label="merges so far"></p>
    <label class="given"><span>New word</span><input type="text" class="word" maxlength="24" autocomplete="off" spellcheck="false" value="peppered"></label>
    <div class="encoded" tabindex="0" role="group" aria-label="the new word in tokens"></div>
    <div class="task"><p><b>Try it.</b> Write a text in which the third merge makes a whole word of four letters or more.</p><p class="solved"></p>
      <button type="button" class="again">Start again</button></div>`;

  class Merges extends Figure {
    start() {
      this.stage.innerHTML = HTML;
      [this.n, this.text] = this.read();
      this.one(".text").value = this.text;
      this.one(".text").addEventListener("input", () => this.renewed());
      this.one(".word").addEventListener("input", () => this.showWord());
      this.one(".next").addEventListener("click", () => this.proceed());
      this.one(".again").addEventListener("click", () => this.again());
      this.right = this.guesses = 0;
      this.begin();
    }

    one = (css) => this.stage.querySelector(css);

    renewed() {
      [this.n, this.text] = [0, this.one(".text").value];
      this.right = this.guesses = 0;
      this.begin();
      this.write();
    }

    again() {
      [this.n, this.text] = [0, TEXT];
      this.one(".text").value = TEXT;
      this.one(".word").value = "peppered";
      this.right = this.guesses = 0;
      this.begin();
      this.write();
    }

    // A round: the words after n merges, and a question.
    begin() {
      const { words, merges } = learn(this.text, this.n);
      [this.words, this.merges, this.n] = [words, merges, merges.length];
      this.pairs = ranked(words);
      this.choices = this.pairs.slice(0, CHOICES).sort(inOrder);
      this.guess = null;
      this.show();
    }

    // The reader's prediction: the counts are told, and the merge is made.
    choose(choice) {
      if (this.guess) return;
      const [best] = this.pairs;
      this.guess = choice;
      this.guesses += 1;
      if (choice === best) this.right += 1;
      this.merges = [...this.merges, best];
      this.words = this.words.map((word) => merge(word, best.pair));
      this.show();
      this.announce(`${this.verdict()} ${this.found()}`);
      this.one(".next").focus({ preventScroll: true });
    }

    proceed() {
      if (!this.guess) return;
      this.n += 1;
      this.begin();
      this.write();
      this.one(".choices button")?.focus({ preventScroll: true });
    }

    // ---- showing ----

    // A list of tokens; those that the last merge made are framed.
    token(text, fresh) {
      const made = document.createElement("span");
      made.className = fresh ? "token fresh" : "token";
      made.textContent = text;
      return made;
    }

    show() {
      const fresh = this.guess ? this.pairs[0].pair.join("") : null;
      const words = this.words.map((tokens) => {
        const made = document.createElement("span");
        made.className = "piece";
        made.append(...tokens.map((each) => this.token(each, each === fresh)));
        return made;
      });
      this.one(".words").replaceChildren(...words);
      this.one(".question").textContent = this.pairs.length ? "Which pair is merged next?" : "No pair is left: each word is one token.";
      this.one(".choices").replaceChildren(...this.choices.map((choice) => this.button(choice)));
      this.one(".answer").textContent = this.verdict();
      this.one(".next").disabled = !this.guess;
      this.one(".made").textContent = this.merges.length ? `Merges: ${this.merges.map(({ pair, count }) => `${pair.join("")} (${count})`).join(", ")}` : "No merge yet.";
      const found = this.found();
      this.one(".solved").textContent = found;
      this.showWord();
    }

    button(choice) {
      const made = document.createElement("button");
      made.type = "button";
      made.className = "pair";
      if (this.guess && choice === this.pairs[0]) made.classList.add("best");
      if (choice === this.guess) made.classList.add("mine");
      made.setAttribute("aria-disabled", String(Boolean(this.guess)));
      const [name, count] = [document.createElement("b"), document.createElement("span")];
      name.textContent = choice.pair.join(" ");
      count.textContent = this.guess ? `${choice.count} ×` : "?";
      made.append(name, count);
      made.addEventListener("click", () => this.choose(choice));
      return made;
    }

    verdict() {
      if (!this.guess) return this.guesses ? `Right so far: ${this.right} of ${this.guesses}.` : "Count before you press.";
      const [best] = this.pairs;
      const name = ({ pair }) => pair.map(named).join(" ");
      const tie = this.pairs.filter(({ count }) => count === best.count).length;
      if (this.guess === best) return tie > 1 ? `Right: of ${tie} pairs that occur equally often, ${name(best)} is first in the alphabet.` : `Right: ${name(best)} occurs most often.`;
      if (this.guess.count === best.count) return `A tie: ${name(this.guess)} occurs as often, but ${name(best)} is first in the alphabet.`;
      return `No: ${name(best)} occurs ${best.count} times, ${name(this.guess)} only ${this.guess.count}.`;
    }

    showWord() {
      const word = this.one(".word").value.replace(/\s+/gu, "");
      const tokens = encode(word, this.merges);
      this.one(".encoded").replaceChildren(...tokens.map((each) => this.token(each, false)));
    }

    // ---- the task ----

    found() {
      const third = this.merges[2]?.pair.join("");
      const whole = third && Array.from(third).length >= 4 && split(this.text).some((word) => word.join("") === third);
      if (whole) return `Found: after three merges, ${named(third)} is one token.`;
      return this.right >= 6 ? `You predicted ${this.right} merges of ${this.guesses}.` : "";
    }

    // ---- the address, which may hold anything: the number of merges, and the text ----

    read() {
      const [, n, text] = /^(\d{1,3})\|(.*)$/su.exec(this.state) ?? [];
      if (text === undefined) return [0, TEXT];
      return [Math.min(Number(n), MOST), Array.from(text).slice(0, LONGEST).join("")];
    }

    write() {
      this.state = this.n === 0 && this.text === TEXT ? "" : `${Math.min(this.n, MOST)}|${this.text}`;
    }
  }

  exformer.merges = { learn, encode }; // for the tests, which compare them with the lesson's
  customElements.define("exformer-merges", Merges);
})();
