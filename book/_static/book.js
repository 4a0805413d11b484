// Larger type for a wall: a button beside that of the full screen, three steps and back, kept for the session.
const TYPE_SIZES = ["100%", "125%", "150%", "180%"]; // as in book.css
const root = document.documentElement;
const typeSize = () => Number(root.dataset.typeSize || 0);
const setTypeSize = (step) => {
  if (step in TYPE_SIZES && step > 0) root.dataset.typeSize = step;
  else delete root.dataset.typeSize;
};
try { setTypeSize(Number(sessionStorage.getItem("type-size"))); } catch { /* no storage: nothing is kept */ }
document.addEventListener("DOMContentLoaded", () => {
  const button = document.createElement("button");
  const said = document.createElement("span");
  const name = () => { button.title = `Type size: ${TYPE_SIZES[typeSize()]}`; };
  button.type = "button";
  button.className = "btn btn-sm pst-navbar-icon type-size-button";
  button.innerHTML = '<i class="fa-solid fa-text-height" aria-hidden="true"></i>';
  button.addEventListener("click", () => {
    setTypeSize((typeSize() + 1) % TYPE_SIZES.length);
    try { sessionStorage.setItem("type-size", typeSize()); } catch { /* as above */ }
    name();
    said.textContent = button.title;
    window.dispatchEvent(new Event("resize")); // what fitted may have to be scrolled now
  });
  said.className = "visually-hidden";
  said.setAttribute("role", "status");
  name();
  document.querySelector(".btn-fullscreen-button")?.after(button, said);
});
// Repairs of the theme's names and landmarks (axe: label-content-name-mismatch, region).
document.addEventListener("DOMContentLoaded", () => {
  for (const b of document.querySelectorAll(".search-button-field, summary[aria-label]"))
    if (b.textContent.trim()) b.removeAttribute("aria-label");
  for (const b of document.querySelectorAll(".theme-switch-button")) {
    b.title = b.getAttribute("aria-label") || "Color mode"; // a name from title, not against the icon's glyph
    b.removeAttribute("aria-label");
  }
  for (const e of document.querySelectorAll('[role="doc-biblioentry"]')) e.setAttribute("role", "listitem");
  const side = document.querySelector(".bd-sidebar-primary");
  if (side && !side.matches("nav, aside, [role]")) { side.setAttribute("role", "navigation"); side.setAttribute("aria-label", "Book"); }
  // Code that is wider than the screen can be reached and scrolled with the keyboard, also after the phone is turned.
  const reach = () => {
    for (const e of document.querySelectorAll("pre, .math-wrapper, div.math, table"))
      e.tabIndex = e.scrollWidth > e.clientWidth ? 0 : -1;
    document.querySelectorAll(WIDE).forEach(fade);
  };
  // The edge fades where a line or a formula goes on.
  const WIDE = "pre, mjx-container[display]";
  const fade = (pre) => {
    pre.parentElement.classList.toggle("more-left", pre.scrollLeft > 1);
    pre.parentElement.classList.toggle("more-right", pre.scrollLeft + pre.clientWidth < pre.scrollWidth - 1);
  };
  document.addEventListener("scroll", ({ target }) => target.matches?.(WIDE) && fade(target), { passive: true, capture: true });
  document.addEventListener("toggle", reach, true); // a box that was folded has no width before it opens
  window.addEventListener("load", reach);
  window.addEventListener("load", () => window.MathJax?.startup?.promise?.then(reach));
  window.addEventListener("resize", reach);
});
// A link to what is folded opens it.
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest("details:not([open])");
  if (folded) { folded.open = true; target.scrollIntoView(); }
};
window.addEventListener("hashchange", unfold);
document.addEventListener("DOMContentLoaded", unfold);
