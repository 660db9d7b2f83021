"use strict";
// Sorting and filtering of tables that can be read without either.
(() => {
  const value = (row, column) => row.rows[0].cells[column].dataset.sort;

  function sort(button) {
    const heading = button.closest("th");
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentNode.cells) {
      other.removeAttribute("aria-sort");
    }
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const numeric = heading.dataset.kind === "number";
    const compare = (a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      if (!x || !y) return (x ? 0 : 1) - (y ? 0 : 1); // nothing there: always last
      const found = numeric
        ? Number(x) - Number(y)
        : x.localeCompare(y, "en", { numeric: true });
      return up ? found : -found;
    };
    table.append(...[...table.tBodies].sort(compare));
  }

  const form = document.getElementById("filters");
  const selects = [...form.querySelectorAll("select")];
  const rows = [...document.querySelectorAll("tbody[data-variant]")];
  const wanted = (row, key, word) =>
    !word || row.dataset[key].split("\n").includes(word);

  function filter() {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !selects.every((s) => wanted(row, s.name, s.value));
      shown += !row.hidden;
    }
    document.getElementById("count").textContent =
      `${shown} of ${rows.length} rows`;
  }

  function showAll() {
    form.reset();
    filter();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("th button");
    if (button) sort(button);
  });
  form.addEventListener("change", filter);
  form.querySelector("button").addEventListener("click", showAll);
  form.addEventListener("submit", (event) => event.preventDefault());

  // A link to a row that is filtered away, or whose numbers are folded up.
  function follow() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target || !target.matches("tbody")) return;
    if (target.hidden) showAll();
    for (const part of target.querySelectorAll("details")) part.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", follow);

  for (const heading of document.querySelectorAll("th[data-kind]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
  }
  form.hidden = false;
  filter();
  follow();
})();
