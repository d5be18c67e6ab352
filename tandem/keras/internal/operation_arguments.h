#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/keras/config.h"
#include "tandem/ops/axes.h"
#include "tandem/ops/operand.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Stands for input `index` of a call among an operation's arguments.
ConfigValue input_argument(std::size_t index);
/// The index of the input that `value` stands for, if it stands for one.
std::optional<std::size_t> input_index(const ConfigValue& value);

/// A tensor as Keras' files have it, and back; none for what is none.
ConfigValue tensor_value(const Tensor& tensor);
std::optional<Tensor> tensor_of_value(const ConfigValue& value);

/// A dtype as Keras names it: "float32".
ConfigValue dtype_value(DType dtype);

/// Entries of brackets, as Keras' files have them; none where one is a tensor.
std::optional<ConfigValue> index_value(const std::vector<Index>& entries);

/// The arguments of an operation of Keras by their positions, those that it is made with behind
/// those that it is called with. The accessors throw InvalidArgumentError for a value of another
/// kind; `optional` ones are empty for None.
class OperationArguments {
 public:
  /// Texts, lists and constants are read once, here.
  explicit OperationArguments(std::vector<ConfigValue> values);

  /// With the inputs of a call, which outlives the result.
  OperationArguments with_inputs(const std::vector<Tensor>& inputs) const {
    OperationArguments bound = *this;
    bound.inputs_ = &inputs;
    return bound;
  }

  Operand operand(std::size_t i) const;
  Tensor tensor(std::size_t i) const;
  std::vector<Tensor> tensors(std::size_t i) const;
  Axes axes(std::size_t i) const;
  std::optional<std::int64_t> optional_integer(std::size_t i) const;
  std::int64_t integer(std::size_t i) const;
  std::optional<double> optional_number(std::size_t i) const;
  double number(std::size_t i) const;
  bool flag(std::size_t i) const;
  std::vector<std::int64_t> integers(std::size_t i) const;
  DType dtype(std::size_t i) const;
  std::vector<Index> index(std::size_t i) const;

 private:
  const Tensor& input(std::size_t index) const;
  [[noreturn]] void wrong(std::size_t i, const char* wanted) const;

  std::vector<ConfigValue> values_;
  std::vector<std::optional<Tensor>> constants_;  // of values that are tensors
  const std::vector<Tensor>* inputs_ = nullptr;
};

}  // namespace tandem::keras::internal
