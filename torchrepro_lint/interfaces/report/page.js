
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const form = byId("filter");
  const articles = [...document.querySelectorAll("article.f")];
  const texts = articles.map((article) => article.textContent.toLowerCase());

  // What a link leads to is shown: whatever is folded around it opens.
  const reveal = (target) => {
    for (let at = target; at; at = at.parentElement) if (at.localName === "details") at.open = true;
    const own = target.querySelector("details");
    if (own && target.matches("section.entry, article.f")) own.open = true;
  };

  const filter = () => {
    const words = byId("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [rule, severity, file, entry] = ["rule", "severity", "file", "entry"].map((name) => byId(name).value);
    let count = 0;
    articles.forEach((article, index) => {
      const { rule: itsRule, severity: itsSeverity, file: itsFile, entries } = article.dataset;
      const fits = (!rule || rule === itsRule) && (!severity || severity === itsSeverity) && (!file || file === itsFile)
        && (!entry || entries.split(" ").includes(entry)) && words.every((word) => texts[index].includes(word));
      article.hidden = !fits;
      count += fits ? 1 : 0;
    });
    byId("count").textContent = `${count} of ${articles.length} finding${articles.length === 1 ? "" : "s"}`;
    byId("none").hidden = count > 0;
  };

  const follow = () => {
    const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (form && target.hidden) {
      form.reset();
      filter();
    }
    reveal(target);
    target.scrollIntoView();
    if (target.tabIndex === -1) target.focus({ preventScroll: true });
  };

  if (form) {
    form.addEventListener("input", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    filter();
    for (const link of document.querySelectorAll("a.filter")) {
      link.addEventListener("click", () => {
        form.reset();
        byId("entry").value = link.dataset.entry;
        filter();
      });
    }
  }
  // A mark of a picture leads to its line in the list, which is open to all who do not point at things.
  document.addEventListener("click", (event) => {
    const mark = event.target.closest("[data-m]");
    const section = mark && mark.closest("section.entry");
    const line = section && byId(`${section.id}-m${mark.dataset.m}`);
    if (!line) return;
    reveal(line);
    line.scrollIntoView({ block: "center" });
    line.focus({ preventScroll: true });
  });
  addEventListener("hashchange", follow);
  // Paper cannot be unfolded; browsers that know ::details-content do this by the style sheet.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });
  follow();
})();
