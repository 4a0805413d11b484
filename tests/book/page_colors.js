// Ask axe about the colors of an open page, of texts that look alike about one; resolve to complaints, and to what is
// then known of kinds of texts: their names, and by rule which are good. The next page, or theme, is given it: most of
// its texts are of a kind that another page has, and need not be judged again.
//
// Contrast follows from how a text and all that it stands in look. Texts are alike if they and the elements around
// them have the same names, classes and looks: the seven thousand texts of a lesson are of some hundred and fifty
// kinds. axe judges the first of a kind that can be seen and has a letter or a digit (it passes over all other texts),
// and every one of a kind whose first it could not judge.
async ({ names, good }) => {
  const LOOKS = [
    ...["color", "opacity", "filter", "background-color", "background-image", "background-clip"],
    ...["font-size", "font-weight", "text-shadow", "-webkit-text-stroke", "-webkit-text-fill-color", "position"],
    ...["text-decoration-line", "font-style", "border-bottom-style"], // by these, links differ from what is around them
  ];
  const UNJUDGED = "svg *, mjx-assistive-mml *"; // axe takes the first for pictures, the second for what is not seen
  const numbers = new Map(names.map((name, n) => [name, n])); // of kinds
  const known = new Map([[null, { kind: -1, frame: null }]]);
  const describe = (element) => {
    if (!known.has(element)) {
      const around = describe(element.parentElement);
      const style = getComputedStyle(element);
      const looks = LOOKS.map((look) => style.getPropertyValue(look));
      const name = [around.kind, element.tagName, element.getAttribute("class"), ...looks].join("|");
      if (!numbers.has(name)) numbers.set(name, numbers.size);
      known.set(element, { kind: numbers.get(name), frame: style.overflow === "visible" ? around.frame : element });
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

  const hasWords = (node) => node.nodeType === Node.TEXT_NODE && /[\p{L}\p{N}]/u.test(node.data);
  const alike = new Map();
  for (const element of document.querySelectorAll("body *")) {
    if (!element.matches("input, select, textarea") && ![...element.childNodes].some(hasWords)) continue;
    if (element.matches(UNJUDGED) || !element.checkVisibility({ visibilityProperty: true })) continue;
    const { kind } = describe(element);
    if (passed["color-contrast"].has(kind)) continue;
    alike.has(kind) ? alike.get(kind).push(element) : alike.set(kind, [element]);
  }
  const bad = new Set();
  const firsts = [...alike.values()].map((texts) => texts.find(canBeSeen) ?? texts[0]);
  const links = [...document.querySelectorAll("a[href], [role=link]")];
  const newLinks = links.filter((link) => !passed["link-in-text-block"].has(describe(link).kind));
  await judge(new Set([...firsts, ...newLinks]), "color-contrast", "link-in-text-block");
  const open = [...alike].filter(([kind]) => !passed["color-contrast"].has(kind) && !bad.has(kind));
  const others = open.flatMap(([, texts]) => texts).filter((element) => !firsts.includes(element));
  await judge(others, "color-contrast");
  const kinds = Object.entries(passed).map(([rule, found]) => [rule, [...found]]);
  return { complaints, known: { names: [...numbers.keys()], good: Object.fromEntries(kinds) } };
};
