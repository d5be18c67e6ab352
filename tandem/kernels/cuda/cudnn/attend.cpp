#include "tandem/kernels/cuda/cudnn/attend.h"

#include "tandem/device/cuda/internal/stream.h"
#include "tandem/kernels/cuda/cudnn/graph_planner.h"

namespace tandem::cuda {
namespace {

// In the graph's order.
GraphOperands operands_of(const CudnnAttention& job) {
  GraphOperands operands;
  std::size_t count = 0;
  for (const void* address :
       {job.query, job.key, job.value, job.bias, static_cast<const void*>(job.result)}) {
    if (address) operands.tensors[count++] = const_cast<void*>(address);
  }
  return operands;
}

}  // namespace

bool attend_by_cudnn(const KernelCall& call, const CudnnAttention& job,
                     const std::function<void()>& prepare) {
  const GraphOperands operands = operands_of(job);
  const AttentionProblem problem{.type = job.type,
                                 .query = job.query_layout,
                                 .key = job.key_layout,
                                 .value = job.value_layout,
                                 .bias = job.bias_layout,
                                 .result = job.result_layout,
                                 .has_bias = job.bias != nullptr,
                                 .scale = job.scale,
                                 .deterministic = call.deterministic(),
                                 .alignment = alignment_of(operands)};
  const std::shared_ptr<const GraphPlan> plan =
      of_gpu<GraphPlanner<AttentionProblem>>(StreamState::current().gpu()).plan(call, problem, [&] {
        return operands;
      });
  if (!plan) return false;
  if (prepare) prepare();
  run_plan(call, plan, operands);
  return true;
}

}  // namespace tandem::cuda
