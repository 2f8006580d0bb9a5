// What pages without scripts lack: stages one at a time, both ways at the same place, a card beside
// the pointer, one value followed through all views, tables that sort, and a choice of the theme.
// A page may have several reports; each finds its own, and hears of nothing outside it.
const root = document.currentScript?.closest(".aclnn-report") ?? [...document.querySelectorAll(".aclnn-report:not(.js)")].pop();
const all = (query, from = root) => [...from.querySelectorAll(query)];
const alone = root.parentElement === document.body && document.body.children.length === 1;
root.classList.add("js");

// --- What the page has once, or compressed ---
const unpacked = async (script) => {
  const bytes = Uint8Array.from(atob(script.textContent.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};
all("figure[data-same]").forEach((figure) => {
  const drawn = all("figure[data-called]").find((other) => other.dataset.called === figure.dataset.same);
  figure.replaceChildren(drawn.querySelector("svg").cloneNode(true));
});

// --- Details, and one value followed through all views ---
const card = root.querySelector(".card");
const pin = root.querySelector(".pin");
const VIEWS = { "whole graph": ".explorer .scroll g", graph: ".stage .graph g", plan: ".plan g", notes: ".stage .notes li", table: ".buffers tr", schedule: ".step h3, .step tr", profile: ".profile tr" };
let pinned = [];

// Native tooltips would show beside the card.
const withoutTitles = (part) => {
  all("svg > title", part).forEach((title) => {
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  });
  all("g[data-names] > title", part).forEach((title) => {
    const owner = title.parentNode;
    owner.dataset.details = title.textContent;
    owner.setAttribute("aria-label", title.textContent);
    owner.setAttribute("tabindex", "0");
    title.remove();
  });
};
withoutTitles(root);

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
  if (!event.target.closest("button, a, th, label, summary")) toggle(event.target.closest("[data-names]"));
});

// --- Sections: a button for each; a link to each step where the report is the whole page ---
const title = (section) => section.firstChild.textContent.split(",")[0].toLowerCase();
const sections = all("h2[data-anchor]").filter((head, place, heads) => heads.findIndex((other) => title(other) === title(head)) === place);
all(".sections")[0].append(...sections.map((head) => button(title(head), () => {
  const there = all("h2[data-anchor]").find((other) => title(other) === title(head) && other.getClientRects().length);
  (there ?? head).scrollIntoView({ behavior: "smooth" });
})));
if (alone) all("[data-anchor]").forEach((part) => {
  part.id = part.dataset.anchor;
  const words = part.querySelector(".anchor");
  if (!words) return;
  const link = document.createElement("a");
  link.className = "anchor";
  link.href = `#${part.id}`;
  link.textContent = words.textContent;
  words.replaceWith(link);
});
const followLink = () => {
  const there = alone && location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!there) return;
  const way = there.closest(".way");
  if (way) all(`[name=way][value="${way.dataset.way}"]`).forEach((radio) => radio.click());
  for (let part = there; part; part = part.parentElement?.closest("details")) if (part.tagName === "DETAILS") part.open = true;
  all("details", there).forEach((part) => { part.open = true; });
  there.scrollIntoView();
};
addEventListener("hashchange", followLink);

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
const zoomed = (figure) => {
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
};
all("figure").forEach(zoomed);
// What is drawn once unfolds when somebody asks for it.
all("details.whole").forEach((whole) => whole.addEventListener("toggle", async () => {
  const script = whole.querySelector(".packed");
  if (!script || !whole.open) return;
  const figure = document.createElement("figure");
  figure.className = "plan";
  figure.innerHTML = await unpacked(script);
  script.replaceWith(figure);
  withoutTitles(figure);
  zoomed(figure);
  colour(coloured);
  light(pinned);
}));

