#include "tandem/ops/quantization_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void vars_shape(InferenceContext& c) {
  c.require_rank(1, 0);
  c.require_rank(2, 0);
  c.set_output(0, c.input(0));
}

void channels_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  PartialShape out = c.input(0);
  const std::int64_t ends = c.merge_dim(c.input(1).dim(0), c.input(2).dim(0), "min and max");
  if (out.has_rank()) {
    out.set_dim(out.rank() - 1, c.merge_dim(out.dim(-1), ends, "channels and ranges"));
  }
  c.set_output(0, std::move(out));
}

void args_grad_shape(InferenceContext& c) { c.set_output(0, c.input(0).merge(c.input(1))); }

void vars_grad_shape(InferenceContext& c) {
  c.require_rank(2, 0);
  c.require_rank(3, 0);
  c.set_output(0, c.input(0).merge(c.input(1)));
  c.set_output(1, PartialShape::scalar());
  c.set_output(2, PartialShape::scalar());
}

void channels_grad_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank(2, 1);
  c.require_rank(3, 1);
  const PartialShape out = c.input(0).merge(c.input(1));
  std::int64_t ends = c.merge_dim(c.input(2).dim(0), c.input(3).dim(0), "min and max");
  if (out.has_rank()) ends = c.merge_dim(ends, out.dim(-1), "channels and ranges");
  c.set_output(0, out);
  c.set_output(1, internal::vector_of(ends));
  c.set_output(2, internal::vector_of(ends));
}

// Inputs `first` and the one after: scalars, or vectors if there is an axis.
void check_ends(InferenceContext& c, int first) {
  const auto axis = c.attr<std::int64_t>("axis");
  if (axis < -1) c.fail(cat("axis should be at least -1, got ", axis));
  if (axis == -1) {
    c.require_rank(first, 0);
  } else {
    c.require_rank(first, 1);
    c.require_rank_at_least(0, static_cast<int>(axis) + 1);
    c.merge_dim(c.input(first).dim(0),
                c.input(first == 2 ? 1 : 0).has_rank()
                    ? c.input(first == 2 ? 1 : 0).dim(static_cast<int>(axis))
                    : internal::kUnknown,
                "entries of the axis and ranges");
  }
  if (!c.input(first).is_compatible(c.input(first + 1))) {
    c.fail(cat("input_min has shape ", c.input(first), " but input_max ", c.input(first + 1)));
  }
}

void round_trip_shape(InferenceContext& c) {
  check_ends(c, 1);
  c.set_output(0, c.input(0));
}

void round_trip_grad_shape(InferenceContext& c) {
  check_ends(c, 2);
  c.set_output(0, c.input(0).merge(c.input(1)));
  c.set_output(1, c.input(2));
  c.set_output(2, c.input(3));
}

AttrMap attrs_of(const GradientContext& g, std::initializer_list<const char*> names) {
  AttrMap attrs;
  for (const char* name : names) attrs.set(name, *g.find_attr(name));
  return attrs;
}

void args_grad(GradientContext& g) {
  g.set(0, internal::op1("FakeQuantWithMinMaxArgsGradient", {g.grad(), g.input(0)},
                         attrs_of(g, {"min", "max", "num_bits", "narrow_range"})));
}

void set_all(GradientContext& g, std::vector<Tensor> grads) {
  for (int i = 0; i < 3; ++i) {
    if (g.needs(i)) g.set(i, std::move(grads[static_cast<std::size_t>(i)]));
  }
}
void vars_grad(GradientContext& g) {
  set_all(g,
          raw_op("FakeQuantWithMinMaxVarsGradient", {g.grad(), g.input(0), g.input(1), g.input(2)},
                 attrs_of(g, {"num_bits", "narrow_range"})));
}
void channels_grad(GradientContext& g) {
  set_all(g, raw_op("FakeQuantWithMinMaxVarsPerChannelGradient",
                    {g.grad(), g.input(0), g.input(1), g.input(2)},
                    attrs_of(g, {"num_bits", "narrow_range"})));
}

void straight_grad(GradientContext& g) { g.set(0, g.grad()); }

void round_trip_v4_grad(GradientContext& g) {
  set_all(g, raw_op("QuantizeAndDequantizeV4Grad", {g.grad(), g.input(0), g.input(1), g.input(2)},
                    attrs_of(g, {"axis"})));
}

constexpr const char* kArgsAttrs =
    "min: float = -6; max: float = 6; num_bits: int = 8; narrow_range: bool = false";
constexpr const char* kVarsAttrs = "num_bits: int = 8; narrow_range: bool = false";
constexpr const char* kRoundTripAttrs =
    "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; T: {bfloat16, half, "
    "float, double}; round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'; narrow_range: bool "
    "= false; axis: int = -1";
constexpr const char* kGradients =
    "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float";
