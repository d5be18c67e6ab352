#include "tandem/runtime/optimized.h"

#include "tandem/core/error.h"
#include "tandem/graph/internal/frames.h"
#include "tandem/runtime/config/default_options.h"
#include "tandem/runtime/execute/device_fusion.h"
#include "tandem/runtime/execute/kernel_evaluator.h"
#include "tandem/runtime/execute/prepare.h"
#include "tandem/runtime/runtime.h"

namespace tandem {

namespace {

MutableFunction changed(const Function& function, const std::vector<PartialShape>& arg_shapes,
                        OptimizerOptions options) {
  if (arg_shapes.size() != function.args().size()) {
    throw InvalidArgumentError(cat("Function '", function.name(), "' takes ",
                                   function.args().size(), " arguments, but there are ",
                                   arg_shapes.size(), " shapes."));
  }
  Runtime& runtime = Runtime::current();
  MutableFunction body(function);
  prepare(body, runtime.ops());
  if (!function.may_optimize() || options.disable_meta_optimizer) return body;
  KernelEvaluator evaluator(runtime);
  optimize(body, runtime.ops(), evaluator, options);
  // Graphs with control flow run as they are for all shapes.
  if (!holds_control_flow(body.graph))
    specialize(body, arg_shapes, runtime.ops(), evaluator, options);
  return body;
}

}  // namespace

MutableFunction optimized(const Function& function, const std::vector<PartialShape>& arg_shapes) {
  return changed(function, arg_shapes, default_options().optimizer());
}

MutableFunction simplified(const Function& function, const std::vector<PartialShape>& arg_shapes) {
  return changed(function, arg_shapes, default_options().optimizer().without_fusion());
}

void fuse_on_devices(MutableFunction& function, Placement& placement) {
  Runtime& runtime = Runtime::current();
  KernelEvaluator evaluator(runtime);
  fuse_placed(function, placement, runtime.ops(), runtime.kernels(), evaluator,
              default_options().optimizer());
}

}  // namespace tandem
