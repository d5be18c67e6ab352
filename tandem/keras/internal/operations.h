#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/keras/config.h"
#include "tandem/keras/internal/operation_arguments.h"
#include "tandem/keras/keras_tensor_ops.h"

namespace tandem::keras::internal {

/// A call of one of Keras' operations (keras.ops), as files have it between the layers of a model.
struct SavedOperation {
  std::string class_name;              ///< "Mean"
  std::string module;                  ///< "keras.src.ops.numpy"
  Config config;                       ///< what the operation is made with: axis, keepdims
  std::vector<ConfigValue> arguments;  ///< what it is called with; inputs as input_argument(i)
};

/// Keras' class of the operation that the function `name` is: "Mean" for "reduce_mean".
std::string operation_class(const std::string& name);

/// The operation of Keras that the function `name` ("reduce_mean") is with these arguments; none if
/// Keras has none that computes the same of inputs of `dtype`.
std::optional<SavedOperation> saved_operation(const std::string& name,
                                              const std::vector<SavedArgument>& arguments,
                                              DType dtype);

/// What the operation computes. Throws UnimplementedError for one that Tandem does not have, and
/// InvalidArgumentError for arguments that do not fit.
Operation operation_of(const SavedOperation& saved);

}  // namespace tandem::keras::internal
