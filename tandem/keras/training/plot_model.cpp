#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/keras/internal/functional.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/model_impl.h"
#include "tandem/keras/utils.h"

namespace tandem::keras::utils {
namespace {

// A layer as it is drawn, and the layers that its inputs come from.
struct Box {
  std::vector<std::string> lines;
  std::vector<std::size_t> from;
  int level = 0;   // one more than the highest of those above
  int column = 0;  // among the boxes of its level
};

std::vector<std::string> text_of(const LayerImpl& layer, const PlotOptions& o) {
  std::vector<std::string> lines;
  if (o.show_layer_names) lines.push_back(layer.name());
  lines.push_back(layer.class_name());
  const auto& shapes = layer.output_shapes();
  if (o.show_shapes && !shapes.empty()) lines.push_back(internal::shape_text(shapes.front()));
  if (o.show_dtype) lines.push_back(standardize_dtype(layer.compute_dtype()));
  return lines;
}

std::vector<Box> boxes_of(const Model& model, const PlotOptions& o) {
  std::vector<Box> boxes;
  const auto* functional = dynamic_cast<const internal::FunctionalImpl*>(&model.model_impl());
  if (functional) {
    std::map<const internal::CallNode*, std::size_t> places;
    for (const auto& node : functional->graph().nodes()) {
      Box box{.lines = text_of(*node->layer, o)};
      for (const KerasTensor& input : node->sources()) {
        const auto found = places.find(input.node().get());
        if (found == places.end()) continue;
        box.from.push_back(found->second);
        box.level = std::max(box.level, boxes[found->second].level + 1);
      }
      places[node.get()] = boxes.size();
      boxes.push_back(std::move(box));
    }
  } else {
    for (const Layer& layer : model.layers()) {
      Box box{.lines = text_of(*layer.impl(), o), .level = static_cast<int>(boxes.size())};
      if (!boxes.empty()) box.from = {boxes.size() - 1};
      boxes.push_back(std::move(box));
    }
  }
  std::map<int, int> used;
  for (Box& box : boxes) box.column = used[box.level]++;
  return boxes;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string svg_of(const std::vector<Box>& boxes, const PlotOptions& o) {
  constexpr int kCharacter = 8, kLine = 18, kMargin = 12, kGap = 36;
  int width = 0, height = 0, levels = 0;
  std::map<int, int> columns;
  for (const Box& box : boxes) {
    for (const std::string& line : box.lines)
      width = std::max(width, kCharacter * static_cast<int>(line.size()) + 2 * kMargin);
    height = std::max(height, kLine * static_cast<int>(box.lines.size()) + kMargin);
    levels = std::max(levels, box.level + 1);
    columns[box.level] = std::max(columns[box.level], box.column + 1);
  }
  int most = 1;
  for (const auto& [level, count] : columns) most = std::max(most, count);
  const bool down = o.rankdir != "LR";
  const int step_x = width + kGap, step_y = height + kGap;
  const int across = (down ? most * step_x : levels * step_x) + kGap;
  const int along = (down ? levels * step_y : most * step_y) + kGap;
  const auto left = [&](const Box& b) { return kGap + (down ? b.column : b.level) * step_x; };
  const auto top = [&](const Box& b) { return kGap + (down ? b.level : b.column) * step_y; };
  std::string svg = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", across * o.dpi / 96,
                        "\" height=\"", along * o.dpi / 96, "\" viewBox=\"0 0 ", across, " ", along,
                        "\" font-family=\"monospace\" font-size=\"13\">\n",
                        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  for (const Box& box : boxes) {
    for (const std::size_t i : box.from) {
      const Box& above = boxes[i];
      svg += cat("<line x1=\"", left(above) + (down ? width / 2 : width), "\" y1=\"",
                 top(above) + (down ? height : height / 2), "\" x2=\"",
                 left(box) + (down ? width / 2 : 0), "\" y2=\"", top(box) + (down ? 0 : height / 2),
                 "\" stroke=\"#555\"/>\n");
    }
  }
  for (const Box& box : boxes) {
    svg += cat("<rect x=\"", left(box), "\" y=\"", top(box), "\" width=\"", width, "\" height=\"",
               height, "\" rx=\"4\" fill=\"#eef3fa\" stroke=\"#37557a\"/>\n");
    for (std::size_t i = 0; i < box.lines.size(); ++i) {
      svg += cat("<text x=\"", left(box) + width / 2, "\" y=\"",
                 top(box) + kLine * (static_cast<int>(i) + 1), "\" text-anchor=\"middle\">",
                 escaped(box.lines[i]), "</text>\n");
    }
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string model_to_dot(const Model& model, const PlotOptions& options) {
  const std::vector<Box> boxes = boxes_of(model, options);
  std::string dot = cat("digraph model {\n  rankdir=", options.rankdir, "; node [shape=box];\n");
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    std::string label;
    for (const std::string& line : boxes[i].lines) label += (label.empty() ? "" : "\\n") + line;
    dot += cat("  n", i, " [label=\"", label, "\"];\n");
    for (const std::size_t from : boxes[i].from) dot += cat("  n", from, " -> n", i, ";\n");
  }
  return dot + "}\n";
}

void plot_model(const Model& model, const String& to_file, const PlotOptions& options) {
  fs::AtomicFile file(to_file);
  file.append(to_file.ends_with(".dot") ? model_to_dot(model, options)
                                        : svg_of(boxes_of(model, options), options));
  file.finish();
}

}  // namespace tandem::keras::utils
