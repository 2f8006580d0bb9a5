"use strict";
// What pages without scripts lack: stages one at a time, a card beside the pointer, one value
// followed through all views, tables that sort, and a theme other than the reader's usual one.
const all = (query, from = document) => [...from.querySelectorAll(query)];
const card = document.getElementById("card");
all(".scripted").forEach((part) => (part.style.visibility = "visible"));

// Native tooltips would show beside the card.
all("g[data-names] > title").forEach((title) => {
  title.parentNode.dataset.details = title.textContent;
  title.parentNode.setAttribute("aria-label", title.textContent);
  title.remove();
});

let pinned = [];
const names = (part) => part.dataset.names.split(" ");
const light = (chosen) =>
  all("[data-names]").forEach((part) =>
    part.classList.toggle("lit", names(part).some((name) => chosen.includes(name))));

document.addEventListener("mouseover", (event) => {
  const part = event.target.closest("[data-names]");
  light(part ? [...pinned, ...names(part)] : pinned);
  card.hidden = !part?.dataset.details;
  if (!card.hidden) card.textContent = part.dataset.details;
});
document.addEventListener("mousemove", (event) => {
  const left = Math.min(event.clientX + 16, innerWidth - card.offsetWidth - 8);
  const top = Math.min(event.clientY + 16, innerHeight - card.offsetHeight - 8);
  card.style.left = `${Math.max(left, 8)}px`;
  card.style.top = `${Math.max(top, 8)}px`;
});
document.addEventListener("click", (event) => {
  if (event.target.closest("button, th")) return;
  const part = event.target.closest("[data-names]");
  const again = part && names(part).every((name) => pinned.includes(name));
  pinned = part && !again ? names(part) : [];
  light(pinned);
});

// Stages.
const stages = all(".stage");
const tabs = all("#stages-tabs button[data-stage]");
let shown = 0;
const show = (place) => {
  shown = Math.max(0, Math.min(stages.length - 1, place));
  stages.forEach((stage, index) => (stage.hidden = index !== shown));
  tabs.forEach((tab, index) => tab.setAttribute("aria-selected", index === shown));
};
tabs.forEach((tab, index) => tab.addEventListener("click", () => show(index)));
document.getElementById("previous").addEventListener("click", () => show(shown - 1));
document.getElementById("next").addEventListener("click", () => show(shown + 1));
document.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") show(shown - 1);
  if (event.key === "ArrowRight") show(shown + 1);
  if (event.key === "Escape") { pinned = []; light(pinned); }
});
show(stages.length - 1);

// Tables.
const key = (row, place) => {
  const text = row.cells[place].textContent.trim();
  const number = parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(number) || row.cells[place].className !== "n" ? text : number;
};
all("table.sortable").forEach((table) =>
  all("th", table).forEach((head, place) => head.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [key(a, place), key(b, place)];
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    table.tBodies[0].append(...rows);
  })));

// Theme: the page's rules for dark readers, switched on or off as one.
const dark = [...document.styleSheets].flatMap((sheet) =>
  [...sheet.cssRules].filter((rule) => rule.media?.mediaText.includes("prefers-color-scheme")));
let night = matchMedia("(prefers-color-scheme: dark)").matches;
document.getElementById("theme").addEventListener("click", () => {
  night = !night;
  dark.forEach((rule) => (rule.media.mediaText = night ? "all" : "not all"));
});
