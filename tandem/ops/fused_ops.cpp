// Several ops in one, as optimisers write them. Called by name.

#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

void fused_matmul_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  const bool turn_a = c.attr<bool>("transpose_a"), turn_b = c.attr<bool>("transpose_b");
  const PartialShape &a = c.input(0), &b = c.input(1);
  c.merge_dim(a.dim(turn_a ? 0 : 1), b.dim(turn_b ? 1 : 0), "the inner sizes");
  c.set_output(0, PartialShape({a.dim(turn_a ? 1 : 0), b.dim(turn_b ? 0 : 1)}));
}

const OpRegistration kFusedMatMul{
    {.name = "_FusedMatMul",
     .inputs = "a: T, b: T, args: num_args * T",
     .outputs = "product: T",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, float}; "
              "num_args: int >= 0; fused_ops: list(string) = []; epsilon: float = 0.0001; "
              "leakyrelu_alpha: float = 0.2",
     .shape = fused_matmul_shape,
     .doc = "A product of matrices, then BiasAdd, perhaps Add of a matrix, and an activation, as "
            "fused_ops lists them; args are the bias and the matrix."}};

}  // namespace
}  // namespace tandem