// --- What colours the boxes ---
let coloured = "";
const colour = (by) => {
  coloured = by;
  all("figure > svg, .explorer .scroll > svg").forEach((picture) => {
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

// --- The graph, group by group ---
all(".explorer").forEach(async (host) => {
  const script = host.querySelector(".packed"), view = explorer(JSON.parse(await unpacked(script)));
  const picture = host.querySelector(".scroll > svg"), scroll = host.querySelector(".scroll"), map = host.querySelector(".map");
  const tree = host.querySelector(".contents > ul"), box = host.querySelector("input"), hits = host.querySelector(".hits");
  let scale = 0, size = null, found = [], place = -1, marked = null;
  const frame = map.querySelector("rect");
  const follows = () => {
    frame.setAttribute("x", scroll.scrollLeft / scale);
    frame.setAttribute("y", scroll.scrollTop / scale);
    frame.setAttribute("width", scroll.clientWidth / scale);
    frame.setAttribute("height", scroll.clientHeight / scale);
    map.style.display = size.width * scale > scroll.clientWidth + 1 || size.height * scale > scroll.clientHeight + 1 ? "" : "none";
  };
  const set = (wanted) => {
    const before = scale || 1;
    scale = Math.max(0.05, Math.min(3, wanted));
    picture.style.width = `${size.width * scale}px`;
    picture.style.height = `${size.height * scale}px`;
    scroll.scrollLeft = ((scroll.scrollLeft + scroll.clientWidth / 2) * scale) / before - scroll.clientWidth / 2;
    scroll.scrollTop = ((scroll.scrollTop + scroll.clientHeight / 2) * scale) / before - scroll.clientHeight / 2;
    follows();
  };
  const centre = (item) => {
    const [x, y, width, height] = size.spots.get(item);
    scroll.scrollLeft = (x + width / 2) * scale - scroll.clientWidth / 2;
    scroll.scrollTop = height * scale > scroll.clientHeight ? y * scale - 20 : (y + height / 2) * scale - scroll.clientHeight / 2;
    follows();
  };
  // Redrawn, with what was clicked where it was.
  const draw = (kept) => {
    const old = kept !== undefined && size?.spots.get(kept);
    size = view.draw();
    picture.innerHTML = size.inner;
    picture.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    map.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    all(".small", map).forEach((part) => part.remove());
    frame.insertAdjacentHTML("beforebegin", [...size.spots.entries()].filter(([item]) => !view.isGroup(item) || !view.open.has(view.groupOf(item))).map(([, [x, y, w, h]]) => `<rect class="small" x="${x}" y="${y}" width="${w}" height="${h}"/>`).join(""));
    set(scale || 1);
    const now = kept !== undefined && size.spots.get(kept);
    if (old && now) {
      scroll.scrollLeft += (now[0] + now[2] / 2 - old[0] - old[2] / 2) * scale;
      scroll.scrollTop += (now[1] - old[1]) * scale;
      follows();
    }
    colour(coloured);
    light(pinned);
  };
  const lit = (item) => {
    marked?.classList.remove("found");
    const [x, y] = size.spots.get(item);
    marked = all("g[data-names], g.toggle", picture).find((part) => {
      const outline = part.querySelector("rect") ?? part.querySelector("text");
      return outline && Math.abs(outline.getAttribute("x") - x) < 9 && Math.abs(outline.getAttribute("y") - y) < 17;
    });
    marked?.classList.add("found");
  };
  const go = (item) => {
    view.reveal(item);
    draw();
    centre(item);
    lit(item);
  };
  const toggle = (group) => { view.toggle(group); draw(view.asItem(group)); };
  // A click on a closed group opens it; on an open one its title closes it.
  picture.addEventListener("click", (event) => {
    const part = event.target.closest("[data-group]");
    if (!part) return;
    event.stopPropagation();
    toggle(Number(part.dataset.group));
  });
  picture.addEventListener("keydown", (event) => {
    const part = event.target.closest("[data-group]");
    if (!part || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    event.stopPropagation();
    toggle(Number(part.dataset.group));
    picture.querySelector(`[data-group="${part.dataset.group}"]`)?.focus();
  });
  scroll.addEventListener("scroll", follows);
  scroll.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    set(scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  }, { passive: false });
  const jump = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const area = map.getBoundingClientRect(), ratio = Math.min(area.width / size.width, area.height / size.height);
    const x = (event.clientX - area.left - (area.width - size.width * ratio) / 2) / ratio, y = (event.clientY - area.top - (area.height - size.height * ratio) / 2) / ratio;
    scroll.scrollLeft = x * scale - scroll.clientWidth / 2;
    scroll.scrollTop = y * scale - scroll.clientHeight / 2;
  };
  map.addEventListener("pointerdown", jump);
  map.addEventListener("pointermove", jump);
  // Contents: groups, one in another; a click goes there.
  const entry = (group) => {
    const item = document.createElement("li"), inner = view.children.get(group).filter(view.isGroup).map(view.groupOf);
    const link = button(view.groups[group].w, () => go(view.asItem(group)));
    if (inner.length) {
      const fold = document.createElement("details"), head = document.createElement("summary"), list = document.createElement("ul");
      head.append(link);
      fold.append(head, list);
      fold.addEventListener("toggle", () => { if (!list.children.length) list.append(...inner.map(entry)); });
      item.append(fold);
    } else item.append(link);
    return item;
  };
  const tops = view.children.get(view.ROOT);
  tree.append(...tops.map((item) => {
    if (view.isGroup(item)) return entry(view.groupOf(item));
    const made = document.createElement("li");
    made.append(button(view.boxes[item].l[0], () => go(item)));
    return made;
  }));
  const next = (by) => {
    if (!found.length) return;
    place = (place + by + found.length) % found.length;
    hits.textContent = `${place + 1} of ${found.length}`;
    go(found[place]);
  };
  box.addEventListener("input", () => {
    found = view.search(box.value);
    place = -1;
    hits.textContent = box.value.trim() ? (found.length ? `${found.length} found, Enter goes there` : "nothing found") : "";
    marked?.classList.remove("found");
  });
  box.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); } });
  const fit = () => set(Math.min(1, scroll.clientWidth / size.width));
  const actions = {
    some: () => { view.openSome(); draw(); fit(); },
    all: () => { view.groups.forEach((_, group) => view.open.add(group)); draw(); },
    none: () => { view.open.clear(); draw(); fit(); },
    in: () => set(scale * 1.25), out: () => set(scale / 1.25), fit, one: () => set(1),
  };
  all("[data-do]", host).forEach((control) => control.addEventListener("click", () => actions[control.dataset.do]()));
  draw();
  new ResizeObserver(() => { if (host.dataset.ready) follows(); else if (scroll.clientWidth) { host.dataset.ready = "yes"; set(Math.max(READABLE, Math.min(1, scroll.clientWidth / size.width))); scroll.scrollLeft = (size.width * scale - scroll.clientWidth) / 2; } }).observe(scroll);
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
followLink();
