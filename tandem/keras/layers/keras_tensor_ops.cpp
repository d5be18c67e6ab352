#include "tandem/keras/keras_tensor_ops.h"

#include "tandem/keras/internal/operation_layer.h"

namespace tandem::keras::internal {
namespace {

// "reduce_mean" as Keras names classes: "ReduceMean".
std::string class_name_of(const std::string& name) {
  std::string text;
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    text += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  return text;
}

}  // namespace

std::vector<KerasTensor> operate(const std::string& name, Operation operation,
                                 const std::vector<KerasTensor>& inputs) {
  return make_layer<OperationImpl>(class_name_of(name), std::move(operation)).outputs(inputs);
}

}  // namespace tandem::keras::internal
