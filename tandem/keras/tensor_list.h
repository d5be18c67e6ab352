#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// The inputs or labels of a model: one tensor, several in braces (`{images, captions}`), or by the
/// names of the model's inputs or outputs: `{{"image", images}, {"age", ages}}`.
class TensorList {
 public:
  TensorList() = default;
  TensorList(Tensor tensor) : tensors_{std::move(tensor)} {}
  TensorList(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}
  TensorList(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  TensorList(const std::map<std::string, Tensor>& tensors) {
    for (const auto& [name, tensor] : tensors) add(name, tensor);
  }
  TensorList(std::initializer_list<std::pair<const std::string, Tensor>> tensors) {
    for (const auto& [name, tensor] : tensors) add(name, tensor);
  }

  bool empty() const { return tensors_.empty(); }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// One for each tensor if they were given by name; else empty.
  const std::vector<std::string>& names() const { return names_; }

 private:
  void add(const std::string& name, const Tensor& tensor) {
    names_.push_back(name);
    tensors_.push_back(tensor);
  }

  std::vector<Tensor> tensors_;
  std::vector<std::string> names_;
};

}  // namespace tandem::keras
