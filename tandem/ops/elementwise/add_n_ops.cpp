// Sums of any number of tensors.

#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/internal/merged_shape.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void add_n_grad(GradientContext& g) {
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (g.needs(i)) g.set(i, g.grad());
  }
}

bool single_input(RewriteContext& r) {
  return r.node().inputs().size() == 1 && r.replace_with(r.node().inputs()[0]);
}

const OpRegistration kAddN{
    {.name = "AddN",
     .inputs = "inputs: N * T",
     .outputs = "sum: T",
     .attrs = "N: int >= 1; T: {float, double, int32, uint8, int16, int8, complex64, int64, "
              "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, "
              "uint32, uint64, variant}",
     .shape = shapes::merged,
     .gradient = add_n_grad,
     .traits = {.elementwise = true, .may_reuse = 0b11},
     .rewrite = single_input,
     .doc = "The sum of tensors of one shape."}};

const OpRegistration kAccumulateN{
    {.name = "AccumulateNV2",
     .inputs = "inputs: N * T",
     .outputs = "sum: T",
     .attrs = "N: int >= 1; T: numbers; shape: shape",
     .shape = shapes::merged,
     .gradient = add_n_grad,
     .traits = {.elementwise = true, .may_reuse = 0b11},
     .rewrite = single_input,
     .doc = "The sum of tensors of one shape, which `shape` may give."}};

void check_inputs(const char* function, const std::vector<Tensor>& inputs) {
  if (inputs.empty()) throw InvalidArgumentError(cat(function, " needs at least one tensor."));
}

}  // namespace

Tensor add_n(const std::vector<Tensor>& inputs) {
  check_inputs("add_n", inputs);
  return inputs.size() == 1 ? inputs[0] : call1(kAddN, inputs);
}

namespace math {

Tensor accumulate_n(const std::vector<Tensor>& inputs, const PartialShape& shape) {
  check_inputs("accumulate_n", inputs);
  PartialShape known = shape;
  for (const Tensor& x : inputs) known = known.merge(x.partial_shape());
  return inputs.size() == 1 ? inputs[0] : call1(kAccumulateN, inputs, {{"shape", known}});
}

}  // namespace math
}  // namespace tandem
