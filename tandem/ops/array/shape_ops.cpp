#include "tandem/ops/shape_ops.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

void shape_shape(InferenceContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, internal::vector_of(c.input(i).has_rank() ? c.input(i).rank() : kUnknown));
  }
}

// ---- Reshape, ExpandDims, Squeeze ----

// The sizes asked for, with the one that follows from the rest filled in where all else is known.
// Sizes that are merely unknown count like -1: the number of elements says the same of both.
PartialShape reshaped(const InferenceContext& c, std::vector<std::int64_t> dims) {
  const std::int64_t count = c.input(0).num_elements();
  std::int64_t rest = 1;
  int open = -1;
  int opens = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == kUnknown) {
      open = static_cast<int>(i);
      ++opens;
    } else {
      rest = checked_multiply(rest, dims[i]);
    }
  }
  if (count == kUnknown || opens > 1) return PartialShape(std::move(dims));
  if (opens == 0 ? rest != count : (rest == 0 ? count != 0 : count % rest != 0)) {
    c.fail(cat("Cannot reshape a tensor with ", count, " elements to shape ", PartialShape(dims),
               " (", rest, " elements)"));
  }
  if (opens == 1 && rest != 0) dims[static_cast<std::size_t>(open)] = count / rest;
  return PartialShape(std::move(dims));
}

void reshape_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  if (const auto dims = c.input_ints(1)) {
    int open = 0;
    for (std::int64_t d : *dims) {
      if (d < -1) c.fail(cat("Size ", d, " in the shape must be non-negative or -1."));
      open += d == -1;
    }
    if (open > 1) c.fail("Only one input size may be -1.");
    return c.set_output(0, reshaped(c, *dims));
  }
  const PartialShape wanted = c.input_as_shape(1);
  c.set_output(0, wanted.has_rank() ? reshaped(c, wanted.dims()) : wanted);
}

void back_to_input_shape(GradientContext& g) {
  const Tensor& x = g.input(0);
  const auto dims = internal::known_dims(x);
  g.set(0, reshape(g.grad(), dims ? IntList(*dims) : IntList(shape(x))));
}

// Whether a Reshape to constant sizes fits whatever its input turns out to be.
bool always_fits(const Node& reshape) {
  const Node& sizes = *reshape.inputs()[1].node;
  const Output in = reshape.inputs()[0];
  const PartialShape& shape = in.node->output_shape(in.index);
  if (sizes.kind() != NodeKind::kConst || !sizes.control_inputs().empty() || !shape.has_rank())
    return false;
  if (shape.is_fully_known()) return true;  // or its shape would have been an error
  const Array& value = *sizes.attr<std::shared_ptr<const Array>>("value");
  std::int64_t given = 1, known = 1;  // the products of what is known
  bool open = false;
  for (std::int64_t i = 0; i < value.num_elements(); ++i) {
    const std::int64_t size = value.dtype() == DType::kInt64 ? value.data<std::int64_t>()[i]
                                                             : value.data<std::int32_t>()[i];
    open = open || size == -1;
    if (size != -1 && __builtin_mul_overflow(given, size, &given)) return false;
  }
  for (const std::int64_t size : shape.dims())
    if (size != kUnknown && __builtin_mul_overflow(known, size, &known)) return false;
  return open && given > 0 && known % given == 0;
}

// Reshape(x) to x's own shape is x; Reshape(Reshape(x)) looks at x alone.
bool skip_reshape(RewriteContext& r) {
  Node& node = r.node();
  const Output in = node.inputs()[0];
  // Sizes that only the run knows may not fit: that is an error of the run.
  if (in.node->output_shape(in.index).is_fully_known() && r.constant(1) && r.may_drop(1) &&
      r.replace_with(in))
    return true;
  if (in.node->op().name != node.op().name || !in.node->control_inputs().empty() ||
      !always_fits(*in.node))
    return false;
  r.graph().set_input(&node, 0, in.node->inputs()[0]);
  return true;
}

