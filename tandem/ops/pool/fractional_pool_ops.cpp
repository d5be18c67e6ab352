// Pooling over windows of unlike sizes, whose edges are drawn: ops that graphs are imported for.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::op1;

void pooled_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  const auto& ratio = c.attr<std::vector<float>>("pooling_ratio");
  if (ratio.size() != 4) c.fail("pooling_ratio field must specify 4 dimensions");
  std::vector<std::int64_t> dims(4, PartialShape::kUnknown);
  for (int i = 0; i < 4 && c.input(0).has_rank(); ++i) {
    const float by = ratio[static_cast<std::size_t>(i)];
    const std::int64_t size = c.input(0).dim(i);
    if (size < 0 || !(by >= 1)) continue;  // the kernel refuses other ratios
    const float windows = std::floor(static_cast<float>(size) / by);
    // Counted like in the kernel; the largest sizes are more than themselves as a float.
    const bool pooled = (i == 1 || i == 2) && windows < 0x1p63f;
    dims[static_cast<std::size_t>(i)] =
        pooled ? std::min(size, static_cast<std::int64_t>(windows)) : size;
  }
  for (const int axis : {1, 2}) {
    const std::int64_t windows = dims[static_cast<std::size_t>(axis)];
    c.set_output(axis, PartialShape({windows < 0 ? PartialShape::kUnknown : windows + 1}));
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

void max_grad_shape(InferenceContext& c) {
  for (const int i : {0, 1, 2}) c.require_rank(i, 4);
  for (const int i : {3, 4}) c.require_rank(i, 1);
  c.set_output(0, c.input(0).has_rank() ? c.input(0) : PartialShape::unknown_of_rank(4));
}

void avg_grad_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 4);
  for (const int i : {2, 3}) c.require_rank(i, 1);
  const PartialShape shape = c.input_as_shape(0);
  if (shape.has_rank() && shape.rank() != 4) {
    c.fail(cat("orig_input_tensor_shape must have 4 elements, but has ", shape.rank()));
  }
  c.set_output(0, shape.has_rank() ? shape : PartialShape::unknown_of_rank(4));
}

void max_gradient(GradientContext& g) {
  g.set(0,
        op1("FractionalMaxPoolGrad", {g.input(0), g.output(0), g.grad(0), g.output(1), g.output(2)},
            {{"overlapping", g.attr<bool>("overlapping")}}));
}

void avg_gradient(GradientContext& g) {
  g.set(0, op1("FractionalAvgPoolGrad",
               {shape(g.input(0), int64), g.grad(0), g.output(1), g.output(2)},
               {{"overlapping", g.attr<bool>("overlapping")}}));
}

#define TANDEM_FRACTIONAL_POOL                                                           \
  "pooling_ratio: list(float); pseudo_random: bool = false; overlapping: bool = false; " \
  "deterministic: bool = false; seed: int = 0; seed2: int = 0; T: {float, double, int32, int64}"

const OpRegistration kMax{
    {.name = "FractionalMaxPool",
     .inputs = "value: T",
     .outputs = "output: T, row_pooling_sequence: int64, col_pooling_sequence: int64",
     .attrs = TANDEM_FRACTIONAL_POOL,
     .shape = pooled_shape,
     .gradient = max_gradient,
     .traits = {.stateful = true, .keeps_state = true},
     .doc = "The largest value of each window; the windows' edges are drawn, so that there are "
            "1 / pooling_ratio of them on an axis. Overlapping windows share their edges."}};

const OpRegistration kAvg{
    {.name = "FractionalAvgPool",
     .inputs = "value: T",
     .outputs = "output: T, row_pooling_sequence: int64, col_pooling_sequence: int64",
     .attrs = TANDEM_FRACTIONAL_POOL,
     .shape = pooled_shape,
     .gradient = avg_gradient,
     .traits = {.stateful = true, .keeps_state = true},
     .doc = "The mean of each window of FractionalMaxPool's kind."}};

const OpRegistration kMaxGrad{
    {.name = "FractionalMaxPoolGrad",
     .inputs = "orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64, "
               "col_pooling_sequence: int64",
     .outputs = "output: T",
     .attrs = "overlapping: bool = false; T: {float, double, int32, int64}",
     .shape = max_grad_shape,
     .doc = "The gradient of FractionalMaxPool: each window's goes to its first largest element."}};

const OpRegistration kAvgGrad{
    {.name = "FractionalAvgPoolGrad",
     .inputs = "orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, "
               "col_pooling_sequence: int64",
     .outputs = "output: T",
     .attrs = "overlapping: bool = false; T: {float, double, int32, int64}",
     .shape = avg_grad_shape,
     .traits = {.host_inputs = 0b1},
     .doc = "The gradient of FractionalAvgPool: each window's in equal shares."}};

}  // namespace
}  // namespace tandem
