#include "tandem/keras/keras_tensor.h"

#include "tandem/keras/internal/call_node.h"
#include "tandem/keras/layers/input_layer.h"

namespace tandem::keras {

KerasTensor::KerasTensor(std::shared_ptr<internal::CallNode> node, int index, PartialShape shape,
                         DType dtype)
    : node_(std::move(node)), index_(index), shape_(std::move(shape)), dtype_(dtype) {}

const std::string& KerasTensor::name() const { return node_->layer->name(); }

KerasTensor Input(const PartialShape& shape, const InputOptions& options) {
  return InputLayer(shape, options).output();
}

}  // namespace tandem::keras
