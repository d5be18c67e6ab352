#include "tandem/graph/graph_picture.h"

// The browser's part of a drawn graph. It folds, lays out and draws, so that only what is visible
// costs time: a page holds the nodes as data, and a graph of 50,000 nodes opens with a few boxes.

namespace tandem {

const char* GraphPicture::style() {
  return R"css(svg.graph { cursor: grab; touch-action: none; user-select: none; }
svg.graph rect { fill: var(--node, #e8eef8); stroke: var(--node-line, #5878a8); rx: 4px; }
svg.graph g.group { cursor: pointer; }
svg.graph g.group rect { fill: var(--group, #f4f2ea); stroke: var(--group-line, #8a8468); rx: 9px; }
svg.graph g.group.open > rect { fill: var(--group, #f4f2ea); fill-opacity: .45; }
svg.graph rect.share { fill: var(--node-line, #5878a8); stroke: none; rx: 0; }
svg.graph g.group rect.share { fill: var(--node-line, #5878a8); stroke: none; rx: 0; }
svg.graph g.found > rect { stroke-width: 3px; fill: var(--found, #fff3c0); }
svg.graph text { font: 11px sans-serif; text-anchor: middle; pointer-events: none;
  fill: var(--ink, #222); }
svg.graph g.group text { font-weight: bold; }
svg.graph text.op { fill: var(--faint, #667); font-size: 10px; font-weight: normal; }
svg.graph g.group text.op { font-weight: normal; }
svg.graph path { fill: none; stroke: var(--edge, #8a94a4); pointer-events: none; }
svg.graph path.control { stroke-dasharray: 4 3; stroke: var(--control, #b0a080); }
)css";
}

const char* GraphPicture::script() {
  return R"js(for (const svg of document.querySelectorAll("svg.graph")) {
  // Folded by name scope: groups hold what their names have in common, and open where they are clicked.
  const data = JSON.parse(svg.nextElementSibling.textContent), view = svg.querySelector("g.view");
  const HEAD = 24, PAD = 14, NODE = 38, GAP_X = 18, GAP_Y = 34, LETTER = 6.4, LETTERS = 28;
  const WIDEST = 1500, MANY = 60, TALL = 14, PARTS = 12, FIRST = 60, READABLE = 0.55;
  const make = (tag, attributes, parent, text) => {
    const element = document.createElementNS(svg.namespaceURI, tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  const shorten = text => {
    const letters = [...text];
    return letters.length <= LETTERS ? text : "…" + letters.slice(1 - LETTERS).join("");
  };
  const seconds_text = s => s < 1e-6 ? (s * 1e9).toPrecision(3) + " ns"
      : s < 1e-3 ? (s * 1e6).toPrecision(3) + " us"
      : s < 1 ? (s * 1e3).toPrecision(3) + " ms" : s.toPrecision(3) + " s";

  // ---- The tree of scopes. A leaf has the number of its node, a group has kids.
  const group = (name, parent) => ({name, parent, scope: name, kids: [], groups: new Map(),
                                    edges: new Map(), open: false, leaf: -1});
  const root = group("", null);
  root.open = true;
  const leaves = data.names.map((name, leaf) => ({name, leaf, kids: null, open: false}));
  const scope_of = (parts, create) => {
    let at = root;
    for (const part of parts) {
      let next = at.groups.get(part);
      if (!next) {
        if (!create) return null;
        next = group(at.name ? at.name + "/" + part : part, at);
        at.groups.set(part, next);
        at.kids.push(next);
      }
      at = next;
    }
    return at;
  };
  for (const leaf of leaves) scope_of(leaf.name.split("/").slice(0, -1), true);
  for (const leaf of leaves) {
    const parts = leaf.name.split("/");
    // A node that is named like a scope belongs to it.
    leaf.parent = scope_of(parts, false) || scope_of(parts.slice(0, -1), false);
    leaf.parent.kids.push(leaf);
  }
  const adopt = (parent, name, kids) => {
    const made = group(name, parent);
    made.scope = parent.scope;
    made.kids = kids;
    for (const kid of kids) kid.parent = made;
    return made;
  };
  // A scope with one member stands for it.
  const unwrap = g => {
    g.kids = g.kids.map(kid => {
      if (!kid.kids) return kid;
      unwrap(kid);
      if (kid.kids.length > 1) return kid;
      kid.kids[0].parent = g;
      return kid.kids[0];
    });
  };
  unwrap(root);
  const summarize = g => {
    if (!g.kids) {
      g.count = 1; g.first = g.leaf; g.last = g.leaf; g.seconds = data.seconds[g.leaf] || 0;
      g.classes = {[data.classes[g.leaf]]: 1};
      return;
    }
    g.count = 0; g.first = Infinity; g.last = -1; g.seconds = 0; g.classes = {};
    for (const kid of g.kids) {
      summarize(kid);
      g.count += kid.count;
      g.first = Math.min(g.first, kid.first);
      g.last = Math.max(g.last, kid.last);
      g.seconds += kid.seconds;
      for (const c in kid.classes) g.classes[c] = (g.classes[c] || 0) + kid.classes[c];
    }
    g.kids.sort((a, b) => a.first - b.first);
  };
  summarize(root);

  // ---- Edges between the members of each group, from those between nodes.
  const connect = () => {
    const clear = g => {
      if (!g.kids) return;
      g.edges = new Map();
      g.kids.forEach((kid, i) => { kid.at = i; kid.depth = (g.depth || 0) + 1; clear(kid); });
    };
    root.depth = 0;
    clear(root);
    data.inputs.forEach((inputs, n) => {
      for (const list of [inputs, data.controls[n]]) {
        for (const input of list) {
          let a = leaves[input], b = leaves[n];
          while (a.depth > b.depth) a = a.parent;
          while (b.depth > a.depth) b = b.parent;
          while (a.parent !== b.parent) { a = a.parent; b = b.parent; }
          if (a !== b) a.parent.edges.set(a.at * a.parent.kids.length + b.at, true);
        }
      }
    });
  };
  const layers = g => {
    const n = g.kids.length, layer = new Array(n).fill(0), next = g.kids.map(() => []);
    const before = g.kids.map(() => []);
    for (const key of g.edges.keys()) {
      const a = Math.floor(key / n), b = key % n;
      if (a < b) { next[a].push(b); before[b].push(a); }  // an edge back does not move its end
    }
    for (let a = 0; a < n; ++a)
      for (const b of next[a]) layer[b] = Math.max(layer[b], layer[a] + 1);
    return {layer, before};
  };
  const kind = leaf => data.ops[leaf].split(" · ")[0];
  const own_name = item => {
    const around = item.parent && item.parent.scope ? item.parent.scope + "/" : "";
    const name = item.name.startsWith(around) ? item.name.slice(around.length) : item.name;
    if (item.kids) return name;
    const parts = name.split("/"), last = parts[parts.length - 1];
    // A last part that only repeats the op, which stands below it, is left out.
    const repeats = parts.length > 1 && last.replace(/_?\d+$/, "") === kind(item.leaf);
    return repeats ? parts.slice(0, -1).join("/") : name;
  };
  // Groups that are too large for one picture: numbered names together, names that begin alike
  // ("conv2_block1_…"), then runs in order.
  const fold = g => {
    if (!g.kids) return;
    if (g.kids.length > MANY) {
      const series = new Map();
      for (const kid of g.kids) {
        const base = kid.name.replace(/\d+$/, "");
        if (!series.has(base)) series.set(base, []);
        series.get(base).push(kid);
      }
      const kids = [];
      for (const [base, members] of series) {
        if (members.length < 5 || members.length === g.kids.length) kids.push(...members);
        else kids.push(adopt(g, base + "[" + members.length + "]", members));
      }
      g.kids = kids;
    }
    for (let words = 1; words <= 3 && g.kids.length > MANY; ++words) {
      const alike = new Map();
      for (const kid of g.kids) {
        const key = own_name(kid).split("_").slice(0, words).join("_");
        if (!alike.has(key)) alike.set(key, []);
        alike.get(key).push(kid);
      }
      if (alike.size < 2 || alike.size > Math.min(2 * PARTS, g.kids.length / 3)) continue;
      g.kids = [...alike].map(([key, members]) =>
          members.length === 1 ? members[0] : adopt(g, (g.scope ? g.scope + "/" : "") + key + "…", members));
      break;
    }
    g.kids.forEach(fold);
  };
  const split = g => {
    if (!g.kids) return false;
    let changed = false;
    const tall = () => Math.max(...layers(g).layer) >= TALL;
    if (g.kids.length > MANY || g.kids.length > 2 * PARTS && tall()) {
      const size = Math.ceil(g.kids.length / PARTS), parts = [];
      for (let i = 0; i < g.kids.length; i += size) {
        const kids = g.kids.slice(i, i + size);
        parts.push(kids.length === 1 ? kids[0]
            : adopt(g, own_name(kids[0]) + " … " + own_name(kids[kids.length - 1]), kids));
      }
      g.kids = parts;
      changed = true;
    }
    for (const kid of g.kids) changed = split(kid) || changed;
    return changed;
  };
  fold(root);
  summarize(root);
  connect();
  for (let i = 0; i < 8 && split(root); ++i) { summarize(root); connect(); }

  // ---- Where everything is. x and y are relative to the group around.
  const second_line = item => item.kids
      ? item.count + " nodes" + (item.seconds > 0 ? " · " + seconds_text(item.seconds) : "")
      : data.ops[item.leaf];
  const layout = g => {
    if (!g.label) { g.label = shorten(own_name(g)); g.line = second_line(g); }
    const width = LETTER * Math.min(Math.max([...g.label].length, [...g.line].length), LETTERS + 6);
    if (!g.kids || !g.open) { g.w = width + 24; g.h = NODE; return; }
    g.kids.forEach(layout);
    const {layer, before} = layers(g), rows = [];
    g.kids.forEach((kid, i) => { (rows[layer[i]] = rows[layer[i]] || []).push(i); });
    let y = g.parent ? HEAD : 0, low = 0, high = 0;
    for (const row of rows) {
      for (const i of row) {
        const above = before[i].map(a => g.kids[a].x + g.kids[a].w / 2);
        g.kids[i].wanted = above.length ? above.reduce((s, v) => s + v, 0) / above.length : 0;
      }
      row.sort((a, b) => g.kids[a].wanted - g.kids[b].wanted || a - b);
      const lines = [[]];
      let used = 0;
      for (const i of row) {
        if (used > 0 && used + g.kids[i].w > WIDEST) { lines.push([]); used = 0; }
        lines[lines.length - 1].push(g.kids[i]);
        used += g.kids[i].w + GAP_X;
      }
      for (const line of lines) {
        let x = -Infinity, off = 0;
        for (const kid of line) {
          const wanted = lines.length > 1 ? 0 : kid.wanted;
          kid.x = Math.max(x, wanted - kid.w / 2);
          x = kid.x + kid.w + GAP_X;
          off += wanted - kid.x - kid.w / 2;
        }
        for (const kid of line) {
          kid.x += off / line.length;
          kid.y = y;
          low = Math.min(low, kid.x);
          high = Math.max(high, kid.x + kid.w);
        }
        y += Math.max(...line.map(kid => kid.h)) + GAP_Y;
      }
    }
    for (const kid of g.kids) kid.x += PAD - low;
    g.w = Math.max(high - low, g.parent ? width : 0) + 2 * PAD;
    g.h = y - GAP_Y + PAD;
  };

  // ---- Drawing what is visible.
  let x = 0, y = 0, scale = 1, from = null, moved = 0, wanted = "";
  const show = () => view.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  const visible = item => {
    let seen = item;
    for (let at = item.parent; at; at = at.parent) if (!at.open) seen = at;
    return seen;
  };
  const matches = item => item.kids ? item.kids.some(matches)
      : (data.names[item.leaf] + "\n" + data.ops[item.leaf]).toLowerCase().includes(wanted);
  const title_of = item => {
    if (!item.kids) return data.details[item.leaf];
    const ops = new Map();
    const add = at => at.kids ? at.kids.forEach(add)
        : ops.set(kind(at.leaf), (ops.get(kind(at.leaf)) || 0) + 1);
    add(item);
    const most = [...ops].sort((a, b) => b[1] - a[1]).slice(0, 8);
    return item.name + "\n" + second_line(item) + most.map(([op, n]) => `\n${n} × ${op}`).join("");
  };
  const draw = () => {
    layout(root);
    view.replaceChildren();
    const boxes = make("g", {}, view), edges = make("g", {}, view), on_top = make("g", {}, view);
    const place = (item, left, top) => {
      item.ax = left + item.x; item.ay = top + item.y;
      const open = item.kids && item.open;
      const css = item.kids ? "group" + (open ? " open" : "") : "node " + data.classes[item.leaf];
      const box = make("g", {class: css}, open ? boxes : on_top);
      box.item = item;
      if (wanted && !open && matches(item)) box.classList.add("found");
      make("title", {}, box, title_of(item));
      make("rect", {x: item.ax, y: item.ay, width: item.w, height: item.h}, box);
      const middle = item.ax + item.w / 2;
      make("text", {x: middle, y: item.ay + 16}, box, item.label);
      if (!open) make("text", {class: "op", x: middle, y: item.ay + 29}, box, item.line);
      if (!item.kids) return;
      // Which classes (devices) a group's nodes have, as shares of its lower edge.
      let at = item.ax;
      for (const c of Object.keys(item.classes).sort()) {
        if (!c) continue;
        const part = item.w * item.classes[c] / item.count;
        make("rect", {class: "share node " + c, x: at, y: item.ay + item.h - 4, width: part,
                      height: 4}, box);
        at += part;
      }
      if (open) for (const kid of item.kids) place(kid, item.ax, item.ay);
    };
    for (const kid of root.kids) place(kid, 0, 0);
    const drawn = new Map(), seen = leaves.map(visible);
    data.inputs.forEach((inputs, n) => {
      [inputs, data.controls[n]].forEach((list, control) => {
        for (const input of list) {
          const a = seen[input], b = seen[n];
          if (a === b) continue;
          let of_a = drawn.get(a);
          if (!of_a) drawn.set(a, of_a = new Map());
          const edge = of_a.get(b) || {count: 0, control: true};
          ++edge.count;
          edge.control = edge.control && control === 1;
          of_a.set(b, edge);
        }
      });
    });
    for (const [a, of_a] of drawn) {
      for (const [b, edge] of of_a) {
        const x1 = a.ax + a.w / 2, y1 = a.ay + a.h, x2 = b.ax + b.w / 2, y2 = b.ay;
        const bend = Math.max(GAP_Y / 2, Math.min(Math.abs(y2 - y1) / 2, 60));
        const path = make("path", {d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`,
            "stroke-width": Math.min(1 + Math.log2(edge.count) / 2, 5)}, edges);
        if (edge.control) path.setAttribute("class", "control");
      }
    }
    show();
  };
  const fit = () => {
    const box = svg.getBoundingClientRect();
    scale = Math.min((box.width - 40) / root.w, (box.height - 60) / root.h, 1.25);
    x = (box.width - scale * root.w) / 2;
    y = 40 + Math.max(0, (box.height - 60 - scale * root.h) / 2);
  };
  const first_picture = () => {
    const box = svg.getBoundingClientRect();
    const readable = () => {
      layout(root);
      return Math.min((box.width - 40) / root.w, (box.height - 60) / root.h) >= READABLE;
    };
    // Level by level: all groups of one open together, else in a small picture those that fit.
    let shown = root.kids.length, level = root.kids.filter(kid => kid.kids);
    const more = groups => groups.reduce((sum, g) => sum + g.kids.length - 1, 0);
    const open = (groups, state) => { for (const g of groups) g.open = state; };
    while (level.length) {
      open(level, true);
      let opened = level;
      if (shown + more(level) > FIRST || !readable()) {
        open(level, false);
        opened = [];
        if (shown >= PARTS) break;
        for (const g of level) {
          g.open = true;
          if (shown + more([...opened, g]) > FIRST || !readable()) g.open = false;
          else opened.push(g);
        }
      }
      shown += more(opened);
      level = opened.flatMap(g => g.kids.filter(kid => kid.kids));
    }
  };
  const toggle = item => {
    const left = x + scale * item.ax, top = y + scale * item.ay;
    item.open = !item.open;
    draw();
    x = left - scale * item.ax; y = top - scale * item.ay;  // its corner stays where it was
    show();
  };
  const reveal = item => {
    for (let at = item.parent; at; at = at.parent) at.open = true;
    draw();
    const box = svg.getBoundingClientRect();
    scale = Math.max(scale, 0.8);
    x = box.width / 2 - scale * (item.ax + item.w / 2);
    y = box.height / 2 - scale * (item.ay + item.h / 2);
    show();
  };

  first_picture();
  draw();
  fit();
  show();
  svg.addEventListener("wheel", e => {
    e.preventDefault();
    const box = svg.getBoundingClientRect(), f = Math.exp(-e.deltaY / 600);
    const px = e.clientX - box.left, py = e.clientY - box.top;
    x = px - (px - x) * f; y = py - (py - y) * f; scale *= f; show();
  }, {passive: false});
  svg.addEventListener("pointerdown", e => { from = [e.clientX - x, e.clientY - y]; moved = 0; });
  window.addEventListener("pointermove", e => {
    if (!from) return;
    const to = [e.clientX - from[0], e.clientY - from[1]];
    moved += Math.abs(to[0] - x) + Math.abs(to[1] - y);
    [x, y] = to;
    show();
  });
  window.addEventListener("pointerup", () => { from = null; });
  svg.addEventListener("click", e => {
    const box = moved < 4 && e.target.closest("g.group");
    if (box) toggle(box.item);
  });
  for (const button of document.querySelectorAll("button.fit"))
    button.addEventListener("click", () => { fit(); show(); });
  const find = document.querySelector("input.find");
  find.addEventListener("input", () => { wanted = find.value.toLowerCase(); draw(); });
  find.addEventListener("keydown", e => {
    if (e.key !== "Enter" || !wanted) return;
    const first = leaves.find(matches);
    if (first) reveal(first);
  });
}
)js";
}

}  // namespace tandem