// The sizes of a value whose shape is known.
bool shape_as_constant(RewriteContext& r) {
  const Output in = r.node().inputs()[0];
  const PartialShape& shape = in.node->output_shape(in.index);
  if (!shape.is_fully_known()) return false;
  Array sizes(r.node().output_dtype(0), Shape{shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) {
    if (sizes.dtype() == DType::kInt32) {
      if (shape.dim(i) > INT32_MAX) return false;
      sizes.data<std::int32_t>()[i] = static_cast<std::int32_t>(shape.dim(i));
    } else {
      sizes.data<std::int64_t>()[i] = shape.dim(i);
    }
  }
  return r.replace_with_constant(sizes, 0);
}

void expand_dims_shape(InferenceContext& c) {
  const auto axis = internal::input_int(c, 1);
  if (!c.input(0).has_rank()) return c.set_output(0, PartialShape::unknown());
  const int rank = c.input(0).rank();
  if (!axis) return c.set_output(0, PartialShape::unknown_of_rank(rank + 1));
  if (*axis < -rank - 1 || *axis > rank) {
    c.fail(cat("dim ", *axis, " not in the interval [", -rank - 1, ", ", rank, "]."));
  }
  std::vector<std::int64_t> dims = c.input(0).dims();
  dims.insert(dims.begin() + (*axis < 0 ? *axis + rank + 1 : *axis), 1);
  c.set_output(0, PartialShape(std::move(dims)));
}

void squeeze_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  const auto& axes = c.attr<std::vector<std::int64_t>>("squeeze_dims");
  std::vector<bool> drop(in.dims().size(), false);
  for (std::int64_t axis : axes) {
    const int at = internal::axis_in(c, axis, in.rank(), "squeeze_dims entry");
    if (in.dim(at) != kUnknown && in.dim(at) != 1) {
      c.fail(cat("Can not squeeze dim[", at, "], expected a dimension of 1, got ", in.dim(at)));
    }
    drop[static_cast<std::size_t>(at)] = true;
  }
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < drop.size(); ++i) {
    if (axes.empty()) {
      if (in.dims()[i] == kUnknown) return c.set_output(0, PartialShape::unknown());
      drop[i] = in.dims()[i] == 1;
    }
    if (!drop[i]) dims.push_back(in.dims()[i]);
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

// ---- Shapes that broadcast ----

void broadcast_args_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  const std::int64_t a = c.input(0).dim(0);
  const std::int64_t b = c.input(1).dim(0);
  c.set_output(0, internal::vector_of(a == kUnknown || b == kUnknown ? kUnknown : std::max(a, b)));
}

void broadcast_gradient_args_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  c.set_output(0, internal::vector_of(kUnknown));
  c.set_output(1, internal::vector_of(kUnknown));
}

const OpRegistration kShape{{.name = "Shape",
                             .inputs = "input: T",
                             .outputs = "output: out_type",
                             .attrs = "T: type; out_type: index = int32",
                             .shape = shape_shape,
                             .gradient = not_differentiable,
                             .traits = {.host_outputs = 1, .value = ShapeValue::kShapeOfInput},
                             .rewrite = shape_as_constant,
                             .doc = "The sizes of the input's axes."}};

const OpRegistration kShapeN{{.name = "ShapeN",
                              .inputs = "input: N * T",
                              .outputs = "output: N * out_type",
                              .attrs = "N: int >= 1; T: type; out_type: index = int32",
                              .shape = shape_shape,
                              .gradient = not_differentiable,
                              .traits = {.host_outputs = ~0u, .value = ShapeValue::kShapeOfInput},
                              .doc = "The sizes of each input's axes."}};

const OpRegistration kSize{{.name = "Size",
                            .inputs = "input: T",
                            .outputs = "output: out_type",
                            .attrs = "T: type; out_type: index = int32",
                            .shape = shapes::scalar,
                            .gradient = not_differentiable,
                            .traits = {.host_outputs = 1},
                            .doc = "The number of the input's elements."}};

