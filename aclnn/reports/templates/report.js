(() => {
"use strict";
// What pages without scripts lack: stages one at a time, both ways at the same place, a card beside
// the pointer, one value followed through all views, tables that sort, and a choice of the theme.
// A page may have several reports; each finds its own, and hears of nothing outside it.
const root = document.currentScript?.closest(".aclnn-report") ?? [...document.querySelectorAll(".aclnn-report:not(.js)")].pop();
const all = (query, from = root) => [...from.querySelectorAll(query)];
const alone = root.parentElement === document.body && document.body.children.length === 1;
root.classList.add("js");

// --- Details, and one value followed through all views ---
const card = root.querySelector(".card");
const pin = root.querySelector(".pin");
const VIEWS = { graph: ".stage .graph g", plan: ".plan g", notes: ".stage .notes li", table: ".buffers tr", schedule: ".step h3, .step tr", profile: ".profile tr" };
let pinned = [];

// Native tooltips would show beside the card.
all("svg > title").forEach((title) => {
  title.parentNode.setAttribute("aria-label", title.textContent);
  title.remove();
});
all("g[data-names] > title").forEach((title) => {
  const part = title.parentNode;
  part.dataset.details = title.textContent;
  part.setAttribute("aria-label", title.textContent);
  part.setAttribute("tabindex", "0");
  title.remove();
});

const names = (part) => part.dataset.names.split(" ");
const light = (chosen) =>
  all("[data-names]").forEach((part) =>
    part.classList.toggle("lit", names(part).some((name) => chosen.includes(name))));

const describe = (part) => {
  light(part ? [...pinned, ...names(part)] : pinned);
  card.hidden = !part?.dataset.details;
  if (!card.hidden) card.textContent = part.dataset.details;
};
const place = (x, y) => {
  card.style.left = `${Math.max(8, Math.min(x + 16, innerWidth - card.offsetWidth - 8))}px`;
  card.style.top = `${Math.max(8, Math.min(y + 16, innerHeight - card.offsetHeight - 8))}px`;
};
const follow = (chosen) => {
  pinned = chosen;
  light(pinned);
  all(".tabs [data-stage]").forEach((tab) => {
    const stage = all(".stage", tab.closest(".way"))[tab.dataset.stage];
    tab.classList.toggle("holds", all(".graph g.lit[data-details]", stage).length > 0);
  });
  pin.hidden = !pinned.length;
  pin.replaceChildren();
  if (pin.hidden) return;
  const title = document.createElement("b");
  title.textContent = pinned[0];
  pin.append(title, ...Object.entries(VIEWS).map(jump).filter(Boolean), button("×", () => follow([])));
};
const button = (words, action) => {
  const made = document.createElement("button");
  made.textContent = words;
  made.addEventListener("click", action);
  return made;
};
// A button that goes to the value in one view, if it is shown there.
const jump = ([view, query]) => {
  const found = all(query).filter((part) => part.matches(".lit") && part.getClientRects().length);
  const there = found.find((part) => part.dataset.details) ?? found[0];
  return there && button(view, () => there.scrollIntoView({ behavior: "smooth", block: "center" }));
};
const toggle = (part) => {
  const again = part && names(part).every((name) => pinned.includes(name));
  follow(part && !again ? names(part) : []);
};

root.addEventListener("mouseover", (event) => describe(event.target.closest("[data-names]")));
root.addEventListener("mouseleave", () => describe(null));
root.addEventListener("mousemove", (event) => place(event.clientX, event.clientY));
root.addEventListener("focusin", (event) => {
  if (!event.target.matches?.("g[data-names]:focus-visible")) return;
  describe(event.target);
  const box = event.target.getBoundingClientRect();
  place(box.right, box.top);
});
root.addEventListener("focusout", () => describe(null));
root.addEventListener("click", (event) => {
  if (!event.target.closest("button, th, label, summary")) toggle(event.target.closest("[data-names]"));
});

// --- The two ways, and the stages of each ---
const ways = all(".way");
const current = () => ways.find((way) => !way.hidden);
const show = (way, wanted) => {
  const stages = all(".stage", way);
  const shown = Math.max(0, Math.min(stages.length - 1, wanted));
  way.dataset.shown = shown;
  stages.forEach((stage, index) => { stage.hidden = index !== shown; stage.open = true; });
  all("[data-stage]", way).forEach((tab, index) => tab.setAttribute("aria-selected", index === shown));
  all("[data-go]", way).forEach((step) =>
    (step.disabled = shown === (step.dataset.go < 0 ? 0 : stages.length - 1)));
  if (pinned.length) follow(pinned);
};
const step = (way, by) => show(way, Number(way.dataset.shown) + by);
const choose = (name) => {
  ways.forEach((way) => { way.hidden = way.dataset.way !== name; way.open = true; });
  if (pinned.length) follow(pinned);
};
ways.forEach((way) => {
  all("[data-stage]", way).forEach((tab) => tab.addEventListener("click", () => show(way, Number(tab.dataset.stage))));
  all("[data-go]", way).forEach((arrow) => arrow.addEventListener("click", () => step(way, Number(arrow.dataset.go))));
  show(way, Infinity);
});
root.querySelector(".ways").addEventListener("submit", (event) => event.preventDefault());
all("[name=way]").forEach((radio) => {
  radio.addEventListener("change", () => choose(radio.value));
  if (radio.checked) choose(radio.value);
});
(alone ? document : root).addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input")) return;
  if (event.key === "ArrowLeft") step(current(), -1);
  if (event.key === "ArrowRight") step(current(), 1);
  if (event.key === "Escape") follow([]);
  if (event.key === "Enter" && event.target.matches("g[data-names]")) toggle(event.target);
});

