// A graph whose groups open and close in place. Each open group is laid out by itself (dagre orders its
// rows) and is one item of the group around it, so that a frame holds what belongs to it and nothing
// else. Edges pass a row in channels of their own, and bend only between rows.
const explorer = (data) => {
  const GAP_X = 18, GAP_Y = 28, PAD = 12, HEAD = 22, LEVELS = [0.03, 0.1, 0.25, 0.5, 1], FIRST = 30;
  const FRAMES = { repeat: ["again", "t b againt"], function: ["func", "s"], call: ["func", "t b"], loop: ["loop", "s lt"] };
  const { boxes, groups, edges } = data;
  const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const ROOT = -1;
  const open = new Set();

  // An item is a box (its place), or a group (-2 - its place); ports and bends are objects.
  const asItem = (group) => -2 - group;
  const isGroup = (item) => typeof item === "number" && item < ROOT;
  const groupOf = (item) => -2 - item;
  const parentOf = (item) => (isGroup(item) ? groups[groupOf(item)].p : boxes[item].g);
  const children = new Map([[ROOT, []], ...groups.map((_, g) => [g, []])]);
  const first = new Map();
  boxes.forEach((box, place) => {
    let item = place, around = box.g;
    while (true) {
      if (!first.has(item)) { first.set(item, place); children.get(around).push(item); }
      if (around === ROOT) break;
      item = asItem(around);
      around = groups[around].p;
    }
  });
  const counts = groups.map((_, g) => {
    const count = (item) => (isGroup(item) ? children.get(groupOf(item)).map(count).reduce((a, b) => a + b, 0) : Number(boxes[item].k >= 0));
    return count(asItem(g));
  });
  const pathOf = (place) => {
    const path = [];
    for (let group = boxes[place].g; group !== ROOT; group = groups[group].p) path.unshift(group);
    return path;
  };
  // What is seen of a box: itself, or the outermost closed group around it.
  const seen = (place) => {
    const closed = pathOf(place).find((group) => !open.has(group));
    return closed === undefined ? place : asItem(closed);
  };
  const isOpen = (item) => isGroup(item) && open.has(groupOf(item));
  const around = (item) => {
    const path = [];
    for (let group = parentOf(item); group !== ROOT; group = groups[group].p) path.unshift(group);
    return path;
  };

  // The first groups that open: the outermost ones, as long as the picture is small.
  const visible = () => new Set(boxes.map((_, place) => seen(place))).size;
  const openSome = () => {
    open.clear();
    let candidates = children.get(ROOT).filter(isGroup).map(groupOf);
    while (candidates.length) {
      const next = candidates.shift();
      open.add(next);
      if (visible() > FIRST) { open.delete(next); continue; }
      candidates.push(...children.get(next).filter(isGroup).map(groupOf));
    }
  };

  // What a group does, the most frequent first: "matmul x3, softmax".
  const kinds = (group) => {
    const found = new Map();
    const add = (item) => {
      if (isGroup(item)) { children.get(groupOf(item)).forEach(add); return; }
      if (boxes[item].k >= 0) found.set(boxes[item].o, (found.get(boxes[item].o) ?? 0) + 1);
    };
    add(asItem(group));
    const sorted = [...found].sort(([, a], [, b]) => b - a).map(([name, count]) => (count > 1 ? `${name} x${count}` : name));
    return `${sorted.slice(0, 4).join(", ")}${sorted.length > 4 ? ", …" : ""}`;
  };
  const linesOf = (item) => {
    if (!isGroup(item)) return boxes[item].l;
    const group = groups[groupOf(item)];
    return [group.w, `${counts[groupOf(item)]} nodes: ${kinds(groupOf(item))}`].map((line) => (line.length > 60 ? `${line.slice(0, 59)}…` : line));
  };
  const heatsOf = (item) => (isGroup(item) ? groups[groupOf(item)].h : boxes[item].h);
  const sizeOf = (item) => {
    const lines = linesOf(item), told = heatsOf(item).map(([, words]) => words);
    const longest = Math.max(...lines.map((line) => line.length), ...told.map((words) => words.length + 6));
    return [longest * data.char + (isGroup(item) ? 38 : 20), (lines.length + (told.length > 0)) * data.line + 12];
  };

  // --- Layout ---
  const wireUp = () => {
    const levels = new Map();
    const level = (group) => levels.get(group) ?? levels.set(group, { wires: new Map(), ports: new Map() }).get(group);
    const connect = (group, net, begin, end, back) => {
      const [upper, lower] = back ? [end, begin] : [begin, end];
      const wires = level(group).wires, key = `${net}|${typeof upper === "number" ? upper : upper.key}`;
      const wire = wires.get(key) ?? wires.set(key, { net, upper, lower: new Set() }).get(key);
      wire.lower.add(lower);
      return wire;
    };
    const port = (group, net, onTop) => {
      const ports = level(group).ports, key = `${net}|${onTop}`;
      return ports.get(key) ?? ports.set(key, { key: `port${key}`, onTop, x: 0 }).get(key);
    };
    const routes = new Map();
    for (const [source, target, names, back] of edges) {
      const begin = seen(source), end = seen(target);
      if (begin === end) continue;
      const known = routes.get(`${begin}|${end}`);
      if (known) { names.forEach((name) => known.names.add(name)); continue; }
      const [from, to] = [around(begin), around(end)];
      let depth = 0;
      while (depth < from.length && depth < to.length && from[depth] === to[depth]) depth += 1;
      const meet = depth ? from[depth - 1] : ROOT;
      const net = back ? `${begin}>${end}` : `${begin}`;
      const stretches = [];
      const inside = (path, at, last) => (at + 1 < path.length ? asItem(path[at + 1]) : last);
      for (let at = from.length - 1; at >= depth; at -= 1) {
        const out = port(from[at], net, Boolean(back)), item = inside(from, at, begin);
        stretches.push([from[at], connect(from[at], net, item, out, back), item, out]);
      }
      const one = depth < from.length ? asItem(from[depth]) : begin, other = depth < to.length ? asItem(to[depth]) : end;
      stretches.push([meet, connect(meet, net, one, other, back), one, other]);
      for (let at = depth; at < to.length; at += 1) {
        const into = port(to[at], net, !back), item = inside(to, at, end);
        stretches.push([to[at], connect(to[at], net, into, item, back), into, item]);
      }
      routes.set(`${begin}|${end}`, { names: new Set(names), back, stretches });
    }
    return { level, routes: [...routes.values()] };
  };

  const layOut = (group, state) => {
    const { wires, ports } = state.level(group);
    const items = children.get(group);
    items.filter(isOpen).forEach((item) => layOut(groupOf(item), state));
    const size = (item) => (typeof item !== "number" ? [0, 0] : isOpen(item) ? [state.placed.get(groupOf(item)).width, state.placed.get(groupOf(item)).height] : sizeOf(item));
    // Rows: longest ways from what is read; what reads nothing stands right above its readers.
    const reads = new Map(), readers = new Map();
    for (const { upper, lower } of wires.values()) for (const item of lower) {
      reads.set(item, [...(reads.get(item) ?? []), upper]);
      readers.set(upper, [...(readers.get(upper) ?? []), item]);
    }
    const rank = new Map();
    const rankOf = (item) => {
      if (typeof item !== "number") return item.onTop ? -1 : 0;
      if (!rank.has(item)) {
        rank.set(item, 0);
        rank.set(item, Math.max(0, ...(reads.get(item) ?? []).map((source) => rankOf(source) + 1)));
      }
      return rank.get(item);
    };
    items.forEach(rankOf);
    for (const item of items) if (!reads.has(item) && readers.has(item)) {
      const below = readers.get(item).filter((other) => typeof other === "number").map((other) => rank.get(other));
      if (below.length) rank.set(item, Math.max(0, Math.min(...below) - 1));
    }
    const last = Math.max(0, ...rank.values()) + 2;
    const rowOf = (item) => (typeof item === "number" ? rank.get(item) + 1 : item.onTop ? 0 : last);
    const bends = new Map();
    for (const wire of wires.values()) {
      const begin = rowOf(wire.upper), end = Math.max(...[...wire.lower].map(rowOf));
      wire.bends = Array.from({ length: Math.max(0, end - begin - 1) }, (_, at) => ({ row: begin + 1 + at, x: 0 }));
      wire.bends.forEach((bend) => bends.set(bend, bend.row));
    }
    // dagre: the order of each row, and places in it.
    const graph = new dagre.graphlib.Graph();
    graph.setDefaultEdgeLabel(() => ({}));
    const ids = new Map(), entries = [...items, ...ports.values(), ...bends.keys()];
    const row = (entry) => bends.get(entry) ?? rowOf(entry);
    entries.forEach((entry, at) => {
      ids.set(entry, `${at}`);
      const [width, height] = size(entry);
      graph.setNode(`${at}`, { width: Math.max(width, 1), height: Math.max(height, 1), row: 2 * row(entry) });
    });
    const stretches = (wire) => {
      const chain = [wire.upper, ...wire.bends];
      return [
        ...wire.bends.map((bend, at) => [chain[at], bend]),
        ...[...wire.lower].map((item) => [chain[rowOf(item) - rowOf(wire.upper) - 1], item]),
      ];
    };
    for (const wire of wires.values()) for (const [one, other] of stretches(wire)) graph.setEdge(ids.get(one), ids.get(other));
    const ranker = (made) => made.nodes().forEach((id) => { made.node(id).rank = ids.size && graph.hasNode(id) ? graph.node(id).row : -1; });
    graph.setGraph({ nodesep: GAP_X, edgesep: 6, ranksep: 10, ranker });
    if (entries.length) dagre.layout(graph);
    const x = (entry) => graph.node(ids.get(entry)).x;
    // Places of ports, of ends of wires, and of rows.
    const left = Math.min(...entries.map((entry) => x(entry) - size(entry)[0] / 2)) - (group === ROOT ? 0 : PAD);
    const right = Math.max(...entries.map((entry) => x(entry) + size(entry)[0] / 2)) + (group === ROOT ? 0 : PAD);
    const at = (entry) => x(entry) - left;
    ports.forEach((port) => { port.x = at(port); });
    bends.forEach((_, bend) => { bend.x = at(bend); });
    const sides = new Map();
    for (const wire of wires.values()) for (const [one, other] of stretches(wire)) {
      if (one === wire.upper) sides.set(`b${ids.get(one)}`, [...(sides.get(`b${ids.get(one)}`) ?? []), [wire, at(other), one]]);
      if (wire.lower.has(other)) sides.set(`t${ids.get(other)}`, [...(sides.get(`t${ids.get(other)}`) ?? []), [wire, at(one), other]]);
    }
    const ends = new Map();
    sides.forEach((found, side) => {
      const item = found[0][2], wide = new Map();
      found.forEach(([wire, there]) => wide.set(wire, [...(wide.get(wire) ?? []), there]));
      const mean = (wire) => wide.get(wire).reduce((a, b) => a + b, 0) / wide.get(wire).length;
      const sorted = [...wide.keys()].sort((a, b) => mean(a) - mean(b));
      sorted.forEach((wire, place) => {
        const below = side[0] === "b";
        let there = typeof item === "number" ? at(item) - size(item)[0] / 2 + (size(item)[0] * (place + 1)) / (sorted.length + 1) : at(item);
        if (isOpen(item)) there = at(item) - size(item)[0] / 2 + state.level(groupOf(item)).ports.get(`${wire.net}|${!below}`).x;
        ends.set(wire, (ends.get(wire) ?? new Map()).set(`${side}`, there));
      });
    });
    const heights = Array.from({ length: last + 1 }, () => 0);
    items.forEach((item) => { heights[rowOf(item)] = Math.max(heights[rowOf(item)], size(item)[1]); });
    const framed = group !== ROOT;
    if (framed) heights[0] = HEAD;
    const tops = [];
    const ins = [...ports.values()].some((port) => port.onTop), outs = [...ports.values()].some((port) => !port.onTop);
    let y = 0;
    heights.forEach((height, number) => {
      tops.push(y);
      y += height;
      if (number === 0) y += framed && ins ? GAP_Y / 2 : 0;
      else if (number === last - 1) y += outs ? GAP_Y : framed ? PAD : 0;
      else if (number < last) y += GAP_Y;
    });
    const title = framed ? groups[group].w.length * data.char + 44 : 0;
    state.placed.set(group, { width: Math.max(right - left, title), height: y, at, size, tops, heights, rowOf, ends, ids, items });
  };

  const move = (group, left, top, state) => {
    const level = state.placed.get(group);
    level.left = left;
    level.top = top;
    for (const item of level.items) {
      const [width, height] = level.size(item), x = left + level.at(item) - width / 2, y = top + level.tops[level.rowOf(item)];
      state.spots.set(item, [x, y, width, height]);
      if (isOpen(item)) move(groupOf(item), x, y, state);
    }
  };

  const within = (state, [group, wire, begin, end], back) => {
    const level = state.placed.get(group), [upper, lower] = back ? [end, begin] : [begin, end];
    const one = level.rowOf(upper), other = level.rowOf(lower), ends = level.ends.get(wire);
    const x = ends.get(`b${level.ids.get(upper)}`);
    const points = [[x, level.tops[one] + level.size(upper)[1]], [x, level.tops[one] + level.heights[one]]];
    wire.bends.slice(0, other - one - 1).forEach((bend) => points.push([bend.x, level.tops[bend.row]], [bend.x, level.tops[bend.row] + level.heights[bend.row]]));
    points.push([ends.get(`t${level.ids.get(lower)}`), level.tops[other]]);
    const moved = points.map(([a, b]) => [level.left + a, level.top + b]);
    return back ? moved.reverse() : moved;
  };

  // --- Drawing ---
  const n = (number) => number.toFixed(1);
  const mark = (names) => escape([...names].map((name) => name.replaceAll(" ", "\u00a0")).join(" "));
  const rect = ([x, y, w, h], style, radius) => `<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" rx="${radius}" class="${style}"/>`;
  const text = (x, y, words, style, anchor) => `<text x="${n(x)}" y="${n(y)}" text-anchor="${anchor}" class="${style}">${escape(words)}</text>`;
  const arrow = (state, { names, back, stretches }) => {
    const points = stretches.flatMap((stretch) => within(state, stretch, back));
    let path = `M${points[0].map(n)}`;
    for (let at = 1; at < points.length; at += 1) {
      const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
      if (x0 === x1 && y0 === y1) continue;
      const half = n((y0 + y1) / 2);
      path += Math.abs(x1 - x0) < 0.05 ? ` L${n(x1)},${n(y1)}` : ` C${n(x0)},${half} ${n(x1)},${half} ${n(x1)},${n(y1)}`;
    }
    const [x, y] = points.at(-1), down = y >= points.at(-2)[1] ? 1 : -1;
    return `<g data-names="${mark(names)}"><path class="edge" d="${path}"/><path class="head" d="M${n(x - 4)},${n(y - 7 * down)}h8l-4,${7 * down}z"/></g>`;
  };
  const namesIn = (item) => (isGroup(item) ? children.get(groupOf(item)).flatMap(namesIn) : boxes[item].n);
  const draw = () => {
    const state = { ...wireUp(), placed: new Map(), spots: new Map() };
    layOut(ROOT, state);
    const margin = 24, whole = state.placed.get(ROOT);
    move(ROOT, margin, margin, state);
    const shown = [...state.spots.keys()].filter((item) => !isOpen(item));
    const most = data.heats.map((_, at) => Math.max(0, ...shown.map((item) => heatsOf(item)[at]?.[0] ?? 0)));
    const hot = (item) => (heatsOf(item).length ? ` class="hot ${data.heats.map((name, at) => `${name}${LEVELS.findIndex((end) => heatsOf(item)[at][0] <= end * most[at] || end === 1)}`).join(" ")}"` : "");
    const parts = [];
    const frames = [...state.spots.keys()].filter(isOpen);
    frames.forEach((item) => parts.push(rect(state.spots.get(item), FRAMES[groups[groupOf(item)].k][0], 8)));
    state.routes.forEach((route) => parts.push(arrow(state, route)));
    frames.forEach((item) => {
      const group = groups[groupOf(item)], [x, y] = state.spots.get(item);
      parts.push(`<g class="toggle" data-group="${groupOf(item)}" tabindex="0" role="button" aria-expanded="true" aria-label="close ${escape(group.w)}">${text(x + 8, y + 16, `⊟ ${group.w}`, `${FRAMES[group.k][1]} over`, "start")}</g>`);
    });
    shown.forEach((item) => {
      const [x, y, width] = state.spots.get(item), lines = linesOf(item), group = isGroup(item) && groups[groupOf(item)];
      const style = group ? `box ${group.c} closed` : boxes[item].s, argument = !group && boxes[item].k < 0;
      const body = [rect(state.spots.get(item), style, argument ? 14 : 4)];
      lines.forEach((line, at) => body.push(text(x + width / 2, y + 18 + at * data.line, group && !at ? `⊞ ${line}` : line, at ? "s" : "t b", "middle")));
      heatsOf(item).forEach(([, words], at) => body.push(text(x + width / 2, y + 18 + lines.length * data.line, `${data.heats[at]} ${words}`, `s only-${data.heats[at]}`, "middle")));
      const told = heatsOf(item).map(([, words], at) => `${data.heats[at]} ${words}`);
      const details = [...(group ? [group.w, `${counts[groupOf(item)]} nodes`] : [boxes[item].t]), ...told].join("\n");
      const extra = group ? ` data-group="${groupOf(item)}" role="button" aria-expanded="false"` : "";
      parts.push(`<g data-names="${mark(new Set(namesIn(item)))}" data-details="${escape(details)}" aria-label="${escape(details)}" tabindex="0"${extra}${hot(item)}>${body.join("")}</g>`);
    });
    const width = whole.width + 2 * margin, height = whole.height + 2 * margin;
    return { width, height, spots: state.spots, inner: `${rect([0, 0, width, height], "bg", 0)}${parts.join("")}` };
  };

  const reveal = (item) => around(item).forEach((group) => open.add(group));
  const toggle = (group) => (open.has(group) ? open.delete(group) : open.add(group));
  // Boxes and groups with all words in what is written in them.
  const search = (words) => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (told) => wanted.every((word) => told.toLowerCase().includes(word));
    return wanted.length ? [
      ...groups.flatMap((group, g) => (fits(group.w) ? [asItem(g)] : [])),
      ...boxes.flatMap((box, place) => (fits([...box.l, ...box.n].join(" ")) ? [place] : [])),
    ].sort((a, b) => first.get(a) - first.get(b)) : [];
  };
  openSome();
  return { draw, open, openSome, toggle, reveal, search, children, groups, boxes, isGroup, groupOf, asItem, linesOf, counts, seen, ROOT };
};
