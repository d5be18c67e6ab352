#include "tandem/ops/identity_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/rewrite.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void pass_gradient(GradientContext& g) { g.set(0, g.grad()); }

void same_shapes(InferenceContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
}

void no_gradient_wanted(GradientContext& g) {
  throw FailedPreconditionError(
      cat("Gradient explicitly disabled. Reason: ", g.attr<std::string>("message"),
          " Use td::stop_gradient where the value counts as constant."));
}

void each_gradient(GradientContext& g) {
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (g.needs(i) && g.grad_or_undefined(i).defined()) g.set(i, g.grad(i));
  }
}

void const_shape(InferenceContext& c) {
  c.set_output(0, c.attr<std::shared_ptr<const Array>>("value")->shape());
}

void shape_attr(InferenceContext& c) { c.set_output(0, c.attr<PartialShape>("shape")); }

void placeholder_with_default_shape(InferenceContext& c) {
  const auto& shape = c.attr<PartialShape>("shape");
  if (!shape.is_compatible(c.input(0))) {
    c.fail(cat("the default value of shape ", c.input(0), " does not fit ", shape, "."));
  }
  c.set_output(0, shape);
}

void ensured_shape(InferenceContext& c) {
  c.set_output(0, c.input(0).merge(c.attr<PartialShape>("shape")));
}

void check_numerics_grad(GradientContext& g) {
  const auto message = g.attr<std::string>("message");
  g.set(0, check_numerics(
               g.grad(),
               "Not a number (NaN) or infinity (Inf) values detected in gradient. " + message));
}

