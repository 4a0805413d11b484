// The ledger, filtered: by lecture, lesson, verdict and words. The choice is in the address: #lecture=B&verdict=wrong. So is a row: #ledger-A15.
document.addEventListener("DOMContentLoaded", () => {
  const rows = [...document.querySelectorAll("ul.ledger > li[data-lecture]")];
  const place = document.querySelector(".ledger-summary");
  if (!rows.length || !place) return;
  const sections = [...new Set(rows.map((row) => row.closest("section")))];
  const form = Object.assign(document.createElement("form"), { className: "ledger-filter" });
  form.setAttribute("aria-label", "Filter the ledger");
  const field = (tag, name, more) => {
    const made = Object.assign(document.createElement(tag), { name, ...more });
    made.setAttribute("aria-label", name);
    form.append(made);
    return made;
  };
  const choice = (name, options) => {
    const select = field("select", name);
    select.append(new Option(`every ${name}`, ""), ...options.map(([value, text]) => new Option(text, value)));
    return select;
  };
  const links = (kind) => [...place.querySelectorAll(`a[href^="#${kind}="]`)].map((link) => [link.hash.split("=")[1], link]);
  const fields = {
    lecture: choice("lecture", links("lecture").map(([letter, link]) => [letter, `${letter}: ${link.title}`])),
    lesson: choice("lesson", sections.map((each) => [each.id.replace("lesson-", ""), each.querySelector("h2").firstChild.textContent])),
    verdict: choice("verdict", links("verdict").map(([verdict, link]) => [verdict, link.querySelector("span").textContent])),
    words: field("input", "words", { type: "search", placeholder: "words" }),
  };
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  form.append(said);
  place.after(form);
  const filter = () => {
    const { lecture, lesson, verdict } = Object.fromEntries(Object.entries(fields).map(([key, each]) => [key, each.value]));
    const wanted = fields.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const { dataset: of } = row;
      row.hidden = !((!lecture || of.lecture === lecture) && (!verdict || of.verdict === verdict)
        && (!lesson || of.lessons.split(" ").includes(lesson)) && wanted.every((word) => row.textContent.toLowerCase().includes(word)));
    }
    for (const section of sections) section.hidden = !section.querySelector("li[data-lecture]:not([hidden])");
    said.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  const write = () => {
    const chosen = new URLSearchParams(Object.entries(fields).map(([key, each]) => [key, each.value]).filter(([, value]) => value));
    history.replaceState(null, "", `#${chosen}`);
    filter();
  };
  const read = () => { // a browser opens the row that the address names; here it must not be filtered out
    const row = document.getElementById(location.hash.slice(1))?.closest("ul.ledger > li");
    const given = new URLSearchParams(location.hash.slice(1));
    if (row || Object.keys(fields).some((key) => given.has(key))) {
      for (const [key, each] of Object.entries(fields)) {
        each.value = (given.get(key) || "").slice(0, 100);
        if (each.selectedIndex === -1) each.value = "";
      }
    }
    filter();
    row?.scrollIntoView();
  };
  form.addEventListener("input", write);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", read);
  read();
});
