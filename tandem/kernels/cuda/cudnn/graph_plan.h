#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>

#include "tandem/device/cuda/internal/library_call.h"
#include "tandem/kernels/cuda/cudnn/operation_graph.h"

namespace tandem::cuda {

/// A handle of the library's, which serves one thread at a time.
struct CudnnHandle {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

/// The addresses that a graph is executed with; the parameter of the command.
struct GraphOperands {
  static constexpr std::size_t kMaxTensors = 6;
  std::array<void*, kMaxTensors> tensors{};  ///< in the order of OperationGraph::operands()
  void* workspace = nullptr;
};

/// What the addresses of all tensors are multiples of, as far as engines make use of it.
std::int64_t alignment_of(const GraphOperands& operands);

/// A graph with its engine chosen.
class GraphPlan final : public LibraryCall {
 public:
  /// Throws Failure.
  GraphPlan(std::shared_ptr<CudnnHandle> handle, std::shared_ptr<const OperationGraph> graph,
            Descriptor engine, Descriptor plan);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  void issue(CUstream stream, void* const* values) const override;
  void execute(CUstream stream, const GraphOperands& operands) const;

 private:
  const std::shared_ptr<CudnnHandle> handle_;
  const std::shared_ptr<const OperationGraph> graph_;  // the plan may refer to it
  const Descriptor engine_, plan_;
  const std::size_t workspace_bytes_;
};

/// Has the running kernel's stream execute the plan; the workspace is filled in. Throws Failure.
void run_plan(const KernelCall& call, const std::shared_ptr<const GraphPlan>& plan,
              GraphOperands operands);

}  // namespace tandem::cuda
