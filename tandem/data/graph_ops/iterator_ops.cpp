// tf.data's ops for iterators. The optional values that they give are those of
// ops/state/optional_ops.cpp.

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

#define TANDEM_SPEC "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"

void components_shape(InferenceContext& c) {
  const auto& shapes = c.attr<std::vector<PartialShape>>("output_shapes");
  for (int i = 0; i < c.num_outputs() && i < static_cast<int>(shapes.size()); ++i)
    c.set_output(i, shapes[static_cast<std::size_t>(i)]);
}

void scalars(InferenceContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::scalar());
}

OpDecl iterator(const char* name, const char* outputs, const char* attrs, const char* doc) {
  return {.name = name,
          .outputs = outputs,
          .attrs = attrs,
          .shape = scalars,
          .gradient = not_differentiable,
          .traits = {.stateful = true, .cpu_only = true},
          .doc = doc};
}
const OpRegistration kAnonymous(iterator("AnonymousIteratorV3", "handle: resource", TANDEM_SPEC,
                                         "An iterator that its handle keeps alive."));
const OpRegistration kAnonymousV2(iterator("AnonymousIteratorV2",
                                           "handle: resource, deleter: variant", TANDEM_SPEC,
                                           "As AnonymousIteratorV3; the deleter is empty."));
const OpRegistration kNamed(iterator("IteratorV2", "handle: resource",
                                     "shared_name: string; container: string; " TANDEM_SPEC,
                                     "An iterator that others find by its name."));

const OpRegistration kMake{
    {.name = "MakeIterator",
     .inputs = "dataset: variant, iterator: resource",
     .shape = shapes::none,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .retains_inputs = 1, .host_inputs = 0b11, .cpu_only = true},
     .doc = "Begins the dataset."}};
const OpRegistration kDelete{{.name = "DeleteIterator",
                              .inputs = "handle: resource, deleter: variant",
                              .shape = shapes::none,
                              .gradient = not_differentiable,
                              .traits = {.stateful = true, .host_inputs = 0b11, .cpu_only = true},
                              .doc = "Ends the iteration."}};

OpDecl taker(const char* name, const char* doc) {
  return {.name = name,
          .inputs = "iterator: resource",
          .outputs = "components: output_types",
          .attrs = TANDEM_SPEC,
          .shape = components_shape,
          .gradient = not_differentiable,
          .traits = {.stateful = true,
                     .owns_output_memory = ~std::uint32_t{0},
                     .host_inputs = 1,
                     .cpu_only = true},
          .doc = doc};
}
const OpRegistration kNext(taker("IteratorGetNext",
                                 "The next element; OutOfRangeError at the end."));
const OpRegistration kNextSync(taker("IteratorGetNextSync",
                                     "The next element; OutOfRangeError at the end."));

const OpRegistration kNextOptional{
    {.name = "IteratorGetNextAsOptional",
     .inputs = "iterator: resource",
     .outputs = "optional: variant",
     .attrs = TANDEM_SPEC,
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .owns_output_memory = 1, .host_inputs = 1, .cpu_only = true},
     .doc = "The next element, or nothing at the end."}};
}  // namespace
}  // namespace tandem