const OpRegistration kRank{{.name = "Rank",
                            .inputs = "input: T",
                            .outputs = "output: int32",
                            .attrs = "T: type",
                            .shape = shapes::scalar,
                            .gradient = not_differentiable,
                            .traits = {.host_outputs = 1},
                            .doc = "The number of the input's axes."}};

const OpRegistration kReshape{
    {.name = "Reshape",
     .inputs = "tensor: T, shape: Tshape",
     .outputs = "output: T",
     .attrs = "T: type; Tshape: index = int32",
     .shape = reshape_shape,
     .gradient = back_to_input_shape,
     .traits = {.shares_memory = 1, .host_inputs = 0b10},
     .rewrite = skip_reshape,
     .doc = "The same elements under another shape of equally many; one size may be -1 and follows "
            "from the rest."}};

const OpRegistration kExpandDims{{.name = "ExpandDims",
                                  .inputs = "input: T, dim: Tdim",
                                  .outputs = "output: T",
                                  .attrs = "T: type; Tdim: index = int32",
                                  .shape = expand_dims_shape,
                                  .gradient = back_to_input_shape,
                                  .traits = {.shares_memory = 1, .host_inputs = 0b10},
                                  .doc = "A new axis of size 1 at `dim`, in [-rank - 1, rank]."}};

const OpRegistration kSqueeze{
    {.name = "Squeeze",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type; squeeze_dims: list(int) = []",
     .shape = squeeze_shape,
     .gradient = back_to_input_shape,
     .traits = {.shares_memory = 1},
     .doc = "Without the axes named, which must have size 1; without all of size 1 if none is "
            "named."}};

const OpRegistration kBroadcastArgs{
    {.name = "BroadcastArgs",
     .inputs = "s0: T, s1: T",
     .outputs = "r0: T",
     .attrs = "T: index = int32",
     .shape = broadcast_args_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b11, .host_outputs = 1},
     .doc = "The shape to which values of shapes s0 and s1 broadcast."}};

const OpRegistration kBroadcastGradientArgs{
    {.name = "BroadcastGradientArgs",
     .inputs = "s0: T, s1: T",
     .outputs = "r0: T, r1: T",
     .attrs = "T: index = int32",
     .shape = broadcast_gradient_args_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b11, .host_outputs = 0b11},
     .doc = "The axes over which the gradient of a broadcast value must be summed, for each "
            "operand."}};

}  // namespace

Tensor shape(Tensor input, DType out_type) {
  return call1(kShape, {std::move(input)}, {{"out_type", out_type}});
}

std::vector<Tensor> shape_n(const std::vector<Tensor>& inputs, DType out_type) {
  return call(kShapeN, inputs, {{"out_type", out_type}});
}

Tensor size(Tensor input, DType out_type) {
  return call1(kSize, {std::move(input)}, {{"out_type", out_type}});
}

Tensor rank(Tensor input) { return call1(kRank, {std::move(input)}); }

Tensor reshape(Tensor tensor, const IntList& shape) {
  return call1(kReshape, {std::move(tensor), shape.tensor()});
}

Tensor expand_dims(Tensor input, std::int64_t axis) {
  return call1(kExpandDims, {std::move(input), internal::index_scalar(axis)});
}

Tensor squeeze(Tensor input, std::vector<std::int64_t> axis) {
  return call1(kSqueeze, {std::move(input)}, {{"squeeze_dims", std::move(axis)}});
}

Tensor broadcast_dynamic_shape(Tensor shape_x, Tensor shape_y) {
  return call1(kBroadcastArgs, {std::move(shape_x), std::move(shape_y)});
}

Shape broadcast_static_shape(const Shape& shape_x, const Shape& shape_y) {
  return broadcast(shape_x, shape_y);
}

}  // namespace tandem
