#include "tandem/kernels/cuda/cudnn/convolve.h"

#include "tandem/device/cuda/internal/stream.h"
#include "tandem/kernels/cuda/cudnn/convolution_graph.h"
#include "tandem/kernels/cuda/cudnn/graph_planner.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

std::array<std::int64_t, 3> all(const std::int64_t (&values)[3]) {
  return {values[0], values[1], values[2]};
}

// In the graph's order.
GraphOperands operands_of(const CudnnConvolution& job, void* y) {
  GraphOperands operands;
  std::size_t count = 0;
  const auto add = [&](const void* address) {
    operands.tensors[count++] = const_cast<void*>(address);
  };
  add(job.x);
  add(job.filter);
  if (job.bias) add(job.bias);
  if (job.addend) add(job.addend);
  add(y);
  return operands;
}

ConvolutionProblem problem_of(const KernelCall& call, const CudnnConvolution& job) {
  const Convolution& c = job.convolution;
  return {.part = job.part,
          .type = job.type,
          .channels_last = c.channels_last(),
          .volumes = c.x.rank == 5,
          .has_bias = job.bias != nullptr,
          .has_addend = job.addend != nullptr,
          .activation = job.activation,
          .tensor_float_32 = job.type == Type::kFloat && call.tensor_float_32(),
          .deterministic = call.deterministic(),
          .batch = c.x.batch,
          .in = c.x.channels,
          .out = c.y.channels,
          .filter_in = c.filter_in,
          .x = all(c.x.size),
          .y = all(c.y.size),
          .window = all(c.window.size),
          .stride = all(c.window.stride),
          .dilation = all(c.window.dilation),
          .pad = all(c.window.pad),
          .alignment = alignment_of(operands_of(job, job.y))};
}

// What cuDNN's own operations compute as ours do.
bool is_operation_of_cudnn(Activation activation) {
  return activation == Activation::kNone || activation == Activation::kRelu ||
         activation == Activation::kGeluTanh;
}

}  // namespace

bool is_cudnn_usable() { return cudnn().usable(); }

bool convolve_by_cudnn(const KernelCall& call, const CudnnConvolution& job,
                       const std::function<void()>& prepare) {
  if (!is_operation_of_cudnn(job.activation)) return false;
  const ConvolutionProblem problem = problem_of(call, job);
  // The addend may be the result's memory, which is then not to be written before the result is
  // wanted.
  const auto trial = [&] {
    if (!job.addend) return operands_of(job, job.y);
    const std::int64_t count =
        problem.batch * problem.out * problem.y[0] * problem.y[1] * problem.y[2];
    return operands_of(job, call.scratch(static_cast<std::size_t>(count) * size_of(job.type)));
  };
  const std::shared_ptr<const GraphPlan> plan =
      of_gpu<GraphPlanner<ConvolutionProblem>>(StreamState::current().gpu())
          .plan(call, problem, trial);
  if (!plan) return false;
  prepare();
  run_plan(call, plan, operands_of(job, job.y));
  return true;
}

}  // namespace tandem::cuda
