#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/kernels/cuda/cudnn/graph_plan.h"
#include "tandem/kernels/cuda/support/tuner.h"

namespace tandem::cuda {

/// What engines of a problem must do, and its name in the file of choices.
struct PlanRequest {
  std::string text;
  bool exact = false;          ///< floats are not rounded to fewer bits
  bool deterministic = false;  ///< the same bits in every run
};

/// Chooses engines for graphs on one GPU. cuDNN is asked for engines; each runs once on operands at
/// hand and what was the fastest is kept in a file. Under op determinism nothing is measured, and
/// engines whose results may differ from run to run are left out; exact problems leave out those
/// that round floats. Thread-safe.
class PlanChooser {
 public:
  explicit PlanChooser(Gpu& gpu);

  cudnnHandle_t handle() const { return handle_->handle; }
  /// Within a kernel, whose stream measures. `trial` gives operands whose result may be written.
  /// Null if cuDNN has no engine for the graph. Throws Failure.
  std::shared_ptr<const GraphPlan> choose(const KernelCall& call,
                                          const std::shared_ptr<const OperationGraph>& graph,
                                          const PlanRequest& request,
                                          const std::function<GraphOperands()>& trial);

 private:
  using Plan = std::shared_ptr<const GraphPlan>;
  struct Engine {
    Descriptor config;
    std::string name;
  };
  void add_engines(const OperationGraph& graph, const PlanRequest& request,
                   cudnnBackendHeurMode_t mode, std::vector<Engine>& engines) const;
  Plan finalized(const std::shared_ptr<const OperationGraph>& graph, Engine& engine) const;
  std::size_t fastest(const KernelCall& call, const PlanRequest& request,
                      const std::vector<Plan>& plans, const std::vector<std::string>& names,
                      GraphOperands trial);

  const std::shared_ptr<CudnnHandle> handle_ = std::make_shared<CudnnHandle>();
  Tuner tuner_;
};

}  // namespace tandem::cuda
