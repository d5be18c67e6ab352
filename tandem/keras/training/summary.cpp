#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tandem/core/error.h"
#include "tandem/keras/internal/box_table.h"
#include "tandem/keras/internal/functional.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/model.h"
#include "tandem/keras/model_impl.h"

namespace tandem::keras {
namespace {

using internal::BoxTable;
using internal::CallGraph;

int terminal_columns() {
  if (const char* columns = std::getenv("COLUMNS")) {
    const int value = std::atoi(columns);
    if (value > 0) return value;
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

// "1,234,567"
std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string size_text(double bytes) {
  static const char* const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f %s", bytes, units[unit]);
  return text;
}

struct Amount {
  std::int64_t numbers = 0;
  double bytes = 0;

  void add(const Variable& variable) {
    const std::int64_t count = variable.shape().num_elements();
    numbers += count;
    bytes += static_cast<double>(count) * static_cast<double>(dtype_size(variable.dtype()));
  }
  std::string text() const { return grouped(numbers) + " (" + size_text(bytes) + ")"; }
};

std::string output_shape_text(const LayerImpl& layer) {
  if (const auto* model = dynamic_cast<const internal::FunctionalImpl*>(&layer);
      model && layer.output_shapes().empty()) {
    std::vector<std::string> shapes;
    for (const KerasTensor& t : model->graph().outputs())
      shapes.push_back(internal::shape_text(t.shape()));
    return shapes.size() == 1 ? shapes[0] : "[" + internal::join(shapes) + "]";
  }
  const auto& shapes = layer.output_shapes();
  if (shapes.empty()) return "?";
  if (shapes.size() == 1) return internal::shape_text(shapes[0]);
  std::vector<std::string> texts;
  for (const PartialShape& shape : shapes) texts.push_back(internal::shape_text(shape));
  return "[" + internal::join(texts) + "]";
}

// "dense[0][0], add[0][0]": where a layer's inputs come from, within this model.
std::string connections(const LayerImpl& layer, const CallGraph& graph) {
  std::vector<std::string> words;
  for (const auto& node : graph.nodes()) {
    if (node->layer.get() != &layer) continue;
    for (const KerasTensor& input : node->sources()) {
      words.push_back(cat(input.name(), "[", input.node()->index, "][", input.index(), "]"));
    }
  }
  return words.empty() ? "-" : internal::join(words);
}

class SummaryTable {
 public:
  SummaryTable(const SummaryOptions& options, const CallGraph* graph)
      : options_(options), graph_(graph) {}

  std::string text(const std::vector<Layer>& layers) {
    std::vector<BoxTable::Column> wanted = columns();
    BoxTable table(std::move(wanted), length_);
    for (const Layer& layer : layers) add(table, *layer.impl(), 0);
    return table.to_string();
  }

 private:
  std::vector<BoxTable::Column> columns() {
    std::vector<BoxTable::Column> columns{
        {"Layer (type)", 'l'}, {"Output Shape", 'l'}, {"Param #", 'r'}};
    std::vector<double> ends{0.45, 0.80, 1.0};
    int length = 88;
    if (graph_) {
      columns.push_back({"Connected to", 'l'});
      ends = {0.3, 0.56, 0.74, 1.0};
      length = 108;
    }
    if (options_.show_trainable) {
      columns.push_back({"Trainable", 'c'});
      for (double& end : ends) end *= 0.90;
      ends.push_back(1.0);
      length += 12;
    }
    length_ =
        options_.line_length > 0 ? options_.line_length : std::min(length, terminal_columns() - 4);
    int before = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      columns[i].width = static_cast<int>(ends[i] * length_) - before;
      before += columns[i].width;
      if (columns[i].width < 4) {
        throw InvalidArgumentError(
            cat("Insufficient width to print a summary: ", length_, " places."));
      }
    }
    return columns;
  }

  void add(BoxTable& table, const LayerImpl& layer, int level) {
    std::string prefix;
    for (int i = 0; i < level; ++i) prefix += "   ";
    if (level > 0) prefix += "└ ";
    std::int64_t numbers = 0;
    const std::vector<LayerImpl::Weight> weights = layer.collect_weights();
    for (const LayerImpl::Weight& w : weights) numbers += w.variable.shape().num_elements();
    std::vector<std::string> cells{prefix + layer.name() + " (" + layer.class_name() + ")",
                                   output_shape_text(layer),
                                   layer.built() ? grouped(numbers) : "0 (unbuilt)"};
    if (graph_) cells.push_back(connections(layer, *graph_));
    if (options_.show_trainable)
      cells.push_back(weights.empty() ? "-" : layer.trainable() ? "Y" : "N");
    table.add_row(std::move(cells));
    const auto* model = dynamic_cast<const ModelImpl*>(&layer);
    if (!options_.expand_nested || !model) return;
    for (const Layer& inner : model->layers()) add(table, *inner.impl(), level + 1);
  }

  SummaryOptions options_;
  const CallGraph* graph_;  // null: layers in a row
  int length_ = 0;
};

}  // namespace

std::string Model::summary_text(const SummaryOptions& options) const {
  ModelImpl& model = model_impl();
  const auto* functional = dynamic_cast<const internal::FunctionalImpl*>(&model);
  const CallGraph* graph =
      functional && !functional->graph().is_chain() ? &functional->graph() : nullptr;
  std::string text = "Model: \"" + name() + "\"\n" + SummaryTable(options, graph).text(layers());

  Amount trainable, fixed, optimizer;
  for (const LayerImpl::Weight& w : model.collect_weights())
    (w.trainable ? trainable : fixed).add(w.variable);
  bool optimizer_built = false;
  if (model.trainer()) {
    const Optimizer& used = model.trainer()->optimizer();
    optimizer_built = used.impl()->built();
    if (optimizer_built) {
      for (const Variable& v : used.variables()) optimizer.add(v);
    }
  }
  const Amount total{trainable.numbers + fixed.numbers + optimizer.numbers,
                     trainable.bytes + fixed.bytes + optimizer.bytes};
  text += " Total params: " + total.text() + "\n Trainable params: " + trainable.text() +
          "\n Non-trainable params: " + fixed.text() + "\n";
  if (optimizer_built) text += " Optimizer params: " + optimizer.text() + "\n";
  return text;
}

}  // namespace tandem::keras
