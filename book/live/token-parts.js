// needs: sampling
// What the views of the next token share: elements, a text as a row of tokens, probabilities as bars.
"use strict";
(() => {
  // An element with properties, attributes (data-…, aria-…, role) and children.
  function make(tag, given = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(given))
      if (name in made && !name.includes("-")) made[name] = value;
      else made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const visible = (text) => text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");
  const percent = (p) => (p >= 0.0995 ? `${(100 * p).toFixed(0)}%` : p >= 0.00095 ? `${(100 * p).toFixed(1)}%` : p > 0 ? "< 0.1%" : "0%");
  const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ","); // toLocaleString takes tens of milliseconds the first time
  const signed = (x, digits = 2) => x.toFixed(digits).replace("-", "−").replace(/^−(0\.?0*)$/, "$1");

  // A group of buttons of which one can be reached with Tab; arrows move among them.
  function roving(box) {
    const all = () => [...box.querySelectorAll("button")];
    box.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity }[event.key];
      const list = all().filter((each) => !each.disabled);
      const now = list.indexOf(document.activeElement);
      if (!step || now < 0) return;
      event.preventDefault();
      list[Math.max(0, Math.min(list.length - 1, now + step))].focus();
    });
    box.addEventListener("focusin", (event) => settle(event.target.closest("button")));
    const settle = (chosen) => all().forEach((each) => { each.tabIndex = each === chosen ? 0 : -1; });
    return (index) => {
      const list = all();
      if (!box.contains(document.activeElement)) settle(list[Math.max(0, Math.min(index, list.length - 1))]);
    };
  }

  // A text as tokens that can be chosen, each with a number below it.
  class TokenRow {
    constructor(label, choose) {
      this.box = make("div", { className: "tokens", role: "toolbar", "aria-label": label });
      this.box.addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button) choose([...this.box.querySelectorAll("button")].indexOf(button));
      });
      this.settle = roving(this.box);
    }

    // items: { text, note, label, heat: 0 to 1, kind }
    show(items, chosen) {
      while (this.box.children.length > items.length) this.box.lastChild.remove();
      while (this.box.children.length < items.length)
        this.box.append(make("span", {}, make("button", { type: "button" }, make("b"), make("small")), make("br")));
      items.forEach(({ text, note = "", label, heat, kind = "" }, n) => {
        const [button, br] = this.box.children[n].children;
        button.firstChild.textContent = visible(text);
        button.lastChild.textContent = note;
        button.className = `token ${kind}`;
        button.style.setProperty("--heat", `${Math.round(100 * Math.min(1, heat ?? 0))}%`);
        button.setAttribute("aria-pressed", n === chosen);
        button.setAttribute("aria-label", label);
        br.hidden = !text.endsWith("\n") || (items[n + 1]?.text ?? "\n").startsWith("\n");
      });
      this.settle(chosen);
    }
  }

  // Probabilities as bars; what they were before a change is an outline.
  class Bars {
    constructor(label, take) {
      this.take = take;
      this.box = make("div", { className: "bars", role: take ? "toolbar" : "list", "aria-label": label });
      if (take) {
        this.settle = roving(this.box);
        this.box.addEventListener("click", (event) => {
          const id = event.target.closest("button")?.dataset.id;
          if (id) take(Number(id));
        });
      }
    }

    // rows: { id, name, p, was, kind, label }; the last one may be what the others hold together (without id)
    show(rows, most) {
      while (this.box.children.length > rows.length) this.box.lastChild.remove();
      while (this.box.children.length < rows.length) {
        const track = make("span", { className: "track" }, make("i", { className: "was" }), make("i", { className: "now" }));
        const row = make(this.take ? "button" : "div", { className: "bar" }, make("span", { className: "name" }), track, make("span", { className: "value" }));
        if (this.take) row.type = "button";
        else row.setAttribute("role", "listitem");
        this.box.append(row);
      }
      rows.forEach(({ id, name, p, was, kind = "", label, value }, n) => {
        const row = this.box.children[n];
        const [title, track, number] = row.children;
        title.textContent = name;
        track.firstChild.hidden = !was;
        track.firstChild.style.width = `${(100 * was) / most}%`;
        track.lastChild.style.width = `${(100 * p) / most}%`;
        number.textContent = value ?? percent(p);
        row.className = `bar ${kind}`;
        if (!this.take) return row.setAttribute("aria-label", label);
        row.setAttribute("aria-label", label);
        row.disabled = id === undefined;
        if (id === undefined) delete row.dataset.id;
        else row.dataset.id = id;
      });
      this.settle?.(0);
    }
  }

  Object.assign(exformer, { make, visible, percent, count, signed, roving, TokenRow, Bars });
})();
