#include "tandem/cli/graph_drawing.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <vector>

#include "tandem/core/error.h"

namespace tandem::cli {

OpNames::OpNames(const io::ImportedGraph& imported) {
  for (const io::UnsupportedNode& node : imported.unsupported) {
    if (node.function.empty()) unsupported_.emplace(node.name, node.op);
  }
}

const std::string& OpNames::of(const Node& node) const {
  const auto found = unsupported_.find(node.name());
  return found == unsupported_.end() ? node.op().name : found->second;
}

namespace {

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string for_html(const std::string& text) {
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

std::string outputs_text(const Node& node) {
  std::string text;
  for (int i = 0; i < node.num_outputs(); ++i)
    text += cat(i ? ", " : "", node.output_dtype(i), node.output_shape(i));
  return text;
}

}  // namespace

std::string to_dot(const io::ImportedGraph& imported) {
  const OpNames names(imported);
  std::ostringstream out;
  out << "digraph graph_def {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n";
  for (const auto& node : imported.graph->nodes()) {
    const bool constant = node->kind() == NodeKind::kConst;
    out << "  " << in_quotes(node->name()) << " [label="
        << in_quotes(node->name() + "\n" + names.of(*node) + "\n" + outputs_text(*node))
        << (!names.runs(*node) ? ", color=red, fontcolor=red"
            : constant         ? ", color=gray, fontcolor=gray40"
                               : "")
        << "];\n";
  }
  for (const auto& node : imported.graph->nodes()) {
    for (const Output& in : node->inputs()) {
      out << "  " << in_quotes(in.node->name()) << " -> " << in_quotes(node->name());
      if (in.index) out << " [label=" << in.index << ']';
      out << ";\n";
    }
    for (const Node* before : node->control_inputs()) {
      out << "  " << in_quotes(before->name()) << " -> " << in_quotes(node->name())
          << " [style=dashed];\n";
    }
  }
  out << "}\n";
  return std::move(out).str();
}

namespace {

constexpr double kLayerHeight = 84, kNodeHeight = 40, kGap = 18, kLetter = 6.6, kMargin = 40;

struct Box {
  const Node* node = nullptr;
  std::size_t layer = 0;
  double wanted = 0;  // where the inputs would have it
  double x = 0, width = 0;
};

// Every node one layer below its lowest input, and in each layer near its inputs.
class Layout {
 public:
  explicit Layout(const Graph& graph, const OpNames& names) {
    box_of_.assign(static_cast<std::size_t>(graph.id_limit()), -1);
    for (Node* node : graph.topological_order()) {
      if (node->kind() == NodeKind::kConst) continue;
      Box box;
      box.node = node;
      const auto letters = std::max(node->name().size(), names.of(*node).size());
      box.width = 20 + kLetter * static_cast<double>(std::min<std::size_t>(letters, kLetters));
      for_each_input(*node, [&](const Node& in, bool) {
        if (const Box* above = find(in)) box.layer = std::max(box.layer, above->layer + 1);
      });
      box_of_[static_cast<std::size_t>(node->id())] = static_cast<int>(boxes_.size());
      boxes_.push_back(box);
    }
    place();
  }

  static constexpr std::size_t kLetters = 28;
  const std::vector<Box>& boxes() const { return boxes_; }
  const Box* find(const Node& node) const {
    const int i = box_of_[static_cast<std::size_t>(node.id())];
    return i < 0 ? nullptr : &boxes_[static_cast<std::size_t>(i)];
  }
  double width() const { return width_; }
  double height() const { return static_cast<double>(layers_) * kLayerHeight + 2 * kMargin; }
  static double top(const Box& box) {
    return kMargin + static_cast<double>(box.layer) * kLayerHeight;
  }

  template <class See>
  static void for_each_input(const Node& node, See see) {
    for (const Output& in : node.inputs()) see(*in.node, false);
    for (const Node* before : node.control_inputs()) see(*before, true);
  }

 private:
  void place() {
    std::vector<std::vector<Box*>> layers;
    for (Box& box : boxes_) {
      if (box.layer >= layers.size()) layers.resize(box.layer + 1);
      layers[box.layer].push_back(&box);
    }
    layers_ = layers.size();
    for (auto& layer : layers) {
      for (Box* box : layer) {
        double sum = 0;
        int count = 0;
        for_each_input(*box->node, [&](const Node& in, bool) {
          const Box* above = find(in);
          if (!above || above->layer >= box->layer) return;
          sum += above->x + above->width / 2;
          ++count;
        });
        box->wanted = count ? sum / count : 0;
      }
      std::stable_sort(layer.begin(), layer.end(),
                       [](const Box* a, const Box* b) { return a->wanted < b->wanted; });
      double x = kMargin;
      for (Box* box : layer) {
        box->x = std::max(x, box->wanted - box->width / 2);
        x = box->x + box->width + kGap;
      }
      width_ = std::max(width_, x + kMargin);
    }
  }

