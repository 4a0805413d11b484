// Ask axe about the colors of an open page, of texts that look alike about one; resolve to complaints.
//
// Contrast follows from how a text and all that it stands in look. Texts are alike if they and the elements around
// them have the same names, classes and looks: the seven thousand texts of a lesson are of some hundred and fifty
// kinds. axe judges the first of a kind that can be seen and has a letter or a digit (it passes over all other texts),
// and every one of a kind whose first it could not judge.
async () => {
  const LOOKS = [
    ...["color", "opacity", "filter", "background-color", "background-image", "background-clip"],
    ...["font-size", "font-weight", "text-shadow", "-webkit-text-stroke", "-webkit-text-fill-color", "position"],
  ];
  const numbers = new Map(); // of kinds, by their names
  const known = new Map([[null, { kind: 0, frame: null }]]);
  const describe = (element) => {
    if (!known.has(element)) {
      const around = describe(element.parentElement);
      const style = getComputedStyle(element);
      const looks = LOOKS.map((look) => style.getPropertyValue(look));
      const name = [around.kind, element.tagName, element.getAttribute("class"), ...looks].join("|");
      if (!numbers.has(name)) numbers.set(name, numbers.size + 1);
      known.set(element, { kind: numbers.get(name), frame: style.overflow === "visible" ? around.frame : element });
    }
    return known.get(element);
  };
  const canBeSeen = (element) => {
    const frame = describe(element).frame?.getBoundingClientRect();
    const box = element.getBoundingClientRect();
    return !frame || (box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom);
  };

  const hasWords = (node) => node.nodeType === Node.TEXT_NODE && /[\p{L}\p{N}]/u.test(node.data);
  const alike = new Map();
  for (const element of document.querySelectorAll("body *")) {
    if (!element.matches("input, select, textarea") && ![...element.childNodes].some(hasWords)) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const { kind } = describe(element);
    alike.has(kind) ? alike.get(kind).push(element) : alike.set(kind, [element]);
  }

  const judge = async (include, ...rules) => {
    const report = { resultTypes: ["violations", "passes"], elementRef: true, selectors: false, preload: false };
    return include.length ? axe.run({ include }, { runOnly: { type: "rule", values: rules }, ...report }) : { violations: [], passes: [] };
  };
  const firsts = [...alike.values()].map((texts) => texts.find(canBeSeen) ?? texts[0]);
  const links = document.querySelectorAll("a[href], [role=link]");
  const first = await judge([...firsts, ...links], "color-contrast", "link-in-text-block");
  const nodes = [...first.violations, ...first.passes].flatMap((result) => result.nodes);
  const judged = new Set(nodes.map((node) => describe(node.element).kind));
  const others = [...alike].filter(([kind]) => !judged.has(kind)).flatMap(([, texts]) => texts);
  const second = await judge(others.filter((element) => !firsts.includes(element)), "color-contrast");
  return [first, second].flatMap((report) =>
    report.violations.flatMap((rule) => rule.nodes.slice(0, 3).map((node) => `axe ${rule.id}: ${node.html.slice(0, 160)}`)),
  );
};
