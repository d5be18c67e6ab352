// Models of Keras as `model.export` of Keras writes them.

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/model_impl.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/trace.h"
#include "tandem/saved_model/internal/concrete.h"
#include "tandem/saved_model/save.h"

namespace tandem::saved_model {
namespace {

using keras::KerasTensor;

// What `predict` computes; sizes that the inputs leave open stay open.
ConcreteFunction trace_serve(const keras::Model& model, const std::vector<KerasTensor>& inputs) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const KerasTensor& input : inputs) {
    dtypes.push_back(input.dtype());
    shapes.push_back(input.shape());
  }
  const TraceScope outside(nullptr);
  return trace_function("serve", dtypes, shapes, [&](std::span<const Tensor> x) {
    return model.model_impl().run(std::vector<Tensor>(x.begin(), x.end()),
                                  keras::CallOptions{.training = false});
  });
}

// Keras calls it with one argument, which is a list where there are several inputs.
Function function_of_inputs(const ConcreteFunction& trace, const Names& names) {
  const auto structure = [](std::vector<TensorSpec> specs) {
    return specs.size() == 1 ? Value(specs[0]) : Value::list({specs.begin(), specs.end()});
  };
  const Signature flat(trace, names);
  auto concrete = std::make_shared<internal::Concrete>();
  concrete->name = trace.name();
  concrete->inputs = Value::tuple({Value::tuple({structure(flat.inputs())}), Value::dict({})});
  concrete->outputs = structure(flat.outputs());
  concrete->make = [trace] { return trace; };
  concrete->name_specs();
  return Function(ArgSpec{.args = {"args_0"}}, {concrete});
}

}  // namespace

Module module_of(const keras::Model& model) {
  const std::vector<KerasTensor> inputs = model.model_impl().input_tensors();
  if (inputs.empty()) {
    throw FailedPreconditionError(
        cat("The inputs of model '", model.name(),
            "' are not known. Build it, or, if it is of a class ",
            "of your own, call it with Input(…) and save the Model of that input and its result."));
  }
  Names names;
  for (const KerasTensor& input : inputs) names.inputs.push_back(input.name());
  const ConcreteFunction serve = trace_serve(model, inputs);
  Module module;
  module.set("variables", model.variables());
  module.set("trainable_variables", model.trainable_variables());
  module.set("non_trainable_variables", model.non_trainable_variables());
  module.set("serve", function_of_inputs(serve, names));
  module.set_signature("serve", Signature(serve, names));
  module.set_signature("serving_default", Signature(serve, names));
  return module;
}

void save(const keras::Model& model, const String& folder, const SaveOptions& options) {
  save(module_of(model), folder, options);
}

}  // namespace tandem::saved_model