constexpr const char* kFakeDoc = "Values rounded to the levels of integers in [min, max].";
constexpr const char* kFakeGradDoc = "The gradient of the op of that name.";
constexpr const char* kRoundTripDoc = "Values rounded to the levels of integers of num_bits.";

constexpr OpDecl decl(const char* name, const char* inputs, const char* outputs, const char* attrs,
                      ShapeFn shape, GradientFn gradient, const char* doc) {
  return {.name = name,
          .inputs = inputs,
          .outputs = outputs,
          .attrs = attrs,
          .shape = shape,
          .gradient = gradient,
          .doc = doc};
}

const OpRegistration kArgs(decl("FakeQuantWithMinMaxArgs", "inputs: float", "outputs: float",
                                kArgsAttrs, shapes::unchanged, args_grad, kFakeDoc));
const OpRegistration kArgsGrad(decl("FakeQuantWithMinMaxArgsGradient",
                                    "gradients: float, inputs: float", "backprops: float",
                                    kArgsAttrs, args_grad_shape, nullptr, kFakeGradDoc));
const OpRegistration kVars(decl("FakeQuantWithMinMaxVars", "inputs: float, min: float, max: float",
                                "outputs: float", kVarsAttrs, vars_shape, vars_grad, kFakeDoc));
const OpRegistration kVarsGrad(decl("FakeQuantWithMinMaxVarsGradient",
                                    "gradients: float, inputs: float, min: float, max: float",
                                    kGradients, kVarsAttrs, vars_grad_shape, nullptr,
                                    kFakeGradDoc));
const OpRegistration kChannels(decl("FakeQuantWithMinMaxVarsPerChannel",
                                    "inputs: float, min: float, max: float", "outputs: float",
                                    kVarsAttrs, channels_shape, channels_grad, kFakeDoc));
const OpRegistration kChannelsGrad(decl("FakeQuantWithMinMaxVarsPerChannelGradient",
                                        "gradients: float, inputs: float, min: float, max: float",
                                        "backprops_wrt_input: float, backprop_wrt_min: float, "
                                        "backprop_wrt_max: float",
                                        kVarsAttrs, channels_grad_shape, nullptr, kFakeGradDoc));
const OpRegistration kV2(decl("QuantizeAndDequantizeV2", "input: T, input_min: T, input_max: T",
                              "output: T", kRoundTripAttrs, round_trip_shape, straight_grad,
                              kRoundTripDoc));
const OpRegistration kV3(decl("QuantizeAndDequantizeV3",
                              "input: T, input_min: T, input_max: T, num_bits: int32", "output: T",
                              "signed_input: bool = true; range_given: bool = true; T: {bfloat16, "
                              "half, float, double}; narrow_range: bool = false; axis: int = -1",
                              round_trip_shape, straight_grad, kRoundTripDoc));
const OpRegistration kV4(decl("QuantizeAndDequantizeV4", "input: T, input_min: T, input_max: T",
                              "output: T", kRoundTripAttrs, round_trip_shape, round_trip_v4_grad,
                              kRoundTripDoc));
const OpRegistration kV4Grad(decl("QuantizeAndDequantizeV4Grad",
                                  "gradients: T, input: T, input_min: T, input_max: T",
                                  "input_backprop: T, input_min_backprop: T, input_max_backprop: T",
                                  "T: {bfloat16, half, float, double}; axis: int = -1",
                                  round_trip_grad_shape, nullptr, kFakeGradDoc));

AttrMap attrs_of(const quantization::FakeQuantOptions& options) {
  return {{"num_bits", options.num_bits}, {"narrow_range", options.narrow_range}};
}

}  // namespace

namespace quantization {

Tensor fake_quant_with_min_max_args(Tensor inputs, float min, float max,
                                    const FakeQuantOptions& options) {
  AttrMap attrs = attrs_of(options);
  attrs.set("min", min);
  attrs.set("max", max);
  return call1(kArgs, {std::move(inputs)}, attrs);
}
Tensor fake_quant_with_min_max_vars(Tensor inputs, Tensor min, Tensor max,
                                    const FakeQuantOptions& options) {
  return call1(kVars, {std::move(inputs), std::move(min), std::move(max)}, attrs_of(options));
}
Tensor fake_quant_with_min_max_vars_per_channel(Tensor inputs, Tensor min, Tensor max,
                                                const FakeQuantOptions& options) {
  return call1(kChannels, {std::move(inputs), std::move(min), std::move(max)}, attrs_of(options));
}
Tensor quantize_and_dequantize(Tensor input, Tensor input_min, Tensor input_max,
                               const QuantizeOptions& options) {
  return call1(kV4, {std::move(input), std::move(input_min), std::move(input_max)},
               {{"signed_input", options.signed_input},
                {"num_bits", options.num_bits},
                {"range_given", options.range_given},
                {"round_mode", options.round_mode},
                {"narrow_range", options.narrow_range},
                {"axis", options.axis}});
}

}  // namespace quantization
}  // namespace tandem
