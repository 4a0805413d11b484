// The ledger, filtered: by lecture, verdict, lesson and words. The choice is kept in the address: #lecture=B&verdict=wrong.
document.addEventListener("DOMContentLoaded", () => {
  const rows = [...document.querySelectorAll("ul.ledger > li[data-lecture]")];
  const place = document.querySelector(".ledger-summary");
  if (!rows.length || !place) return;
  const sections = [...new Set(rows.map((row) => row.closest("section")))];
  const form = document.createElement("form");
  form.className = "ledger-filter";
  form.setAttribute("aria-label", "Filter the ledger");
  const choice = (name, label, options) => {
    const select = document.createElement("select");
    select.name = name;
    select.append(new Option(`every ${label}`, ""), ...options.map(([value, text]) => new Option(text, value)));
    select.setAttribute("aria-label", label);
    form.append(select);
    return select;
  };
  const values = (key) => [...new Set(rows.map((row) => row.dataset[key]))].sort();
  const words = (verdict) => document.querySelector(`ul.ledger span.verdict-${verdict}`).textContent;
  const fields = {
    lecture: choice("lecture", "lecture", values("lecture").map((each) => [each, `lecture ${each}`])),
    verdict: choice("verdict", "verdict", ["holds", "care", "wrong"].map((each) => [each, words(each)])),
    lesson: choice("lesson", "lesson", sections.map((each) => [each.id, each.querySelector("h2").firstChild.textContent])),
  };
  const search = Object.assign(document.createElement("input"), { type: "search", name: "words", placeholder: "words" });
  search.setAttribute("aria-label", "words");
  fields.words = search;
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  form.append(search, said);
  place.after(form);
  const filter = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = ["lecture", "verdict"].every((key) => !fields[key].value || row.dataset[key] === fields[key].value);
      row.hidden = !(fits && (!fields.lesson.value || row.closest("section").id === fields.lesson.value)
        && wanted.every((word) => text.includes(word)));
      count += !row.hidden;
    }
    for (const section of sections) section.hidden = !section.querySelector("li[data-lecture]:not([hidden])");
    said.textContent = count === rows.length ? `all ${count} entries` : `${count} of ${rows.length} entries`;
  };
  const set = Object.entries(fields);
  const keep = () => {
    const chosen = new URLSearchParams(set.filter(([, field]) => field.value).map(([key, field]) => [key, field.value]));
    history.replaceState(null, "", `#${chosen}`);
    filter();
  };
  const read = () => { // an address that names a row is left alone; a value that there is not, is none
    const given = new URLSearchParams(location.hash.slice(1));
    if (!set.some(([key]) => given.has(key))) return;
    for (const [key, field] of set) {
      const value = (given.get(key) || "").slice(0, 100);
      const known = field === search || [...field.options].some((option) => option.value === value);
      field.value = known ? value : "";
    }
  };
  form.addEventListener("input", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { read(); filter(); });
  read();
  filter();
});
