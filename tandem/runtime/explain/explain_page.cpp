#include "tandem/runtime/explain/explain_page.h"

namespace tandem {

const char* ExplainPage::style() {
  return R"(:root { --page: #fbfbfa; --ink: #222; --faint: #667; --line: #d8d8d4; --card: #fff;
  --edge: #9aa4b4; --control: #b0a080; --found: #ffe9a0; --copy: #c2571a;
  --group: #f4f2ea; --group-line: #a8a284;
  --fill-s: 65%; --fill-l: 91%; --edge-s: 45%; --edge-l: 42%; --bar-l: 55%; }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) {
  --page: #16181c; --ink: #e4e4e0; --faint: #9aa; --line: #34383f; --card: #1e2127;
  --edge: #66707f; --control: #7d7354; --found: #6a5a18; --copy: #f0985c;
  --group: #282b31; --group-line: #5c6068;
  --fill-s: 30%; --fill-l: 22%; --edge-s: 50%; --edge-l: 62%; --bar-l: 50%; } }
:root[data-theme=dark] {
  --page: #16181c; --ink: #e4e4e0; --faint: #9aa; --line: #34383f; --card: #1e2127;
  --edge: #66707f; --control: #7d7354; --found: #6a5a18; --copy: #f0985c;
  --group: #282b31; --group-line: #5c6068;
  --fill-s: 30%; --fill-l: 22%; --edge-s: 50%; --edge-l: 62%; --bar-l: 50%; }
body { margin: 0 auto; padding: 0 20px 60px; max-width: 1500px; font: 14px/1.45 sans-serif;
  background: var(--page); color: var(--ink); }
header { display: flex; align-items: baseline; gap: 16px; flex-wrap: wrap; }
h1 { font-size: 20px; overflow-wrap: anywhere; } h2 { font-size: 16px; margin: 32px 0 8px; }
button, input { font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: 4px; padding: 2px 8px; }
.faint { color: var(--faint); }
.cards { display: flex; gap: 12px; flex-wrap: wrap; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: 8px 14px; } .card b { display: block; font-size: 18px; }
.d0 { --h: 215; } .d1 { --h: 135; } .d2 { --h: 35; } .d3 { --h: 285; } .d4 { --h: 175; }
.d5 { --h: 350; } .d6 { --h: 65; } .d7 { --h: 250; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px;
  background: hsl(var(--h) var(--edge-s) var(--bar-l)); }
.swatch.copy { background: var(--copy); } .swatch.limit { background: #c03030; height: 3px;
  vertical-align: middle; }
.scroll { overflow: auto; border: 1px solid var(--line); border-radius: 6px;
  background: var(--card); max-height: 70vh; }
svg.graph { width: 100%; height: 65vh; display: block; }
svg.graph .node { --node: hsl(var(--h) var(--fill-s) var(--fill-l));
  --node-line: hsl(var(--h) var(--edge-s) var(--edge-l)); }
svg.time { display: block; min-width: 100%; }
svg.time text { font: 11px sans-serif; fill: var(--faint); }
svg.time rect.work { fill: hsl(var(--h) var(--edge-s) var(--bar-l)); }
svg.time rect.copy { fill: var(--copy); }
svg.time rect.row { fill: var(--line); opacity: .35; }
svg.time line { stroke: var(--line); }
.labels { float: left; width: 150px; font-size: 11px; } .labels div { height: 24px;
  line-height: 24px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
  padding-left: 6px; }
.bars { margin-left: 150px; overflow-x: auto; }
svg.memory { width: 100%; height: 90px; display: block; }
.scroll + .scroll { margin-top: 8px; }
svg.memory path { fill: hsl(var(--h) var(--fill-s) var(--fill-l));
  stroke: hsl(var(--h) var(--edge-s) var(--edge-l)); vector-effect: non-scaling-stroke; }
svg.memory line { stroke: var(--line); vector-effect: non-scaling-stroke; }
svg.memory line.limit { stroke: #c03030; stroke-dasharray: 5 4; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { position: sticky; top: 0; background: var(--card); text-align: left; cursor: pointer;
  white-space: nowrap; }
th, td { padding: 3px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
th.n { text-align: right; } td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td { overflow-wrap: anywhere; } li { margin: 4px 0; }
)";
}

const char* ExplainPage::script() {
  return R"page("use strict";
document.querySelector("#theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
{
  // All charts over time show the same stretch of it.
  let zoom = 1;
  const charts = [...document.querySelectorAll(".bars")];
  const show = (bars, f, at) => {
    const width = () => bars.querySelector("svg").getBoundingClientRect().width;
    const share = (bars.scrollLeft + at) / width();
    zoom = Math.min(Math.max(zoom * f, 1), 200);
    for (const chart of charts) chart.querySelector("svg").style.width = 100 * zoom + "%";
    bars.scrollLeft = share * width() - at;
  };
  for (const bars of charts) {
    bars.addEventListener("scroll", () => {
      for (const chart of charts)
        if (chart.scrollLeft !== bars.scrollLeft) chart.scrollLeft = bars.scrollLeft;
    });
    bars.addEventListener("wheel", e => {
      if (!e.ctrlKey && !e.shiftKey) return;
      e.preventDefault();
      const at = e.clientX - bars.getBoundingClientRect().left;
      show(bars, Math.exp(-(e.deltaY || e.deltaX) / 300), at);
    }, {passive: false});
  }
  for (const button of document.querySelectorAll("button.zoom"))
    button.addEventListener("click", () => show(charts[0], +button.value, charts[0].clientWidth / 2));
}
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    let up = false;
    head.addEventListener("click", () => {
      up = !up;
      const value = row => {
        const cell = row.cells[column];
        return cell.dataset.v !== undefined ? +cell.dataset.v : cell.textContent;
      };
      const rows = [...body.rows].sort((a, b) => {
        const x = value(a), y = value(b);
        const order = typeof x === "number" ? y - x : x.localeCompare(y);
        return up ? order : -order;
      });
      body.append(...rows);
    });
  });
}
for (const input of document.querySelectorAll("input.filter")) {
  const table = document.getElementById(input.dataset.table);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of table.tBodies[0].rows)
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
)page";
}

}  // namespace tandem
