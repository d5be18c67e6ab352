#include "tandem/ops/list_ops.h"

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::list_ops {
namespace {

void pop_shape(InferenceContext& c) {
  c.set_output(0, PartialShape::scalar());
  c.set_output(1, c.input_as_shape(1));
}

const OpRegistration kEmptyTensorList{{
    .name = "EmptyTensorList",
    .inputs = "element_shape: shape_type, max_num_elements: int32",
    .outputs = "handle: variant",
    .attrs = "element_dtype: type; shape_type: index",
    .shape = shapes::scalar,
    .gradient = not_differentiable,
    .doc = "An empty list. `element_shape` is a vector (-1 for unknown sizes) or the scalar -1 for "
           "any shape.",
}};

const OpRegistration kTensorListPushBack{{
    .name = "TensorListPushBack",
    .inputs = "input_handle: variant, tensor: element_dtype",
    .outputs = "output_handle: variant",
    .attrs = "element_dtype: type",
    .shape = shapes::scalar,
    .traits = {.keeps_inputs = 0b11},
    .doc = "The list with one element more.",
}};

const OpRegistration kTensorListPopBack{{
    .name = "TensorListPopBack",
    .inputs = "input_handle: variant, element_shape: int32",
    .outputs = "output_handle: variant, tensor: element_dtype",
    .attrs = "element_dtype: type",
    .shape = pop_shape,
    .traits = {.keeps_inputs = 0b1},
    .doc = "The list without its last element, and that element.",
}};

const OpRegistration kTensorListLength{{
    .name = "TensorListLength",
    .inputs = "input_handle: variant",
    .outputs = "length: int32",
    .shape = shapes::scalar,
    .gradient = not_differentiable,
    .doc = "The number of elements.",
}};

Tensor shape_tensor(const PartialShape& shape) {
  if (!shape.has_rank()) return Tensor(-1);
  std::vector<std::int32_t> dims;
  for (std::int64_t d : shape.dims()) dims.push_back(static_cast<std::int32_t>(d));
  return Tensor::from(dims);
}

}  // namespace

Tensor empty_tensor_list(DType dtype, const PartialShape& element_shape) {
  return call1(kEmptyTensorList, {shape_tensor(element_shape), Tensor(-1)},
               {{"element_dtype", dtype}});
}

Tensor push_back(Tensor list, Tensor element) {
  return call1(kTensorListPushBack, {std::move(list), std::move(element)});
}

std::pair<Tensor, Tensor> pop_back(Tensor list, DType dtype, const PartialShape& element_shape) {
  auto outputs = call(kTensorListPopBack, {std::move(list), shape_tensor(element_shape)},
                      {{"element_dtype", dtype}});
  return {std::move(outputs[0]), std::move(outputs[1])};
}

Tensor length(Tensor list) { return call1(kTensorListLength, {std::move(list)}); }

}  // namespace tandem::list_ops
