#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// The inputs or labels of a model: one tensor, or several in braces, `{images, captions}`.
class TensorList {
 public:
  TensorList() = default;
  TensorList(Tensor tensor) : tensors_{std::move(tensor)} {}
  TensorList(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}
  TensorList(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  bool empty() const { return tensors_.empty(); }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace tandem::keras
