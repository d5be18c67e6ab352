#include "tandem/kernels/cuda/cudnn/convolve.h"

#include <algorithm>

#include "tandem/device/cuda/internal/per_gpu.h"
#include "tandem/device/cuda/internal/stream.h"
#include "tandem/kernels/cuda/cudnn/convolution_planner.h"

namespace tandem::cuda {
namespace {

// What engines make use of; addresses of tensors are multiples of it, but for those of slices.
constexpr std::uintptr_t kMaxAlignment = 16;

std::int64_t alignment_of(const CudnnConvolution& job) {
  std::uintptr_t bits = kMaxAlignment;
  for (const void* address : {static_cast<const void*>(job.x), static_cast<const void*>(job.filter),
                              static_cast<const void*>(job.y), job.bias, job.addend})
    bits |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

std::array<std::int64_t, 3> all(const std::int64_t (&values)[3]) {
  return {values[0], values[1], values[2]};
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
          .alignment = alignment_of(job)};
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
  StreamState& stream = StreamState::current();
  ConvolutionAddresses at{
      .x = job.x, .filter = job.filter, .y = job.y, .bias = job.bias, .addend = job.addend};
  const std::shared_ptr<const ConvolutionPlan> plan =
      of_gpu<ConvolutionPlanner>(stream.gpu()).plan(call, problem_of(call, job), at);
  if (!plan) return false;
  prepare();
  if (plan->workspace_bytes() != 0) at.workspace = call.scratch(plan->workspace_bytes());
  Command command;
  command.kind = Command::Kind::kLibrary;
  command.name = "cudnnBackendExecute";
  command.library = plan;
  const void* const parameters[] = {&at};
  const std::size_t sizes[] = {sizeof(at)};
  stream.commands().add_kernel(command, parameters, sizes, 1);
  stream.added();
  return true;
}

}  // namespace tandem::cuda
