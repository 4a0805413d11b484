// Loads a live figure's scripts when the reader comes near it; plain enough for old browsers, to tell them.
(function () {
  "use strict";
  var loaded = {}; // promises of scripts, by address
  var NEAR = "400px";

  function understands() {
    var newest = [[].with, [].at, "".replaceAll, Object.hasOwn, Element.prototype.replaceChildren, window.customElements];
    if (!newest.every(Boolean)) return false;
    try {
      return Boolean(new Function("class A { static b = 1; c = this?.d ?? {}; }"));
    } catch (error) {
      return error instanceof EvalError; // the page forbids evaluation: that says nothing about the language
    }
  }

  function tell(element, words) {
    var line = element.querySelector(".live-trouble") || element.appendChild(document.createElement("p"));
    line.className = "live-trouble";
    line.textContent = words;
  }

  function script(address) {
    loaded[address] = loaded[address] || new Promise(function (resolve, reject) {
      var each = document.createElement("script");
      each.src = address;
      each.async = false; // all are fetched at once, and run one after the other
      each.onload = resolve;
      each.onerror = function () {
        delete loaded[address]; // who asks again tries again
        reject(new Error("A script of this figure could not be loaded: is the page whole?"));
      };
      document.head.appendChild(each);
    });
    return loaded[address];
  }

  function begin(element) {
    if (element.begun) return;
    element.begun = true;
    if (!understands()) return tell(element, "This browser is too old to run the figure; the picture shows how it begins.");
    var root = window.exformer = window.exformer || {};
    var files = JSON.parse(element.dataset.files);
    var whole = function (address) { return new URL(address, document.baseURI).href; };
    var scripts = element.dataset.scripts.split(" ").map(function (address) { return script(whole(address)); });
    root.script = script; // what a figure loads later
    root.files = root.files || {};
    root.coming = root.coming || {}; // models are fetched with the scripts; who needs them waits
    Object.keys(files).forEach(function (name) {
      root.files[name] = whole(files[name]);
      root.coming[name] = script(root.files[name]);
      root.coming[name].catch(function () { delete root.coming[name]; });
    });
    Promise.all(scripts).catch(function (error) {
      element.begun = false;
      tell(element, error.message);
    });
  }

  function linked(element) {
    return location.hash.indexOf("#" + element.localName.slice("exformer-".length) + "=") === 0;
  }

  function prepare(element) {
    window.addEventListener("hashchange", function () {
      if (linked(element)) {
        element.scrollIntoView();
        begin(element);
      }
    });
    if (linked(element)) {
      element.scrollIntoView();
      return begin(element);
    }
    if (element.hasAttribute("wait")) {
      var button = element.querySelector(".live-begin") || element.appendChild(document.createElement("button"));
      button.type = "button";
      button.className = "live-begin";
      button.textContent = "Run the model here (" + element.dataset.size + ")";
      element.addEventListener("pointerdown", function () { begin(element); }, { once: true });
      button.addEventListener("click", function () { begin(element); });
      return;
    }
    if (!window.IntersectionObserver) return begin(element);
    var watch = new IntersectionObserver(function (entries) {
      if (!entries.some(function (entry) { return entry.isIntersecting; })) return;
      watch.disconnect();
      begin(element);
    }, { rootMargin: NEAR });
    watch.observe(element);
  }

  Array.prototype.forEach.call(document.querySelectorAll("[data-scripts]"), prepare);
})();
