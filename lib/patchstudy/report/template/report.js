// Sorts, filters and copies tables, opens what a link leads to, marks where the reader is.
// The page is complete without it.
"use strict";
(() => {
  const PREFIX = { n: 1e-9, u: 1e-6, "µ": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  const UNIT = /^([nuµmkMGT])?(bit\/s|bytes?|packets?\/s|s|s\/byte|s\/packet)\b/;

  const text = (cell) => cell.textContent.trim();
  const number = (words) => {
    const found = /^[<>~x ]*([-+−]?\d[\d.]*(?:e[-+]?\d+)?)\s*(\S*)/.exec(words);
    if (!found) return NaN;
    const unit = UNIT.exec(found[2]);
    return parseFloat(found[1].replace("−", "-")) * ((unit && PREFIX[unit[1]]) || 1);
  };
  const button = (words, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    made.addEventListener("click", act);
    return made;
  };

  const sort = (table, at, head) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [row, text(row.cells[at])]);
    const numbers = rows.map(([, words]) => number(words));
    const numeric = numbers.every((one, n) => !isNaN(one) || /^[-–]?$/.test(rows[n][1]));
    const up = head.getAttribute("aria-sort") !== "ascending";
    const order = rows.map(([row, words], n) => [row, numeric ? numbers[n] : words]);
    order.sort(([, a], [, b]) => {
      if (!numeric) return (up ? 1 : -1) * a.localeCompare(b, "en", { numeric: true });
      if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b);
      return up ? a - b : b - a;
    });
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...order.map(([row]) => row));
  };

  const asText = (table) => {
    const rows = [...table.rows].filter((row) => !row.hidden);
    const cells = rows.map((row) => [...row.cells].map(text));
    const widths = cells[0].map((_, at) => Math.max(...cells.map((row) => row[at].length)));
    const right = [...table.rows[table.rows.length - 1].cells].map((one) =>
      one.classList.contains("right"));
    const line = (row) => row.map((cell, at) =>
      right[at] ? cell.padStart(widths[at]) : cell.padEnd(widths[at])).join("  ").trimEnd();
    return [text(table.caption), "", ...cells.map(line)].join("\n") + "\n";
  };

  const copy = async (table, pressed) => {
    const words = asText(table);
    try {
      await navigator.clipboard.writeText(words);
    } catch {
      const area = document.createElement("textarea");
      area.value = words;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    pressed.textContent = "Copied";
    setTimeout(() => { pressed.textContent = "Copy as text"; }, 1500);
  };

  const filter = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const chosen = heads.map((head, at) => [head, at]).filter(([head]) =>
      head.classList.contains("choice"));
    if (!chosen.length || table.tBodies[0].rows.length < 2) return;
    const bar = document.createElement("div");
    bar.className = "choices";
    const picks = chosen.map(([head, at]) => {
      const label = document.createElement("label");
      const pick = document.createElement("select");
      const values = new Set([...table.tBodies[0].rows].flatMap((row) =>
        text(row.cells[at]).split(", ")));
      pick.append(new Option("all", ""), ...[...values].sort().map((one) => new Option(one)));
      label.append(text(head) + " ", pick);
      bar.append(label);
      return [pick, at];
    });
    bar.addEventListener("change", () => {
      for (const row of table.tBodies[0].rows) {
        row.hidden = picks.some(([pick, at]) =>
          pick.value && !text(row.cells[at]).split(", ").includes(pick.value));
      }
    });
    table.closest(".table").before(bar);
  };

  for (const table of document.querySelectorAll(".table > table")) {
    if (!table.tHead || !table.tBodies.length) continue;
    filter(table);
    const copier = button("Copy as text", () => copy(table, copier));
    copier.className = "copy";
    table.closest(".table").after(copier);
    if (table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      if (!text(head)) return;
      head.replaceChildren(button(text(head), () => sort(table, at, head)));
    });
  }

  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = target && target.closest("details");
    if (fold && !fold.open) {
      fold.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  reveal();

  const entries = new Map([...document.querySelectorAll("nav a")].map((one) =>
    [decodeURIComponent(one.hash.slice(1)), one]));
  const heads = [...document.querySelectorAll("main h2[id]")].filter((one) => entries.has(one.id));
  const follow = () => {
    const passed = heads.filter((one) => one.getBoundingClientRect().top < innerHeight / 3);
    const here = passed.length ? passed[passed.length - 1].id : "";
    for (const [name, entry] of entries) {
      if (name !== here) entry.removeAttribute("aria-current");
      else if (!entry.hasAttribute("aria-current")) {
        entry.setAttribute("aria-current", "true");
        const list = entry.closest("ol");
        list.scrollLeft = entry.offsetLeft - list.offsetLeft - 16;
      }
    }
  };
  if (heads.length) {
    addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
    follow();
  }
})();
