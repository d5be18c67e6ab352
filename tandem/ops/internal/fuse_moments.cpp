#include "tandem/ops/internal/fuse_moments.h"

#include <string_view>

#include "tandem/graph/internal/row_sums.h"
#include "tandem/graph/rewrite.h"

namespace tandem::internal {
namespace {

bool is(const Output& o, std::string_view op) {
  return o.index == 0 && o.node->op().name == op && o.node->control_inputs().empty();
}

// The CPU has no kernel for half.
bool is_fusible(const RewriteContext& r, DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kBFloat16 ||
         (dtype == DType::kHalf && r.launches_cost_time());
}

DType dtype_of_value(const Output& o) { return o.node->output_dtype(o.index); }

// The value that such ops forward.
Output behind_identities(Output o) {
  while (is(o, "StopGradient") || is(o, "Identity")) o = o.node->inputs()[0];
  return o;
}

}  // namespace

bool fuse_moments(RewriteContext& r) {
  const Node& variance = r.node();
  const Output squares = variance.inputs()[0];
  if (!is_fusible(r, variance.output_dtype(0)) || !is(squares, "SquaredDifference") ||
      r.uses().of(squares.node) != 1)
    return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const Output x = squares.node->inputs()[i];
    const Output mean = behind_identities(squares.node->inputs()[1 - i]);
    if (!is(mean, "Mean") || !(mean.node->inputs()[0] == x)) continue;
    const PartialShape& shape = x.node->output_shape(x.index);
    if (!shape.has_rank() || !passes::has_row_sums(shape) ||
        !passes::all_axes_but_last(*mean.node, shape.rank()) ||
        !passes::all_axes_but_last(variance, shape.rank()))
      continue;
    // Where a cast alone makes floats of it, they need not be written.
    const DType before = is(x, "Cast") ? dtype_of_value(x.node->inputs()[0]) : DType::kFloat;
    const bool cast = before != DType::kFloat && is_fusible(r, before);
    Node* both = r.add("_Moments", {cast ? x.node->inputs()[0] : x},
                       {{"Tout", variance.output_dtype(0)},
                        {"keep_mean_dims", mean.node->attr<bool>("keep_dims")},
                        {"keep_variance_dims", variance.attr<bool>("keep_dims")}});
    r.graph().set_output_shape(both, 0, mean.node->output_shape(0));
    r.graph().set_output_shape(both, 1, variance.output_shape(0));
    r.replace(mean, {both, 0});
    r.replace({&r.node(), 0}, {both, 1});
    return true;
  }
  return false;
}

}  // namespace tandem::internal
