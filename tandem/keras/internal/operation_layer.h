#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/keras/internal/operations.h"
#include "tandem/keras/keras_tensor_ops.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras::internal {

/// What a function of tensors is where it is called with KerasTensors (`x * 2.0`,
/// `reduce_mean(x)`): a step of a functional model without weights. Its class has Keras' name of
/// the operation, which a layer may have too ("Multiply"), so files distinguish them by this type.
class OperationImpl final : public LayerImpl {
 public:
  /// `saved`: what files have of it; none if it has no form there.
  OperationImpl(const std::string& class_name, Operation operation,
                std::optional<SavedOperation> saved, const std::string& name = "")
      : LayerImpl(class_name, {.name = name}),
        operation_(std::move(operation)),
        saved_(std::move(saved)) {
    without_weights();
    keep_dtypes();
  }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    return operation_(std::vector<Tensor>(inputs.begin(), inputs.end()));
  }
  const std::optional<SavedOperation>& saved() const { return saved_; }

 private:
  Operation operation_;
  std::optional<SavedOperation> saved_;
};

}  // namespace tandem::keras::internal
