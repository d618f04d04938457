
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const form = byId("filter");
  const table = byId("table");
  const dialog = byId("dialog");
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells].slice(1);
  const releases = heads.map((head) => head.dataset.release);
  const articles = rows.map((row) => byId(row.cells[0].firstElementChild.hash.slice(1)));

  const onDevice = (part, device) =>
    !device || ["any", device].some((name) => part.dataset.d.split(" ").includes(name));

  // Whether a cell is of the release, and which of its statuses are of the device.
  const covers = (cell, at) => at < 0 || (Number(cell.dataset.since) <= at && at <= Number(cell.dataset.until));
  const parts = (cell, device) => [...cell.querySelectorAll("[data-d]")].filter((part) => onDevice(part, device));

  const filter = () => {
    const words = byId("text").value.toLowerCase().split(/\s+/).filter(Boolean)
      .map((word) => word.replace(/^f\./, "functional.").replace(/\(\)$/, ""));
    const at = releases.indexOf(byId("release").value);
    const status = byId("status").value;
    const device = byId("device").value;
    let count = 0;
    table.dataset.device = device;
    heads.forEach((head, index) => head.classList.toggle("here", index === at));
    rows.forEach((row, index) => {
      const cells = [...row.cells].slice(1);
      const found = cells.flatMap((cell) => (covers(cell, at) ? parts(cell, device) : []));
      const fits = words.every((word) => row.dataset.text.includes(word))
        && ((!status && !device) || found.some((part) => !status || part.classList.contains(status)));
      cells.forEach((cell) => cell.classList.toggle("here", at >= 0 && covers(cell, at)));
      row.hidden = articles[index].hidden = !fits;
      count += fits ? 1 : 0;
    });
    byId("count").textContent = `${count} of ${rows.length} operations`;
    byId("none").hidden = count > 0;
    rove();
  };

  const open = (target) => {
    const copy = target.cloneNode(true);
    for (const part of [copy, ...copy.querySelectorAll("[id]")]) part.removeAttribute("id");
    const old = copy.querySelector("h3, h4");
    const title = document.createElement("h2");
    title.id = "dialog-title";
    title.append(...old.childNodes);
    old.replaceWith(title);
    byId("dialog-body").replaceChildren(copy);
    dialog.showModal();
    dialog.scrollTop = 0;
  };

  // One stop of the Tab key for the whole table; the arrow keys do the rest.
  const links = () => [...table.querySelectorAll("tbody tr:not([hidden]) a")];
  const rove = (to) => {
    const all = links();
    const current = to || all.find((link) => link.tabIndex === 0 && link.dataset.at) || all[0];
    for (const link of table.querySelectorAll("tbody a")) {
      link.tabIndex = link === current ? 0 : -1;
      if (link === current) link.dataset.at = "1";
      else delete link.dataset.at;
    }
  };
  const middle = (link) => {
    const box = link.getBoundingClientRect();
    return (box.left + box.right) / 2;
  };
  const beside = (link, step) => {
    const row = link.closest("tr");
    const shown = rows.filter((each) => !each.hidden);
    const next = shown[shown.indexOf(row) + step];
    if (!next) return null;
    if (link.closest("th")) return next.querySelector("th a");
    const cells = [...next.querySelectorAll("td a")];
    const from = middle(link);
    return cells.sort((one, other) => Math.abs(middle(one) - from) - Math.abs(middle(other) - from))[0]
      || next.querySelector("th a");
  };
  const moves = {
    ArrowLeft: (link, all) => all[all.indexOf(link) - 1],
    ArrowRight: (link, all) => all[all.indexOf(link) + 1],
    ArrowUp: (link) => beside(link, -1),
    ArrowDown: (link) => beside(link, 1),
    Home: (link) => link.closest("tr").querySelector("a"),
    End: (link) => [...link.closest("tr").querySelectorAll("a")].pop(),
  };

  table.addEventListener("keydown", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves)) return;
    event.preventDefault();
    moves[event.key](link, links())?.focus();
  });
  table.addEventListener("focusin", (event) => event.target.closest("a") && rove(event.target.closest("a")));
  table.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(byId(link.hash.slice(1)));
  });
  dialog.addEventListener("click", (event) => {
    const box = dialog.getBoundingClientRect();
    const inside = box.left <= event.clientX && event.clientX <= box.right
      && box.top <= event.clientY && event.clientY <= box.bottom;
    // The Enter key clicks the button at 0, 0.
    if (event.target === dialog && !inside) dialog.close();
  });
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  if (window.matchMedia("(max-width: 64rem)").matches) document.querySelector(".legend").open = false;
  form.hidden = false;
  filter();
})();
