// The place of the largest or smallest value: ArgMax, ArgMin.

#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

void arg_shape(InferenceContext& c) {
  c.require_rank(1, 0);
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  const auto axis = c.input_ints(1);
  if (in.rank() == 0) c.fail("a scalar has no axis along which to look.");
  if (!axis) return c.set_output(0, PartialShape::unknown_of_rank(in.rank() - 1));
  const std::int64_t wanted = axis->front();
  if (wanted < -in.rank() || wanted >= in.rank()) {
    c.fail(
        cat("Dimension (", wanted, ") must be in the range [", -in.rank(), ", ", in.rank(), ")."));
  }
  std::vector<std::int64_t> dims = in.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(wanted < 0 ? wanted + in.rank() : wanted));
  c.set_output(0, PartialShape(std::move(dims)));
}

const OpRegistration kArgMax{
    {.name = "ArgMax",
     .inputs = "input: T, dimension: Tidx",
     .outputs = "output: output_type",
     .attrs = "T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, "
              "uint32, uint64, bool}; Tidx: {int16, int32, int64} = int32; output_type: "
              "{int16, uint16, int32, int64} = int64",
     .shape = arg_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b10},
     .doc = "The index of the first largest value along an axis."}};

const OpRegistration kArgMin{
    {.name = "ArgMin",
     .inputs = "input: T, dimension: Tidx",
     .outputs = "output: output_type",
     .attrs = "T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, "
              "uint32, uint64, bool}; Tidx: index = int32; output_type: index = int64",
     .shape = arg_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b10},
     .doc = "The index of the first smallest value along an axis."}};

}  // namespace

Tensor argmax(Tensor x, std::int64_t axis, DType output_type) {
  return call1(kArgMax, {std::move(x), internal::index_scalar(axis)},
               {{"output_type", output_type}});
}

Tensor argmin(Tensor x, std::int64_t axis, DType output_type) {
  return call1(kArgMin, {std::move(x), internal::index_scalar(axis)},
               {{"output_type", output_type}});
}

}  // namespace tandem
