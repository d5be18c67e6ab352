#pragma once

#include <vector>

#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras::internal {

class InputLayerImpl final : public LayerImpl {
 public:
  InputLayerImpl(const PartialShape& shape, const InputOptions& options);

  Tensor call(const Tensor& input, bool training) override;
  void describe(Config& config) const override;
  /// The tensor that stands for what will be fed.
  KerasTensor output();
  std::vector<KerasTensor> symbolic_inputs() const override { return symbolic_outputs(); }
  std::vector<KerasTensor> symbolic_outputs() const override;
  /// With the batch axis.
  const PartialShape& batch_shape() const { return shape_; }

 private:
  PartialShape shape_;
  DType dtype_;
  std::weak_ptr<CallNode> node_;
};

}  // namespace tandem::keras::internal
