#include "tandem/keras/layers/input_layer.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/call_node.h"
#include "tandem/keras/internal/input_layer_impl.h"
#include "tandem/keras/internal/shape_text.h"

namespace tandem::keras {
namespace internal {
namespace {

PartialShape with_batch(const PartialShape& shape, std::int64_t batch) {
  if (!shape.has_rank()) {
    throw InvalidArgumentError(
        "Input needs a shape, for example Input({28, 28, 1}); sizes that vary are -1.");
  }
  if (batch < -1 || batch == 0) {
    throw InvalidArgumentError(
        cat("Input: batch_size must be positive, or -1 for any, got ", batch, "."));
  }
  std::vector<std::int64_t> dims{batch};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return PartialShape(std::move(dims));
}

}  // namespace

InputLayerImpl::InputLayerImpl(const PartialShape& shape, const InputOptions& options)
    : LayerImpl("InputLayer", {.name = options.name}),
      shape_(with_batch(shape, options.batch_size)),
      dtype_(options.dtype) {
  keep_dtypes();
  without_weights();
  show_output_shapes({shape_});
}

Tensor InputLayerImpl::call(const Tensor& input, bool) { return input; }

KerasTensor InputLayerImpl::output() {
  auto node = node_.lock();
  if (!node) {
    node = std::make_shared<CallNode>();
    node->layer = shared_from_this();
    node_ = node;
  }
  return KerasTensor(node, 0, shape_, dtype_);
}

std::vector<KerasTensor> InputLayerImpl::symbolic_outputs() const {
  if (const auto node = node_.lock()) return {KerasTensor(node, 0, shape_, dtype_)};
  return {};
}

}  // namespace internal

InputLayer::InputLayer(const PartialShape& shape, const InputOptions& options)
    : Layer(std::make_shared<internal::InputLayerImpl>(shape, options)) {}

KerasTensor InputLayer::output() const {
  return static_cast<internal::InputLayerImpl&>(*impl()).output();
}

}  // namespace tandem::keras