// --- Zoom: each picture fits if it stays readable; Ctrl and the wheel, or buttons, do the rest ---
const READABLE = 0.7;
all("figure").forEach((figure) => {
  const picture = figure.querySelector("svg");
  const natural = picture.viewBox.baseVal.width;
  let scale = 0;
  const set = (wanted, x = 0, y = 0) => {
    const before = scale || 1;
    scale = Math.max(0.1, Math.min(4, wanted));
    picture.style.width = `${natural * scale}px`;
    picture.style.height = "auto";
    figure.scrollLeft = ((figure.scrollLeft + x) * scale) / before - x;
    figure.scrollTop = ((figure.scrollTop + y) * scale) / before - y;
  };
  const fit = () => Math.min(1, figure.clientWidth / natural);
  const middle = () => [figure.clientWidth / 2, figure.clientHeight / 2];
  const frame = document.createElement("div");
  const tools = document.createElement("div");
  frame.className = "drawn";
  tools.className = "zoom";
  tools.append(
    button("−", () => set(scale / 1.25, ...middle())),
    button("+", () => set(scale * 1.25, ...middle())),
    button("fit", () => set(fit())),
    button("1:1", () => set(1)));
  figure.replaceWith(frame);
  frame.append(tools, figure);
  figure.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const place = figure.getBoundingClientRect();
    set(scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1), event.clientX - place.left, event.clientY - place.top);
  }, { passive: false });
  // Hidden figures have no width to fit into.
  new ResizeObserver(() => { if (!scale && figure.clientWidth) set(Math.max(READABLE, fit())); }).observe(figure);
});

// --- What colours the boxes ---
const colour = (by) => {
  all("figure > svg").forEach((picture) => {
    if (by && !picture.querySelector(`.only-${by}`)) return;
    picture.classList.remove(...[...picture.classList].filter((name) => name.startsWith("by-")));
    if (by) picture.classList.add(`by-${by}`);
  });
  all("[data-heat]").forEach((choice) => choice.setAttribute("aria-selected", choice.dataset.heat === by));
};
all("[data-heat]").forEach((choice, index) => {
  choice.addEventListener("click", () => colour(choice.dataset.heat));
  if (!index) colour(choice.dataset.heat);
});

// --- Tables ---
const key = (row, column) => {
  const text = row.cells[column].textContent.trim();
  return row.cells[column].className === "n" ? parseFloat(text.replaceAll(",", "")) : text;
};
const sort = (table, head, column) => {
  const down = head.getAttribute("aria-sort") === "ascending";
  all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const [x, y] = [key(a, column), key(b, column)];
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
  });
  table.tBodies[0].append(...rows);
};
all("table.sortable").forEach((table) =>
  all("th", table).filter((head) => head.textContent).forEach((head) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(table, head, head.cellIndex));
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") head.click(); });
  }));

// --- Theme: the colour scheme of the report, and of the page where it is all there is ---
root.querySelector(".theme").addEventListener("click", () => {
  const schemes = getComputedStyle(root).colorScheme;
  const dark = schemes.includes("light dark") ? matchMedia("(prefers-color-scheme: dark)").matches : schemes === "dark";
  [root, ...(alone ? [document.documentElement] : [])].forEach((part) => (part.style.colorScheme = dark ? "light" : "dark"));
});
})();
