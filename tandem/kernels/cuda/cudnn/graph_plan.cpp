#include "tandem/kernels/cuda/cudnn/graph_plan.h"

#include <utility>
#include <vector>

#include "tandem/device/cuda/internal/stream.h"

namespace tandem::cuda {

std::int64_t alignment_of(const GraphOperands& operands) {
  constexpr std::uintptr_t kMax = 16;  // addresses are multiples of it, but for those of slices
  std::uintptr_t bits = kMax;
  for (const void* address : operands.tensors) bits |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

GraphPlan::GraphPlan(std::shared_ptr<CudnnHandle> handle,
                     std::shared_ptr<const OperationGraph> graph, Descriptor engine,
                     Descriptor plan)
    : handle_(std::move(handle)),
      graph_(std::move(graph)),
      engine_(std::move(engine)),
      plan_(std::move(plan)),
      workspace_bytes_(
          static_cast<std::size_t>(plan_.get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE))) {}

void GraphPlan::issue(CUstream stream, void* const* values) const {
  execute(stream, *static_cast<const GraphOperands*>(values[0]));
}

void GraphPlan::execute(CUstream stream, const GraphOperands& operands) const {
  std::vector<std::int64_t> ids = graph_->operands();
  std::vector<void*> pointers(operands.tensors.begin(),
                              operands.tensors.begin() + static_cast<std::ptrdiff_t>(ids.size()));
  if (graph_->number_id()) {
    ids.push_back(*graph_->number_id());
    pointers.push_back(const_cast<float*>(&graph_->number()));
  }
  void* const workspace[] = {operands.workspace};
  Descriptor variants(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  variants.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids))
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(pointers))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(workspace))
      .finalize();
  std::lock_guard lock(handle_->mutex);
  check(cudnn().p_cudnnSetStream(handle_->handle, stream), "cudnnSetStream");
  check(cudnn().p_cudnnBackendExecute(handle_->handle, plan_.handle(), variants.handle()),
        "cudnnBackendExecute");
}

void run_plan(const KernelCall& call, const std::shared_ptr<const GraphPlan>& plan,
              GraphOperands operands) {
  if (plan->workspace_bytes() != 0) operands.workspace = call.scratch(plan->workspace_bytes());
  StreamState& stream = StreamState::current();
  Command command;
  command.kind = Command::Kind::kLibrary;
  command.name = "cudnnBackendExecute";
  command.library = plan;
  const void* const parameters[] = {&operands};
  const std::size_t sizes[] = {sizeof(operands)};
  stream.commands().add_kernel(command, parameters, sizes, 1);
  stream.added();
}

}  // namespace tandem::cuda