void bitcast_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  const auto from = static_cast<std::int64_t>(dtype_size(c.input_dtype(0)));
  const auto to = static_cast<std::int64_t>(dtype_size(c.attr<DType>("type")));
  if (from == to || !in.has_rank()) return c.set_output(0, in);
  std::vector<std::int64_t> dims = in.dims();
  if (from > to) {
    dims.push_back(from / to);
  } else {
    const std::int64_t last = dims.empty() ? 1 : dims.back();
    if (last != PartialShape::kUnknown && last * from != to) {
      c.fail(cat("Cannot bitcast due to shape. ", last, " does not match ", to / from));
    }
    if (!dims.empty()) dims.pop_back();
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

const OpRegistration kConst{{.name = "Const",
                             .outputs = "output: dtype",
                             .attrs = "value: tensor; dtype: type",
                             .shape = const_shape,
                             .gradient = not_differentiable,
                             .traits = {.kind = NodeKind::kConst},
                             .doc = "A value fixed when the graph was made."}};

const OpRegistration kPlaceholder{{.name = "Placeholder",
                                   .outputs = "output: dtype",
                                   .attrs = "dtype: type; shape: shape = unknown",
                                   .shape = shape_attr,
                                   .traits = {.placeholder = true},
                                   .doc = "A value that each run of the graph must be fed."}};

const OpRegistration kPlaceholderWithDefault{
    {.name = "PlaceholderWithDefault",
     .inputs = "input: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: type; shape: shape",
     .shape = placeholder_with_default_shape,
     .gradient = pass_gradient,
     .traits = {.placeholder = true, .shares_memory = 1},
     .doc = "The input, unless a run of the graph feeds another value."}};

// No shape function: the maker of the node sets the shape of the argument.
const OpRegistration kArg{{.name = "_Arg",
                           .outputs = "output: T",
                           .attrs = "T: type; index: int >= 0",
                           .traits = {.kind = NodeKind::kArg},
                           .doc = "Argument number `index` of a function."}};

const OpRegistration kRetval{{.name = "_Retval",
                              .inputs = "input: T",
                              .attrs = "T: type; index: int >= 0",
                              .shape = shapes::none,
                              .traits = {.kind = NodeKind::kRetval},
                              .doc = "Result number `index` of a function."}};

const OpRegistration kNoOp{{.name = "NoOp",
                            .shape = shapes::none,
                            .doc = "Does nothing: something to hang control edges on."}};

// One that asks for another device than what it reads says where the value is wanted.
bool moves_to_device(const Node& node, const Node& read) {
  return !node.requested_device().empty() && read.kind() != NodeKind::kArg &&
         read.kind() != NodeKind::kConst && node.requested_device() != read.requested_device();
}

bool drop_identity(RewriteContext& r) {
  bool dropped = false;
  for (int i = 0; i < r.node().num_outputs(); ++i) {
    const Output value = r.node().inputs()[static_cast<std::size_t>(i)];
    dropped = (!moves_to_device(r.node(), *value.node) && r.replace_with(value, i)) || dropped;
  }
  return dropped;
}

const OpRegistration kIdentity{
    {.name = "Identity",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = shapes::unchanged,
     .gradient = pass_gradient,
     .traits = {.exact = Exactness::kAlways, .shares_memory = 1, .value = ShapeValue::kSameAsInput},
     .rewrite = drop_identity,
     .doc = "The same value, sharing its memory."}};

const OpRegistration kSnapshot{{.name = "Snapshot",
                                .inputs = "input: T",
                                .outputs = "output: T",
                                .attrs = "T: type",
                                .shape = shapes::unchanged,
                                .gradient = pass_gradient,
                                .traits = {.shares_memory = 1},
                                .doc = "The same value."}};

const OpRegistration kIdentityN{{.name = "IdentityN",
                                 .inputs = "input: T",
                                 .outputs = "output: T",
                                 .attrs = "T: list(type) >= 1",
                                 .shape = same_shapes,
                                 .gradient = each_gradient,
                                 .traits = {.shares_memory = ~std::uint32_t{0}},
                                 .rewrite = drop_identity,
                                 .doc = "The same values."}};

const OpRegistration kStopGradient{{.name = "StopGradient",
                                    .inputs = "input: T",
                                    .outputs = "output: T",
                                    .attrs = "T: type",
                                    .shape = shapes::unchanged,
                                    .gradient = not_differentiable,
                                    .traits = {.shares_memory = 1},
                                    .doc = "The same value, through which no gradient flows."}};

const OpRegistration kPreventGradient{
    {.name = "PreventGradient",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type; message: string = ''",
     .shape = shapes::unchanged,
     .gradient = no_gradient_wanted,
     .traits = {.shares_memory = 1},
     .doc = "The same value; asking for a gradient through it is an error."}};

const OpRegistration kEnsureShape{
    {.name = "EnsureShape",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "shape: shape; T: type",
     .shape = ensured_shape,
     .gradient = pass_gradient,
     .traits = {.shares_memory = 1},
     .doc = "The same value, after checking that it has a shape that fits `shape`."}};

const OpRegistration kCheckNumerics{
    {.name = "CheckNumerics",
     .inputs = "tensor: T",
     .outputs = "output: T",
     .attrs = "T: floats; message: string",
     .shape = shapes::unchanged,
     .gradient = check_numerics_grad,
     .traits = {.stateful = true, .shares_memory = 1},
     .doc = "The same value, after checking that it holds no NaN and no infinity."}};

const OpRegistration kBitcast{
    {.name = "Bitcast",
     .inputs = "input: T",
     .outputs = "output: type",
     .attrs = "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, "
              "int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}; "
              "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, "
              "int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
     .shape = bitcast_shape,
     .gradient = not_differentiable,
     .traits = {.shares_memory = 1},
     .doc = "The same bytes read as another dtype: a smaller one adds a last axis, a larger one "
            "takes the last axis away."}};

}  // namespace

Tensor identity(Tensor input) { return call1(kIdentity, {std::move(input)}); }

std::vector<Tensor> identity_n(const std::vector<Tensor>& inputs) {
  return call(kIdentityN, inputs);
}

Tensor stop_gradient(Tensor input) { return call1(kStopGradient, {std::move(input)}); }

Tensor prevent_gradient(Tensor input, const String& message) {
  return call1(kPreventGradient, {std::move(input)}, {{"message", message}});
}

Tensor ensure_shape(Tensor x, const PartialShape& shape) {
  return call1(kEnsureShape, {std::move(x)}, {{"shape", shape}});
}

Tensor check_numerics(Tensor tensor, const String& message) {
  return call1(kCheckNumerics, {std::move(tensor)}, {{"message", message}});
}

Tensor bitcast(Tensor input, DType type) {
  return call1(kBitcast, {std::move(input)}, {{"type", type}});
}

}  // namespace tandem
