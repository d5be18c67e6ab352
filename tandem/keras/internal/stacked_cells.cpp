#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/rnn_impl.h"
#include "tandem/keras/layers/recurrent_cells.h"

namespace tandem::keras::internal {

StackedCellsImpl::StackedCellsImpl(const std::vector<Layer>& cells, const std::string& name)
    : RNNCellImpl("StackedRNNCells", {.name = name}), layers_(cells) {
  if (cells.empty()) throw InvalidArgumentError("StackedRNNCells: give it at least one cell.");
  for (const Layer& layer : cells) {
    cells_.push_back(std::dynamic_pointer_cast<RNNCellImpl>(layer.impl()));
    if (!cells_.back()) {
      throw InvalidArgumentError(
          cat("StackedRNNCells: all must be cells such as LSTMCell, or of a ",
              "class derived from RNNCellImpl. Received: ", layer.describe(), "."));
    }
    add_layer(layer);
  }
}

void StackedCellsImpl::build(const PartialShape& input) {
  PartialShape shape = input;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    build_sublayer(layers_[i], {shape});
    std::vector<std::int64_t> sizes{input.dim(0)};
    const Shape output = cells_[i]->output_shape();
    for (int d = 0; d < output.rank(); ++d) sizes.push_back(output.dim(d));
    shape = PartialShape(sizes);
  }
}

std::vector<std::int64_t> StackedCellsImpl::state_sizes() const {
  std::vector<std::int64_t> all;
  for (const auto& cell : cells_) {
    for (const std::int64_t size : cell->state_sizes()) all.push_back(size);
  }
  return all;
}

std::vector<Shape> StackedCellsImpl::state_shapes() const {
  std::vector<Shape> all;
  for (const auto& cell : cells_) {
    for (const Shape& shape : cell->state_shapes()) all.push_back(shape);
  }
  return all;
}

std::vector<Tensor> StackedCellsImpl::call_many(std::span<const Tensor> inputs,
                                                const CallOptions& options) {
  if (inputs.size() != state_sizes().size() + 1) {
    throw InvalidArgumentError(cat(prefix(), "takes the inputs and ", state_sizes().size(),
                                   " states, but was called with ", inputs.size(), " tensors."));
  }
  std::vector<Tensor> results{inputs[0]};
  std::size_t at = 1;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    std::vector<Tensor> given{results[0]};
    for (std::size_t n = cells_[i]->state_sizes().size(); n > 0; --n) given.push_back(inputs[at++]);
    const std::vector<Tensor> found = layers_[i].outputs(given, options);
    results[0] = found[0];
    results.insert(results.end(), found.begin() + 1, found.end());
  }
  return results;
}

// For a layer around that does not take the stack apart.
std::vector<Tensor> StackedCellsImpl::step(const Tensor& projected, std::span<const Tensor> states,
                                           std::span<const Tensor>) {
  std::vector<Tensor> inputs{projected};
  inputs.insert(inputs.end(), states.begin(), states.end());
  return call_many(inputs, {});
}

Layer StackedCellsImpl::copy() const {
  std::vector<Layer> copies;
  for (const auto& cell : cells_) copies.push_back(cell->copy());
  return Layer(std::make_shared<StackedCellsImpl>(copies, name()));
}

}  // namespace tandem::keras::internal

namespace tandem::keras {

namespace {

constexpr auto kArguments = [](auto& a, auto&, auto& cells) { a("cells", cells); };

}  // namespace

StackedRNNCells::StackedRNNCells(const std::vector<Layer>& cells, const NamedOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<internal::StackedCellsImpl>(cells, options.name), kArguments, options,
          cells)) {}

namespace {

const bool kRegistered =
    internal::register_layer_class<StackedRNNCells, NamedOptions, std::vector<Layer>>(
        "StackedRNNCells", kArguments);

}  // namespace

}  // namespace tandem::keras
