#include "tandem/ops/list_ops.h"

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem::list_ops {
namespace {

PartialShape with_first(std::int64_t first, const PartialShape& rest) {
  if (!rest.has_rank()) return rest;
  std::vector<std::int64_t> dims{first};
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  return PartialShape(std::move(dims));
}

PartialShape without_first(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return PartialShape::unknown();
  return PartialShape(std::vector<std::int64_t>(shape.dims().begin() + 1, shape.dims().end()));
}

template <int kIndex>
void scalar_index(InferenceContext& c) {
  c.require_rank(kIndex, 0);
  c.set_output(0, PartialShape::scalar());
}

void pop_shape(InferenceContext& c) {
  c.set_output(0, PartialShape::scalar());
  c.set_output(1, c.input_as_shape(1));
}

void get_shape(InferenceContext& c) {
  c.require_rank(1, 0);
  c.set_output(0, c.input_as_shape(2));
}

void stack_shape(InferenceContext& c) {
  c.set_output(0, with_first(c.attr<std::int64_t>("num_elements"), c.input_as_shape(1)));
}

void gather_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  const PartialShape& indices = c.input(1);
  c.set_output(0, with_first(indices.has_rank() ? indices.dim(0) : -1, c.input_as_shape(2)));
}

void concat_shape(InferenceContext& c) {
  const PartialShape element =
      c.num_inputs() > 1 ? c.input_as_shape(1) : c.attr<PartialShape>("element_shape");
  if (element.has_rank() && element.rank() == 0)
    c.fail("Concat requires elements to be at least vectors, found scalars instead.");
  c.set_output(0, element.has_rank() ? with_first(-1, without_first(element)) : element);
  c.set_output(1, PartialShape{-1});
}

void element_shape_shape(InferenceContext& c) { c.set_output(0, PartialShape::unknown()); }

// ---- Gradients ----

Tensor shape_tensor(const PartialShape& shape) {
  if (!shape.has_rank()) return Tensor(-1);
  std::vector<std::int32_t> dims;
  for (std::int64_t d : shape.dims()) dims.push_back(static_cast<std::int32_t>(d));
  return Tensor::from(dims);
}

Tensor op1(std::string_view name, std::initializer_list<Tensor> inputs, const AttrMap& attrs = {}) {
  return raw_op(name, inputs, attrs)[0];
}

Tensor element_shape(const Tensor& list) {
  return op1("TensorListElementShape", {list}, {{"shape_type", int32}});
}

// The shape of a tensor's rows.
Tensor row_shape(const Tensor& tensor) { return slice(shape(tensor), {1}, {-1}); }

Tensor gather_rows(const Tensor& list, const Tensor& indices, const Tensor& like) {
  return op1("TensorListGather", {list, indices, row_shape(like)},
             {{"element_dtype", like.dtype()}});
}

Tensor scatter_into(const Tensor& list, const Tensor& rows, const Tensor& indices) {
  return op1("TensorListScatterIntoExistingList", {list, rows, indices});
}

Tensor stack_rows(const Tensor& list, const Tensor& like) {
  const PartialShape known = like.partial_shape();
  const std::int64_t count = known.has_rank() && known.rank() > 0 ? known.dim(0) : -1;
  return op1("TensorListStack", {list, row_shape(like)},
             {{"element_dtype", like.dtype()}, {"num_elements", count}});
}

// A list as long as `list` that is zero everywhere.
Tensor reserve_like(const Tensor& list, DType dtype) {
  return op1("TensorListReserve", {element_shape(list), length(list)}, {{"element_dtype", dtype}});
}

Tensor item_at(const Tensor& list, const Tensor& index, const Tensor& like) {
  return op1("TensorListGetItem", {list, index, shape(like)}, {{"element_dtype", like.dtype()}});
}

void push_gradient(GradientContext& g) {
  const Tensor& element = g.input(1);
  auto [list, value] = [&] {
    auto outputs = raw_op("TensorListPopBack", {g.grad(), shape(element)},
                          {{"element_dtype", element.dtype()}});
    return std::pair(outputs[0], outputs[1]);
  }();
  g.set(0, list);
  g.set(1, value);
}

void pop_gradient(GradientContext& g) { g.set(0, push_back(g.grad(0), g.grad(1))); }

void get_gradient(GradientContext& g) {
  g.set(0, set_item(reserve_like(g.input(0), g.grad().dtype()), g.input(1), g.grad()));
}

void set_gradient(GradientContext& g) {
  const Tensor& index = g.input(1);
  const Tensor& item = g.input(2);
  if (g.needs(0)) {
    Tensor list = set_item(g.grad(), index, zeros_like(item));
    if (g.attr<bool>("resize_if_index_out_of_bounds"))
      list = op1("TensorListResize", {list, length(g.input(0))});
    g.set(0, std::move(list));
  }
  if (g.needs(2)) g.set(2, item_at(g.grad(), index, item));
}

void resize_gradient(GradientContext& g) {
  g.set(0, op1("TensorListResize", {g.grad(), length(g.input(0))}));
}

void stack_gradient(GradientContext& g) { g.set(0, from_tensor(g.grad())); }

void from_tensor_gradient(GradientContext& g) { g.set(0, stack_rows(g.grad(), g.input(0))); }

void concat_gradient(GradientContext& g) {
  g.set(0, op1("TensorListSplit", {g.grad(0), element_shape(g.input(0)), g.output(1)}));
}

void split_gradient(GradientContext& g) {
  const Tensor& tensor = g.input(0);
  const Tensor element = concat({Tensor{-1}, row_shape(tensor)}, 0);
  g.set(0, op1("TensorListConcatV2", {g.grad(), element, g.input(2)},
               {{"element_dtype", tensor.dtype()}}));
}

void gather_gradient(GradientContext& g) {
  g.set(0, scatter_into(reserve_like(g.input(0), g.grad().dtype()), g.grad(), g.input(1)));
}

void scatter_gradient(GradientContext& g) {
  g.set(0, gather_rows(g.grad(), g.input(1), g.input(0)));
}

void scatter_into_gradient(GradientContext& g) {
  const Tensor& tensor = g.input(1);
  const Tensor& indices = g.input(2);
  if (g.needs(0)) g.set(0, scatter_into(g.grad(), zeros_like(tensor), indices));
  if (g.needs(1)) g.set(1, gather_rows(g.grad(), indices, tensor));
}

// ---- Declarations ----

const OpRegistration kEmptyTensorList{{
    .name = "EmptyTensorList",
    .inputs = "element_shape: shape_type, max_num_elements: int32",
    .outputs = "handle: variant",
    .attrs = "element_dtype: type; shape_type: index",
    .shape = scalar_index<1>,
    .gradient = not_differentiable,
    .traits = {.host_inputs = 0b11},
    .doc = "An empty list. `element_shape` is a vector (-1 for unknown sizes) or the scalar -1 for "
           "any shape.",
}};

const OpRegistration kTensorListReserve{{
    .name = "TensorListReserve",
    .inputs = "element_shape: shape_type, num_elements: int32",
    .outputs = "handle: variant",
    .attrs = "element_dtype: type; shape_type: index",
    .shape = scalar_index<1>,
    .gradient = not_differentiable,
    .traits = {.host_inputs = 0b11},
    .doc = "A list of elements that count as zeros until they are set.",
}};

const OpRegistration kTensorListPushBack{{
    .name = "TensorListPushBack",
    .inputs = "input_handle: variant, tensor: element_dtype",
    .outputs = "output_handle: variant",
    .attrs = "element_dtype: type",
    .shape = shapes::scalar,
    .gradient = push_gradient,
    .traits = {.retains_inputs = 0b11},
    .doc = "The list with one element more.",
}};

const OpRegistration kTensorListPushBackBatch{{
    .name = "TensorListPushBackBatch",
    .inputs = "input_handles: variant, tensor: element_dtype",
    .outputs = "output_handles: variant",
    .attrs = "element_dtype: type",
    .shape = shapes::unchanged,
    .gradient = not_differentiable,
    .traits = {.retains_inputs = 0b11},
    .doc = "Each list with one row of the tensor more.",
}};

const OpRegistration kTensorListPopBack{{
    .name = "TensorListPopBack",
    .inputs = "input_handle: variant, element_shape: int32",
    .outputs = "output_handle: variant, tensor: element_dtype",
    .attrs = "element_dtype: type",
    .shape = pop_shape,
    .gradient = pop_gradient,
    .traits = {.retains_inputs = 0b1, .owns_output_memory = 0b10, .host_inputs = 0b10},
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

const OpRegistration kTensorListElementShape{{
    .name = "TensorListElementShape",
    .inputs = "input_handle: variant",
    .outputs = "element_shape: shape_type",
    .attrs = "shape_type: index",
    .shape = element_shape_shape,
    .gradient = not_differentiable,
    .traits = {.host_outputs = 1},
    .doc = "The shape that the list was made for: a vector, or the scalar -1.",
}};

const OpRegistration kTensorListGetItem{{
    .name = "TensorListGetItem",
    .inputs = "input_handle: variant, index: int32, element_shape: Tshape",
    .outputs = "item: element_dtype",
    .attrs = "element_dtype: type; Tshape: index = int32",
    .shape = get_shape,
    .gradient = get_gradient,
    .traits = {.owns_output_memory = 0b1, .host_inputs = 0b110},
    .doc = "An element; zeros if it was never set.",
}};

const OpRegistration kTensorListSetItem{{
    .name = "TensorListSetItem",
    .inputs = "input_handle: variant, index: int32, item: element_dtype",
    .outputs = "output_handle: variant",
    .attrs = "element_dtype: type; resize_if_index_out_of_bounds: bool = false",
    .shape = scalar_index<1>,
    .gradient = set_gradient,
    .traits = {.retains_inputs = 0b101, .host_inputs = 0b010},
    .doc = "The list with one element replaced.",
}};

const OpRegistration kTensorListResize{{
    .name = "TensorListResize",
    .inputs = "input_handle: variant, size: int32",
    .outputs = "output_handle: variant",
    .shape = scalar_index<1>,
    .gradient = resize_gradient,
    .traits = {.retains_inputs = 0b1, .host_inputs = 0b10},
    .doc = "The list made longer (by elements that count as zeros) or shorter.",
}};

const OpRegistration kTensorListStack{{
    .name = "TensorListStack",
    .inputs = "input_handle: variant, element_shape: int32",
    .outputs = "tensor: element_dtype",
    .attrs = "element_dtype: type; num_elements: int = -1",
    .shape = stack_shape,
    .gradient = stack_gradient,
    .traits = {.host_inputs = 0b10},
    .doc = "All elements, of one shape, along a new first axis.",
}};

const OpRegistration kTensorListFromTensor{{
    .name = "TensorListFromTensor",
    .inputs = "tensor: element_dtype, element_shape: shape_type",
    .outputs = "output_handle: variant",
    .attrs = "element_dtype: type; shape_type: index",
    .shape = shapes::scalar,
    .gradient = from_tensor_gradient,
    .traits = {.retains_inputs = 0b1, .host_inputs = 0b10},
    .doc = "The list of the tensor's rows, which share its memory.",
}};

const OpRegistration kTensorListConcat{{
    .name = "TensorListConcat",
    .inputs = "input_handle: variant",
    .outputs = "tensor: element_dtype, lengths: int64",
    .attrs = "element_dtype: type; element_shape: shape = unknown",
    .shape = concat_shape,
    .gradient = concat_gradient,
    .traits = {.host_outputs = 0b10},
    .doc = "All elements joined along their first axis, and their lengths.",
}};

const OpRegistration kTensorListConcatV2{{
    .name = "TensorListConcatV2",
    .inputs = "input_handle: variant, element_shape: shape_type, leading_dims: int64",
    .outputs = "tensor: element_dtype, lengths: int64",
    .attrs = "element_dtype: type; shape_type: index",
    .shape = concat_shape,
    .gradient = concat_gradient,
    .traits = {.host_inputs = 0b110, .host_outputs = 0b10},
    .doc = "As TensorListConcat; `leading_dims` gives the lengths of elements never set.",
}};

const OpRegistration kTensorListSplit{{
    .name = "TensorListSplit",
    .inputs = "tensor: element_dtype, element_shape: shape_type, lengths: int64",
    .outputs = "output_handle: variant",
    .attrs = "element_dtype: type; shape_type: index",
    .shape = shapes::scalar,
    .gradient = split_gradient,
    .traits = {.retains_inputs = 0b1, .host_inputs = 0b110},
    .doc = "The list of pieces of these lengths along the first axis.",
}};

const OpRegistration kTensorListGather{{
    .name = "TensorListGather",
    .inputs = "input_handle: variant, indices: int32, element_shape: int32",
    .outputs = "values: element_dtype",
    .attrs = "element_dtype: type",
    .shape = gather_shape,
    .gradient = gather_gradient,
    .traits = {.host_inputs = 0b110},
    .doc = "The elements at indices, stacked.",
}};

const OpRegistration kTensorListScatter{{
    .name = "TensorListScatter",
    .inputs = "tensor: element_dtype, indices: int32, element_shape: shape_type",
    .outputs = "output_handle: variant",
    .attrs = "element_dtype: type; shape_type: index",
    .shape = shapes::scalar,
    .gradient = scatter_gradient,
    .traits = {.retains_inputs = 0b1, .host_inputs = 0b110},
    .doc = "A list whose element indices[i] is row i of the tensor.",
}};

const OpRegistration kTensorListScatterV2{{
    .name = "TensorListScatterV2",
    .inputs = "tensor: element_dtype, indices: int32, element_shape: shape_type, "
              "num_elements: int32",
    .outputs = "output_handle: variant",
    .attrs = "element_dtype: type; shape_type: index",
    .shape = shapes::scalar,
    .gradient = scatter_gradient,
    .traits = {.retains_inputs = 0b1, .host_inputs = 0b1110},
    .doc = "As TensorListScatter, for a list of num_elements (-1: as long as need be).",
}};

const OpRegistration kTensorListScatterIntoExistingList{{
    .name = "TensorListScatterIntoExistingList",
    .inputs = "input_handle: variant, tensor: element_dtype, indices: int32",
    .outputs = "output_handle: variant",
    .attrs = "element_dtype: type",
    .shape = shapes::scalar,
    .gradient = scatter_into_gradient,
    .traits = {.retains_inputs = 0b11, .host_inputs = 0b100},
    .doc = "The list with the tensor's rows at indices.",
}};

const OpRegistration kTensorListConcatLists{{
    .name = "TensorListConcatLists",
    .inputs = "input_a: variant, input_b: variant",
    .outputs = "output: variant",
    .attrs = "element_dtype: type",
    .shape = shapes::unchanged,
    .gradient = not_differentiable,
    .doc = "The elements of one list and then those of the other.",
}};

}  // namespace

Tensor empty_tensor_list(DType dtype, const PartialShape& element_shape) {
  return call1(kEmptyTensorList, {shape_tensor(element_shape), Tensor(-1)},
               {{"element_dtype", dtype}});
}

Tensor reserve(Tensor num_elements, DType dtype, const PartialShape& element_shape) {
  return call1(kTensorListReserve, {shape_tensor(element_shape), std::move(num_elements)},
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

Tensor get_item(Tensor list, Tensor index, DType dtype, const PartialShape& element_shape) {
  return call1(kTensorListGetItem, {std::move(list), std::move(index), shape_tensor(element_shape)},
               {{"element_dtype", dtype}});
}

Tensor set_item(Tensor list, Tensor index, Tensor element) {
  return call1(kTensorListSetItem, {std::move(list), std::move(index), std::move(element)});
}

Tensor stack(Tensor list, DType dtype, const PartialShape& element_shape) {
  return call1(kTensorListStack, {std::move(list), shape_tensor(element_shape)},
               {{"element_dtype", dtype}});
}

Tensor from_tensor(Tensor tensor) {
  Tensor element = row_shape(tensor);
  return call1(kTensorListFromTensor, {std::move(tensor), std::move(element)});
}

Tensor length(Tensor list) { return call1(kTensorListLength, {std::move(list)}); }

}  // namespace tandem::list_ops
