// Optionals, in which the branches of a conditional of TensorFlow keep what its gradient needs.
// Called by name alone.

#include <vector>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void get_value_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  const auto& shapes = c.attr<std::vector<PartialShape>>("output_shapes");
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    c.fail(cat("output_types and output_shapes must be same length, got ", c.num_outputs(), " and ",
               shapes.size(), "."));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<std::size_t>(i)]);
}

void has_value_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.set_output(0, PartialShape::scalar());
}

void fake_param_shape(InferenceContext& c) { c.set_output(0, c.attr<PartialShape>("shape")); }

// The gradient of an optional is an optional of gradients.
void from_value_gradient(GradientContext& g) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (int i = 0; i < g.num_inputs(); ++i) {
    dtypes.push_back(g.input(i).dtype());
    shapes.push_back(g.input(i).partial_shape());
  }
  const std::vector<Tensor> grads =
      raw_op("OptionalGetValue", {g.grad()}, {{"output_types", dtypes}, {"output_shapes", shapes}});
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (g.needs(i)) g.set(i, grads[static_cast<std::size_t>(i)]);
  }
}

void get_value_gradient(GradientContext& g) {
  std::vector<Tensor> grads;
  for (int i = 0; i < g.num_outputs(); ++i) grads.push_back(g.grad(i));
  g.set(0, raw_op("OptionalFromValue", grads)[0]);
}

const OpRegistration kFromValue{{
    .name = "OptionalFromValue",
    .inputs = "components: Toutput_types",
    .outputs = "optional: variant",
    .attrs = "Toutput_types: list(type) >= 1",
    .shape = shapes::scalar,
    .gradient = from_value_gradient,
    .traits = {.retains_inputs = ~0u},
    .doc = "An optional that holds these values.",
}};

const OpRegistration kNone{{
    .name = "OptionalNone",
    .outputs = "optional: variant",
    .shape = shapes::scalar,
    .gradient = not_differentiable,
    .doc = "An optional that holds nothing.",
}};

const OpRegistration kHasValue{{
    .name = "OptionalHasValue",
    .inputs = "optional: variant",
    .outputs = "has_value: bool",
    .shape = has_value_shape,
    .gradient = not_differentiable,
    .traits = {.host_outputs = 1},
    .doc = "Whether the optional holds values.",
}};

const OpRegistration kGetValue{{
    .name = "OptionalGetValue",
    .inputs = "optional: variant",
    .outputs = "components: output_types",
    .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
    .shape = get_value_shape,
    .gradient = get_value_gradient,
    .traits = {.owns_output_memory = ~0u},
    .doc = "The values that the optional holds; an error if there are none or others than the "
           "attributes say.",
}};

const OpRegistration kFakeParam{{
    .name = "FakeParam",
    .outputs = "output: dtype",
    .attrs = "dtype: type; shape: shape",
    .shape = fake_param_shape,
    .gradient = not_differentiable,
    .doc = "Stands where only another branch of a conditional makes a value; it is never read. "
           "Unknown sizes are 0.",
}};

}  // namespace
}  // namespace tandem
