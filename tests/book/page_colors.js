// Ask axe about the colors of an open page, of texts that look alike about one; resolve to complaints, and to what is
// then known of kinds of texts: their names, and by rule which are good. The next page, or theme, is given it: most of
// its texts are of a kind that another page has, and need not be judged again.
//
// Contrast follows from how a text and all that it stands in look. Texts are alike if the elements around them look
// the same, those that paint nothing and change nothing left out; one that is positioned, and may lie on what it does
// not stand in, is alike only to those of its class. The seven thousand texts of a lesson are of some fifty kinds. axe
// judges the first of a kind that can be seen and has a letter or a digit (it passes over all other texts), and every
// one of a kind whose first it could not judge.
async ({ names, good }) => {
  const INHERITED = ["color", "font-size", "font-weight", "font-style", "text-shadow", "-webkit-text-stroke", "-webkit-text-fill-color"];
  const OWN = {
    ...{ opacity: "1", filter: "none", "background-color": "rgba(0, 0, 0, 0)", "background-image": "none" },
    ...{ "background-clip": "border-box", position: "static" },
    ...{ "text-decoration-line": "none", "border-bottom-style": "none" }, // by these, links differ from what is around them
  };
  const LINKS = "a[href], [role=link]";
  const UNJUDGED = "svg *, mjx-assistive-mml *, .skip-link *"; // to axe a picture, and what is not seen
  const READ_ALOUD = "inset(50%)"; // the clip-path of what only a screen reader tells
  const numbers = new Map(names.map((name, n) => [name, n])); // of kinds
  const known = new Map([[null, { kind: -1, inherited: "", frame: null, aloud: false }]]);
  const describe = (element) => {
    if (!known.has(element)) {
      const around = describe(element.parentElement);
      const style = getComputedStyle(element);
      const looks = (names) => names.map((name) => style.getPropertyValue(name)).join("|");
      const [inherited, own] = [looks(INHERITED), looks(Object.keys(OWN))];
      const link = element.matches(LINKS);
      const place = style.position === "static" ? "" : element.getAttribute("class");
      const name = [around.kind, link, place, own, inherited].join("|");
      const adds = link || own !== Object.values(OWN).join("|") || inherited !== around.inherited;
      if (adds && !numbers.has(name)) numbers.set(name, numbers.size);
      const kind = adds ? numbers.get(name) : around.kind;
      const frame = style.overflow === "visible" ? around.frame : element;
      known.set(element, { kind, inherited, frame, aloud: around.aloud || style.clipPath === READ_ALOUD });
    }
    return known.get(element);
  };
  const canBeSeen = (element) => {
    const frame = describe(element).frame?.getBoundingClientRect();
    const box = element.getBoundingClientRect();
    return !frame || (box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom);
  };

  const passed = Object.fromEntries(Object.entries(good).map(([rule, kinds]) => [rule, new Set(kinds)]));
  const vain = (document.judgedInVain ??= new Set()); // in the other theme: whether axe can judge depends on layout alone
  const complaints = [];
  const judge = async (elements, ...rules) => {
    const runOnly = { type: "rule", values: rules };
    const resultTypes = ["violations", "passes"];
    const include = [...elements].filter((element) => !vain.has(element));
    if (!include.length) return;
    const found = await axe.run({ include }, { runOnly, resultTypes, elementRef: true, selectors: false, preload: false });
    include.forEach((element) => vain.add(element));
    for (const { nodes } of [...found.passes, ...found.violations]) nodes.forEach(({ element }) => vain.delete(element));
    const kindOf = (node) => describe(node.element).kind;
    for (const { id, nodes } of found.passes) nodes.forEach((node) => passed[id].add(kindOf(node)));
    for (const { id, nodes } of found.violations) {
      nodes.forEach((node) => bad.add(kindOf(node)));
      complaints.push(...nodes.slice(0, 3).map((node) => `axe ${id}: ${node.html.slice(0, 160)}`));
    }
  };

  const standsInText = (link) => { // of more words than its links have; elsewhere, links need not differ from them
    let block = link.parentElement;
    const inline = (element) => getComputedStyle(element).display.startsWith("inline");
    while (inline(block)) block = block.parentElement;
    const size = (element) => element.textContent.replace(/\s+/g, " ").length;
    const links = [...block.querySelectorAll(LINKS)].reduce((sum, each) => sum + size(each), 0);
    return inline(link) && (size(block) > 2 * links || block.querySelector("br"));
  };
  const hasWords = (node) => node.nodeType === Node.TEXT_NODE && /[\p{L}\p{N}]/u.test(node.data);
  const isSeen = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !describe(element).aloud;
  const alike = new Map(); // by rule and kind, what is not known to be good
  const add = (rule, element) => {
    const { kind } = describe(element);
    const name = `${rule} ${kind}`;
    if (passed[rule].has(kind)) return;
    alike.has(name) ? alike.get(name).push(element) : alike.set(name, [element]);
  };
  for (const element of document.querySelectorAll("body *")) {
    const says = element.matches("input, select, textarea") || [...element.childNodes].some(hasWords);
    if (says && !element.matches(UNJUDGED) && isSeen(element)) add("color-contrast", element);
    if (element.matches(LINKS) && isSeen(element) && standsInText(element)) add("link-in-text-block", element);
  }
  const bad = new Set();
  const firsts = new Set([...alike.values()].map((texts) => texts.find(canBeSeen) ?? texts[0]));
  await judge(firsts, ...Object.keys(passed));
  const isOpen = ([rule, kind]) => !passed[rule].has(Number(kind)) && !bad.has(Number(kind));
  const open = [...alike].filter(([name]) => isOpen(name.split(" ")));
  await judge(new Set(open.flatMap(([, texts]) => texts)).difference(firsts), ...Object.keys(passed));
  const kinds = Object.entries(passed).map(([rule, found]) => [rule, [...found]]);
  return { complaints, known: { names: [...numbers.keys()], good: Object.fromEntries(kinds) } };
};
