#include "tandem/graph/graph_picture.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace tandem {

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

namespace {

constexpr double kLayerHeight = 84, kNodeHeight = 40, kGap = 18, kLetter = 6.6, kMargin = 40;
constexpr std::size_t kLetters = 28;

// By letters, not bytes.
std::string shortened(const std::string& name) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  auto letters = static_cast<std::size_t>(std::count_if(name.begin(), name.end(), begins));
  if (letters <= kLetters) return name;
  std::size_t from = 0;
  while (letters > kLetters - 1) {
    do ++from;
    while (from < name.size() && !begins(name[from]));
    --letters;
  }
  return "…" + name.substr(from);
}

// The name without a last part that only repeats the op, which stands below it.
std::string label_of(const GraphPicture::Node& node) {
  const std::size_t slash = node.name.rfind('/');
  if (slash == std::string::npos || slash == 0) return shortened(node.name);
  std::string_view last = std::string_view(node.name).substr(slash + 1);
  last = last.substr(0, last.find_last_not_of("0123456789") + 1);
  if (last.ends_with('_')) last.remove_suffix(1);
  const bool repeats = last == node.op || std::string_view(node.name).substr(slash + 1) == node.op;
  return shortened(repeats ? node.name.substr(0, slash) : node.name);
}

template <class See>
void for_each_input(const GraphPicture::Node& node, See see) {
  for (const int in : node.inputs) see(in, false);
  for (const int before : node.controls) see(before, true);
}

}  // namespace

struct GraphPicture::Box {
  std::size_t layer = 0;
  double wanted = 0;  // where the inputs would have it
  double x = 0, width = 0;
  double top() const { return kMargin + static_cast<double>(layer) * kLayerHeight; }
  double middle() const { return x + width / 2; }
};

int GraphPicture::add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

// Every node one layer below its lowest input, and in each layer near its inputs.
std::vector<GraphPicture::Box> GraphPicture::place() const {
  std::vector<Box> boxes(nodes_.size());
  std::vector<std::vector<std::size_t>> layers;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const auto letters = std::max(label_of(nodes_[n]).size(), nodes_[n].op.size());
    boxes[n].width = 20 + kLetter * static_cast<double>(std::min(letters, kLetters));
    for_each_input(nodes_[n], [&](int in, bool) {
      const auto above = static_cast<std::size_t>(in);
      if (above < n) boxes[n].layer = std::max(boxes[n].layer, boxes[above].layer + 1);
    });
    if (boxes[n].layer >= layers.size()) layers.resize(boxes[n].layer + 1);
    layers[boxes[n].layer].push_back(n);
  }
  for (auto& layer : layers) {
    for (const std::size_t n : layer) {
      double sum = 0;
      int count = 0;
      for_each_input(nodes_[n], [&](int in, bool) {
        const auto above = static_cast<std::size_t>(in);
        if (above >= n) return;
        sum += boxes[above].middle();
        ++count;
      });
      boxes[n].wanted = count ? sum / count : 0;
    }
    std::stable_sort(layer.begin(), layer.end(), [&](std::size_t a, std::size_t b) {
      return boxes[a].wanted < boxes[b].wanted;
    });
    double x = kMargin;
    for (const std::size_t n : layer) {
      boxes[n].x = std::max(x, boxes[n].wanted - boxes[n].width / 2);
      x = boxes[n].x + boxes[n].width + kGap;
    }
  }
  return boxes;
}

std::string GraphPicture::svg() const {
  const std::vector<Box> boxes = place();
  std::ostringstream out;
  out << "<svg class=\"graph\"><g class=\"view\">\n";
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    for_each_input(nodes_[n], [&](int in, bool control) {
      const auto from = static_cast<std::size_t>(in);
      if (from >= n) return;
      const double x1 = boxes[from].middle(), y1 = boxes[from].top() + kNodeHeight;
      const double x2 = boxes[n].middle(), y2 = boxes[n].top();
      const double bend = (kLayerHeight - kNodeHeight) / 2;
      out << "<path" << (control ? " class=\"control\"" : "") << " d=\"M" << x1 << ' ' << y1 << 'C'
          << x1 << ' ' << y1 + bend << ' ' << x2 << ' ' << y2 - bend << ' ' << x2 << ' ' << y2
          << "\"/>\n";
    });
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    const Box& box = boxes[n];
    out << "<g class=\"node" << (node.css_class.empty() ? "" : " ") << node.css_class
        << "\"><title>" << escape_html(node.details) << "</title><rect x=\"" << box.x << "\" y=\""
        << box.top() << "\" width=\"" << box.width << "\" height=\"" << kNodeHeight
        << "\"/><text x=\"" << box.middle() << "\" y=\"" << box.top() + 17 << "\">"
        << escape_html(label_of(node)) << "</text><text class=\"op\" x=\"" << box.middle()
        << "\" y=\"" << box.top() + 31 << "\">" << escape_html(node.op) << "</text></g>\n";
  }
  out << "</g></svg>\n";
  return std::move(out).str();
}

const char* GraphPicture::style() {
  return R"(svg.graph { cursor: grab; touch-action: none; }
svg.graph rect { fill: var(--node, #e8eef8); stroke: var(--node-line, #5878a8); rx: 4px; }
svg.graph g.found rect { stroke-width: 3px; fill: var(--found, #fff3c0); }
svg.graph text { font: 11px sans-serif; text-anchor: middle; pointer-events: none;
  fill: var(--ink, #222); }
svg.graph text.op { fill: var(--faint, #667); font-size: 10px; }
svg.graph path { fill: none; stroke: var(--edge, #8a94a4); }
svg.graph path.control { stroke-dasharray: 4 3; stroke: var(--control, #b0a080); }
)";
}

const char* GraphPicture::script() {
  return R"({
  const svg = document.querySelector("svg.graph"), view = svg.querySelector("g.view");
  let x = 0, y = 0, scale = 1, from = null;
  const show = () => view.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  svg.addEventListener("wheel", e => {
    e.preventDefault();
    const box = svg.getBoundingClientRect(), f = Math.exp(-e.deltaY / 600);
    const px = e.clientX - box.left, py = e.clientY - box.top;
    x = px - (px - x) * f; y = py - (py - y) * f; scale *= f; show();
  }, {passive: false});
  svg.addEventListener("pointerdown", e => { from = [e.clientX - x, e.clientY - y]; });
  window.addEventListener("pointermove", e => {
    if (from) { x = e.clientX - from[0]; y = e.clientY - from[1]; show(); }
  });
  window.addEventListener("pointerup", () => { from = null; });
  document.querySelector("input.find").addEventListener("input", e => {
    const wanted = e.target.value.toLowerCase();
    for (const g of svg.querySelectorAll("g.node"))
      g.classList.toggle("found",
          wanted !== "" && g.querySelector("title").textContent.toLowerCase().includes(wanted));
  });
}
)";
}

}  // namespace tandem
