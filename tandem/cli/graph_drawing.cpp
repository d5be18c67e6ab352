#include "tandem/cli/graph_drawing.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/graph_picture.h"

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

constexpr const char* kPageStyle =
    R"(body { margin: 0; font: 12px sans-serif; background: #fbfbfa; color: #222; }
header { position: fixed; padding: 8px 12px; background: #ffffffd0; }
svg.graph { width: 100vw; height: 100vh; }
svg.graph .io { --node: #e4f4e4; --node-line: #4a8a4a; }
svg.graph .bad { --node: #fbe4e4; --node-line: #c03030; }
)";

// Nodes that follow from constants alone: weights as a frozen model has them, and what is made of
// them. They would fill the first rows, and are not drawn where anything else is.
std::vector<bool> constants_of(const std::vector<Node*>& nodes, int id_limit) {
  std::vector<bool> constant(static_cast<std::size_t>(id_limit));
  const auto is = [&](const Node* node) { return constant[static_cast<std::size_t>(node->id())]; };
  bool other = false;
  for (const Node* node : nodes) {
    const auto& inputs = node->inputs();
    const bool follows =
        node->kind() == NodeKind::kConst ||
        (node->kind() == NodeKind::kPlain && !node->op().traits.stateful && !inputs.empty() &&
         std::all_of(inputs.begin(), inputs.end(), [&](const Output& in) { return is(in.node); }));
    constant[static_cast<std::size_t>(node->id())] = follows;
    other = other || (!follows && !inputs.empty());
  }
  for (const Node* node : nodes) {
    if (!other) constant[static_cast<std::size_t>(node->id())] = node->kind() == NodeKind::kConst;
  }
  return constant;
}

GraphPicture picture_of(const io::ImportedGraph& imported, const OpNames& names) {
  GraphPicture picture;
  std::vector<int> number(static_cast<std::size_t>(imported.graph->id_limit()), -1);
  const auto of = [&](const Node* node) { return number[static_cast<std::size_t>(node->id())]; };
  const std::vector<Node*> nodes = imported.graph->topological_order();
  const std::vector<bool> constant = constants_of(nodes, imported.graph->id_limit());
  for (const Node* node : nodes) {
    // A node that cannot run is shown in any case.
    if (constant[static_cast<std::size_t>(node->id())] && names.runs(*node)) continue;
    GraphPicture::Node drawn{node->name(),
                             names.of(*node),
                             details(*node, names),
                             !names.runs(*node)       ? "bad"
                             : node->inputs().empty() ? "io"
                                                      : "",
                             {},
                             {}};
    for (const Output& in : node->inputs()) {
      if (of(in.node) >= 0) drawn.inputs.push_back(of(in.node));
    }
    for (const Node* before : node->control_inputs()) {
      if (of(before) >= 0) drawn.controls.push_back(of(before));
    }
    number[static_cast<std::size_t>(node->id())] = picture.add(std::move(drawn));
  }
  return picture;
}

}  // namespace

std::string to_html(const io::ImportedGraph& imported, const std::string& title) {
  const GraphPicture picture = picture_of(imported, OpNames(imported));
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
      escape_html(title), "</title>\n<style>\n", GraphPicture::style(), kPageStyle,
      "</style></head><body>\n<header>", escape_html(title), " · ", imported.graph->num_nodes(),
      imported.graph->num_nodes() == 1 ? " node" : " nodes",
      ", drawn without what follows from constants alone · <input class=\"find\" "
      "placeholder=\"find, Enter goes there\"> <button class=\"fit\">fit</button> click a group to "
      "open or close it, drag to move, wheel to zoom</header>\n",
      picture.svg(), "<script>", GraphPicture::script(), "</script></body></html>\n");
}

}  // namespace tandem::cli
