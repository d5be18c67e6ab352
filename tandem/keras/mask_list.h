#pragma once

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/tensor_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// The masks that a layer is called with: one by itself, or in braces one for each input.
///
/// A call with tensors takes tensors; an undefined one stands for an input without a mask. A call
/// with KerasTensors takes KerasTensors, which become inputs of the layer in the model; where one
/// is std::nullopt, the mask that comes with that input counts.
class MaskList {
 public:
  MaskList() = default;
  MaskList(Tensor mask) : tensors_{std::move(mask)} {}
  MaskList(std::initializer_list<Tensor> masks) : tensors_(masks) {}
  MaskList(std::vector<Tensor> masks) : tensors_(std::move(masks)) {}
  MaskList(const TensorList& masks) : tensors_(masks.tensors()) {}
  MaskList(KerasTensor mask) { keras_tensors_.emplace_back(std::move(mask)); }
  MaskList(std::initializer_list<std::optional<KerasTensor>> masks) : keras_tensors_(masks) {}
  MaskList(std::vector<std::optional<KerasTensor>> masks) : keras_tensors_(std::move(masks)) {}

  bool empty() const { return tensors_.empty() && keras_tensors_.empty(); }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<std::optional<KerasTensor>>& keras_tensors() const { return keras_tensors_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::optional<KerasTensor>> keras_tensors_;
};

}  // namespace tandem::keras
