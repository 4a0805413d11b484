// What all live figures share: they replace their still picture, keep their state in the address, and announce
// changes to readers who do not see them. A figure extends exformer.Figure and has a method `start`.
"use strict";
globalThis.exformer ??= {};
(() => {
  const SETTLED = 600; // ms without a change, after which it is said, and written into the address

  class Figure extends HTMLElement {
    static models = []; // names of the models that `start` is given

    connectedCallback() {
      if (this.stage) return;
      this.renew();
      this.said = document.createElement("p");
      this.said.className = "visually-hidden";
      this.said.setAttribute("aria-live", "polite");
      this.append(this.said);
      this.launch();
      for (const act of ["pointerdown", "keydown", "input"]) this.addEventListener(act, () => { this.acted = true; });
      addEventListener("hashchange", () => this.follow());
    }

    launch() {
      this.ready = this.open().catch((error) => this.trouble(error));
    }

    // An empty stage, on which nothing listens any more.
    renew() {
      const stage = document.createElement("div");
      stage.className = "live-stage";
      stage.hidden = true;
      if (this.stage) this.stage.replaceWith(stage);
      else this.append(stage);
      this.stage = stage;
    }

    // The address has changed in the open page: start again from it.
    follow() {
      if (!location.hash.startsWith(this.mark)) return;
      clearTimeout(this.writing);
      this.kept = undefined;
      this.launch();
    }

    async open() {
      this.classList.add("loading");
      this.querySelector(".live-trouble")?.remove();
      const names = this.constructor.models;
      const models = await Promise.all(names.map((name) => exformer.load(name)));
      this.renew();
      this.stage.hidden = false;
      await this.start(Object.fromEntries(names.map((name, i) => [name, models[i]])));
      this.classList.remove("loading");
      this.classList.add("live");
      this.querySelector(".live-begin")?.remove();
    }

    // A part of the figure's scripts that is loaded when the reader asks for it.
    later(part) {
      return exformer.script(new URL(JSON.parse(this.dataset.later)[part], document.baseURI).href);
    }

    // The still picture stays, and a sentence says why.
    trouble(error) {
      this.classList.remove("loading", "live");
      this.stage.hidden = true;
      const line = this.querySelector(".live-trouble") ?? this.appendChild(document.createElement("p"));
      line.className = "live-trouble";
      line.textContent = `The figure cannot run here: ${error.message} `;
      const again = line.appendChild(document.createElement("button"));
      again.type = "button";
      again.textContent = "Try again";
      again.addEventListener("click", () => this.launch());
    }

    // Announce something once the reader has paused, and nothing before the reader's first action.
    announce(words) {
      clearTimeout(this.saying);
      if (!this.acted) return;
      this.saying = setTimeout(() => { this.said.textContent = words; }, SETTLED);
    }

    get mark() {
      return `#${this.localName.slice("exformer-".length)}=`;
    }

    // The figure's part of the address, a string that may hold anything.
    get state() {
      if (this.kept !== undefined) return this.kept;
      try {
        return location.hash.startsWith(this.mark) ? decodeURIComponent(location.hash.slice(this.mark.length)) : "";
      } catch { // a garbled address
        return "";
      }
    }

    set state(text) {
      this.kept = text;
      clearTimeout(this.writing);
      this.writing = setTimeout(() => {
        if (!text && !location.hash.startsWith(this.mark)) return;
        const bare = location.href.split("#")[0];
        history.replaceState(history.state, "", text ? `${bare}${this.mark}${encodeURIComponent(text)}` : bare);
      }, SETTLED);
    }
  }

  exformer.Figure = Figure;
})();