  std::vector<Box> boxes_;
  std::vector<int> box_of_;
  std::size_t layers_ = 0;
  double width_ = 2 * kMargin;
};

std::string shortened(const std::string& name) {
  constexpr std::size_t kMost = Layout::kLetters;
  return name.size() <= kMost ? name : "…" + name.substr(name.size() - kMost + 1);
}

// What the page shows of a node that is pointed at.
std::string details(const Node& node, const OpNames& names) {
  std::string text = cat(node.name(), "\n", names.of(node), "\noutputs: ", outputs_text(node));
  for (const Output& in : node.inputs()) {
    text += cat("\ninput: ", in.node->name(), in.index ? cat(":", in.index) : "", "  ",
                in.node->output_dtype(in.index), in.node->output_shape(in.index));
  }
  for (const auto& [name, value] : node.attrs()) {
    if (name.starts_with("_")) continue;
    const std::string shown = value.to_string();
    text += cat("\n", name, " = ", shown.size() > 200 ? shown.substr(0, 200) + "…" : shown);
  }
  if (!node.requested_device().empty()) text += cat("\ndevice: ", node.requested_device());
  return text;
}

constexpr const char* kHead = R"(<style>
body { margin: 0; font: 12px sans-serif; background: #fbfbfa; color: #222; }
header { position: fixed; padding: 8px 12px; background: #ffffffd0; }
svg { width: 100vw; height: 100vh; cursor: grab; }
rect { fill: #e8eef8; stroke: #5878a8; rx: 4px; }
g.io rect { fill: #e4f4e4; stroke: #4a8a4a; }
g.bad rect { fill: #fbe4e4; stroke: #c03030; }
g.found rect { stroke-width: 3px; fill: #fff3c0; }
text { font-size: 11px; text-anchor: middle; pointer-events: none; }
text.op { fill: #667; font-size: 10px; }
path { fill: none; stroke: #8a94a4; }
path.control { stroke-dasharray: 4 3; stroke: #b0a080; }
</style>
)";

constexpr const char* kScript = R"(<script>
const svg = document.querySelector("svg"), view = document.querySelector("#view");
let x = 0, y = 0, scale = 1, from = null;
const show = () => view.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
svg.addEventListener("wheel", e => {
  e.preventDefault();
  const f = Math.exp(-e.deltaY / 600);
  x = e.clientX - (e.clientX - x) * f; y = e.clientY - (e.clientY - y) * f; scale *= f; show();
}, {passive: false});
svg.addEventListener("pointerdown", e => { from = [e.clientX - x, e.clientY - y]; });
window.addEventListener("pointermove", e => {
  if (from) { x = e.clientX - from[0]; y = e.clientY - from[1]; show(); }
});
window.addEventListener("pointerup", () => { from = null; });
document.querySelector("input").addEventListener("input", e => {
  const wanted = e.target.value.toLowerCase();
  for (const g of document.querySelectorAll("g.node"))
    g.classList.toggle("found",
        wanted !== "" && g.querySelector("title").textContent.toLowerCase().includes(wanted));
});
</script>
)";

void draw_edges(std::ostream& out, const Layout& layout) {
  for (const Box& box : layout.boxes()) {
    Layout::for_each_input(*box.node, [&](const Node& in, bool control) {
      const Box* above = layout.find(in);
      if (!above) return;
      const double x1 = above->x + above->width / 2, y1 = Layout::top(*above) + kNodeHeight;
      const double x2 = box.x + box.width / 2, y2 = Layout::top(box);
      const double bend = (kLayerHeight - kNodeHeight) / 2;
      out << "<path" << (control ? " class=\"control\"" : "") << " d=\"M" << x1 << ' ' << y1 << 'C'
          << x1 << ' ' << y1 + bend << ' ' << x2 << ' ' << y2 - bend << ' ' << x2 << ' ' << y2
          << "\"/>\n";
    });
  }
}

}  // namespace

std::string to_html(const io::ImportedGraph& imported, const std::string& title) {
  const OpNames names(imported);
  const Layout layout(*imported.graph, names);
  std::ostringstream out;
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>"
      << for_html(title) << "</title>\n"
      << kHead << "</head><body>\n<header>" << for_html(title) << " · "
      << imported.graph->num_nodes()
      << " nodes · <input placeholder=\"find\"> drag to move, wheel to zoom</header>\n<svg><g "
         "id=\"view\">\n";
  draw_edges(out, layout);
  for (const Box& box : layout.boxes()) {
    const Node& node = *box.node;
    const std::string& op = names.of(node);
    out << "<g class=\"node"
        << (!names.runs(node)       ? " bad"
            : node.inputs().empty() ? " io"
                                    : "")
        << "\"><title>" << for_html(details(node, names)) << "</title><rect x=\"" << box.x
        << "\" y=\"" << Layout::top(box) << "\" width=\"" << box.width << "\" height=\""
        << kNodeHeight << "\"/><text x=\"" << box.x + box.width / 2 << "\" y=\""
        << Layout::top(box) + 17 << "\">" << for_html(shortened(node.name()))
        << "</text><text class=\"op\" x=\"" << box.x + box.width / 2 << "\" y=\""
        << Layout::top(box) + 31 << "\">" << for_html(op) << "</text></g>\n";
  }
  out << "</g></svg>\n" << kScript << "</body></html>\n";
  return std::move(out).str();
}

}  // namespace tandem::cli
