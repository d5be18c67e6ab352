#include "tandem/data/stages/dataset_op.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/dataset_base.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::data {

Tensor DatasetBase::as_op() const {
  throw UnimplementedError(
      cat("A ", name(), " dataset cannot be made by an op: ",
          inputs().empty() ? "its elements come from this process." : "tf.data's ops have none."));
}

Tensor dataset_op(const char* op, const std::vector<Tensor>& inputs, const ElementSpec& spec,
                  AttrMap attrs, const char* types) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const TensorSpec& component : spec) {
    if (component.dtype == DType::kInvalid) {
      throw UnimplementedError(
          cat(op, ": the dtypes of the elements are not known without iterating."));
    }
    dtypes.push_back(component.dtype);
    shapes.push_back(component.shape);
  }
  attrs.set(types, std::move(dtypes));
  attrs.set("output_shapes", std::move(shapes));
  return raw_op(op, inputs, attrs).at(0);
}

Tensor dataset_op(const char* op, const Tensor& input, const char* function,
                  const ElementProgram& program, const std::vector<Tensor>& more,
                  const ElementSpec& spec, AttrMap attrs) {
  const std::vector<Tensor>& captured = program.function().captures();
  std::vector<Tensor> inputs{input};
  std::vector<DType> dtypes;
  for (const Tensor& tensor : captured) {
    inputs.push_back(tensor);
    dtypes.push_back(tensor.dtype());
  }
  inputs.insert(inputs.end(), more.begin(), more.end());
  attrs.set(function, program.function().function());
  attrs.set("Targuments", std::move(dtypes));
  return dataset_op(op, inputs, spec, std::move(attrs));
}

std::string deterministic_attr(std::optional<bool> deterministic) {
  if (!deterministic) return "default";
  return *deterministic ? "true" : "false";
}

}  // namespace tandem::data
