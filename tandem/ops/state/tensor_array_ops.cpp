// TensorFlow 1's TensorArrays and stacks. A handle names the array; `flow` is a number that orders
// the ops on it.

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

PartialShape with_unknown_first(const PartialShape& rest) {
  if (!rest.has_rank()) return rest;
  std::vector<std::int64_t> dims{-1};
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  return PartialShape(std::move(dims));
}

void gather_shape(InferenceContext& c) {
  PartialShape shape = with_unknown_first(c.attr<PartialShape>("element_shape"));
  const PartialShape& indices = c.input(1);
  c.require_rank(1, 1);
  if (shape.has_rank() && indices.has_rank()) shape.set_dim(0, indices.dim(0));
  c.set_output(0, std::move(shape));
}

void concat_shape(InferenceContext& c) {
  c.set_output(0, with_unknown_first(c.attr<PartialShape>("element_shape_except0")));
  c.set_output(1, PartialShape{-1});
}

const OpRegistration kTensorArrayV3{{
    .name = "TensorArrayV3",
    .inputs = "size: int32",
    .outputs = "handle: resource, flow: float",
    .attrs = "dtype: type; element_shape: shape = unknown; dynamic_size: bool = false; "
             "clear_after_read: bool = true; identical_element_shapes: bool = false; "
             "tensor_array_name: string = ''",
    .shape =
        [](InferenceContext& c) {
          c.require_rank(0, 0);
          c.set_output(0, PartialShape::scalar());
          c.set_output(1, PartialShape::scalar());
        },
    .gradient = not_differentiable,
    .traits = {.stateful = true, .host_outputs = 1},
    .doc = "An array of tensors for one run, each written once.",
}};

const OpRegistration kTensorArrayGradV3{{
    .name = "TensorArrayGradV3",
    .inputs = "handle: resource, flow_in: float",
    .outputs = "grad_handle: resource, flow_out: float",
    .attrs = "source: string",
    .shape = shapes::scalar,
    .gradient = not_differentiable,
    .traits = {.stateful = true, .host_inputs = 1, .host_outputs = 1},
    .doc = "The array of the gradients towards an array's elements; what is written to it adds up.",
}};

const OpRegistration kTensorArrayGradWithShape{{
    .name = "TensorArrayGradWithShape",
    .inputs = "handle: resource, flow_in: float, shape_to_prepend: int32",
    .outputs = "grad_handle: resource, flow_out: float",
    .attrs = "source: string",
    .shape = shapes::scalar,
    .gradient = not_differentiable,
    .traits = {.stateful = true, .host_inputs = 1, .host_outputs = 1},
    .doc = "As TensorArrayGradV3, with further axes in front of the elements'.",
}};

const OpRegistration kTensorArrayWriteV3{{
    .name = "TensorArrayWriteV3",
    .inputs = "handle: resource, index: int32, value: T, flow_in: float",
    .outputs = "flow_out: float",
    .attrs = "T: type",
    .shape =
        [](InferenceContext& c) {
          c.require_rank(1, 0);
          c.require_rank(3, 0);
          c.set_output(0, PartialShape::scalar());
        },
    .traits = {.stateful = true, .retains_inputs = 0b100, .host_inputs = 0b11},
    .doc = "Writes an element.",
}};

const OpRegistration kTensorArrayReadV3{{
    .name = "TensorArrayReadV3",
    .inputs = "handle: resource, index: int32, flow_in: float",
    .outputs = "value: dtype",
    .attrs = "dtype: type",
    .shape = [](InferenceContext& c) { c.require_rank(1, 0); },
    .traits = {.stateful = true, .owns_output_memory = 1, .host_inputs = 0b11},
    .doc = "Reads an element.",
}};

const OpRegistration kTensorArrayGatherV3{{
    .name = "TensorArrayGatherV3",
    .inputs = "handle: resource, indices: int32, flow_in: float",
    .outputs = "value: dtype",
    .attrs = "dtype: type; element_shape: shape = unknown",
    .shape = gather_shape,
    .traits = {.stateful = true, .host_inputs = 0b11},
    .doc = "The elements at indices, stacked.",
}};

const OpRegistration kTensorArrayScatterV3{{
    .name = "TensorArrayScatterV3",
    .inputs = "handle: resource, indices: int32, value: T, flow_in: float",
    .outputs = "flow_out: float",
    .attrs = "T: type",
    .shape = shapes::scalar,
    .traits = {.stateful = true, .retains_inputs = 0b100, .host_inputs = 0b11},
    .doc = "Writes the rows of value to indices.",
}};

const OpRegistration kTensorArrayConcatV3{{
    .name = "TensorArrayConcatV3",
    .inputs = "handle: resource, flow_in: float",
    .outputs = "value: dtype, lengths: int64",
    .attrs = "dtype: type; element_shape_except0: shape = unknown",
    .shape = concat_shape,
    .traits = {.stateful = true, .host_inputs = 1, .host_outputs = 0b10},
    .doc = "All elements joined along their first axis, and their lengths.",
}};

const OpRegistration kTensorArraySplitV3{{
    .name = "TensorArraySplitV3",
    .inputs = "handle: resource, value: T, lengths: int64, flow_in: float",
    .outputs = "flow_out: float",
    .attrs = "T: type",
    .shape = shapes::scalar,
    .traits = {.stateful = true, .retains_inputs = 0b10, .host_inputs = 0b101},
    .doc = "Writes pieces of value of these lengths.",
}};

const OpRegistration kTensorArraySizeV3{{
    .name = "TensorArraySizeV3",
    .inputs = "handle: resource, flow_in: float",
    .outputs = "size: int32",
    .shape = shapes::scalar,
    .gradient = not_differentiable,
    .traits = {.stateful = true, .host_inputs = 1},
    .doc = "The number of elements.",
}};

const OpRegistration kTensorArrayCloseV3{{
    .name = "TensorArrayCloseV3",
    .inputs = "handle: resource",
    .shape = shapes::none,
    .gradient = not_differentiable,
    .traits = {.stateful = true, .host_inputs = 1},
    .doc = "Frees the elements; the array cannot be used any more.",
}};

const OpRegistration kStackV2{{
    .name = "StackV2",
    .inputs = "max_size: int32",
    .outputs = "handle: resource",
    .attrs = "elem_type: type; stack_name: string = ''",
    .shape = shapes::scalar,
    .traits = {.stateful = true, .host_outputs = 1},
    .doc = "A stack for one run.",
}};

const OpRegistration kStackPushV2{{
    .name = "StackPushV2",
    .inputs = "handle: resource, elem: T",
    .outputs = "output: T",
    .attrs = "T: type; swap_memory: bool = false",
    .shape = [](InferenceContext& c) { c.set_output(0, c.input(1)); },
    .traits = {.stateful = true, .retains_inputs = 0b10, .owns_output_memory = 1, .host_inputs = 1},
    .doc = "Puts a value on the stack; returns it.",
}};

const OpRegistration kStackPopV2{{
    .name = "StackPopV2",
    .inputs = "handle: resource",
    .outputs = "elem: elem_type",
    .attrs = "elem_type: type",
    .traits = {.stateful = true, .owns_output_memory = 1, .host_inputs = 1},
    .doc = "Takes the last value from the stack.",
}};

const OpRegistration kStackCloseV2{{
    .name = "StackCloseV2",
    .inputs = "handle: resource",
    .shape = shapes::none,
    .traits = {.stateful = true, .host_inputs = 1},
    .doc = "Frees the values; the stack cannot be used any more.",
}};

}  // namespace
}  // namespace tandem
