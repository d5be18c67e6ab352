#include "tandem/ops/quantize_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

// Inputs 1 and 2: scalars, or vectors if there is an axis.
void check_ends(InferenceContext& c) {
  const auto axis = c.attr<std::int64_t>("axis");
  if (axis < -1) c.fail(cat("axis should be at least -1, got ", axis));
  for (int i = 1; i < 3; ++i) c.require_rank(i, axis == -1 ? 0 : 1);
  if (axis == -1) return;
  c.require_rank_at_least(0, static_cast<int>(axis) + 1);
  std::int64_t size = c.merge_dim(c.input(1).dim(0), c.input(2).dim(0), "min_range and max_range");
  if (c.input(0).has_rank()) {
    c.merge_dim(size, c.input(0).dim(static_cast<int>(axis)), "entries of the axis and ranges");
  }
}

void quantize_shape(InferenceContext& c) {
  check_ends(c);
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(1));
  c.set_output(2, c.input(2));
}

void dequantize_shape(InferenceContext& c) {
  check_ends(c);
  c.set_output(0, c.input(0));
}

const OpRegistration kQuantize{
    {.name = "QuantizeV2",
     .inputs = "input: float, min_range: float, max_range: float",
     .outputs = "output: T, output_min: float, output_max: float",
     .attrs = "T: {qint8, quint8, qint32, qint16, quint16}; mode: {'MIN_COMBINED', 'MIN_FIRST', "
              "'SCALED'} = 'MIN_COMBINED'; round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = "
              "'HALF_AWAY_FROM_ZERO'; narrow_range: bool = false; axis: int = -1; "
              "ensure_minimum_range: float = 0.01",
     .shape = quantize_shape,
     .gradient = not_differentiable,
     .doc = "Floating values as integers of a range."}};

const OpRegistration kDequantize{
    {.name = "Dequantize",
     .inputs = "input: T, min_range: float, max_range: float",
     .outputs = "output: dtype",
     .attrs = "T: {qint8, quint8, qint32, qint16, quint16}; mode: {'MIN_COMBINED', 'MIN_FIRST', "
              "'SCALED'} = 'MIN_COMBINED'; narrow_range: bool = false; axis: int = -1; dtype: "
              "{bfloat16, float} = float",
     .shape = dequantize_shape,
     .gradient = not_differentiable,
     .doc = "The floating values that integers of a range stand for."}};

}  // namespace

namespace quantization {

Quantized quantize(Tensor input, Tensor min_range, Tensor max_range, DType dtype,
                   const QuantizationMode& mode, const String& round_mode,
                   float ensure_minimum_range) {
  auto out = call(kQuantize, {std::move(input), std::move(min_range), std::move(max_range)},
                  {{"T", dtype},
                   {"mode", mode.mode},
                   {"round_mode", round_mode},
                   {"narrow_range", mode.narrow_range},
                   {"axis", mode.axis},
                   {"ensure_minimum_range", ensure_minimum_range}});
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

Tensor dequantize(Tensor input, Tensor min_range, Tensor max_range, const QuantizationMode& mode,
                  DType dtype) {
  return call1(kDequantize, {std::move(input), std::move(min_range), std::move(max_range)},
               {{"mode", mode.mode},
                {"narrow_range", mode.narrow_range},
                {"axis", mode.axis},
                {"dtype", dtype}});
}

}  // namespace quantization
}  // namespace tandem
