#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/kernels/cuda/cudnn/convolution_plan.h"
#include "tandem/kernels/cuda/support/tuner.h"

namespace tandem::cuda {

/// The plans of a GPU's convolutions. cuDNN is asked for engines once for each problem; each runs
/// once on the operands at hand and what was the fastest is kept in a file. Under op determinism
/// nothing is measured, and engines whose results may differ from run to run are left out; without
/// TensorFloat-32 so are those that round floats to it.
///
/// The choice is made before the first result is handed out and stays, so that equal calls in one
/// process give equal bits. Thread-safe.
class ConvolutionPlanner {
 public:
  explicit ConvolutionPlanner(Gpu& gpu);

  /// Within a kernel, whose stream measures. Null if cuDNN has no engine for the problem. Throws
  /// Failure.
  std::shared_ptr<const ConvolutionPlan> plan(const KernelCall& call,
                                              const ConvolutionProblem& problem,
                                              const ConvolutionAddresses& at);

 private:
  using Plan = std::shared_ptr<const ConvolutionPlan>;
  struct Engine {
    Descriptor config;
    std::string name;
  };
  Plan make(const KernelCall& call, const ConvolutionProblem& problem,
            const ConvolutionAddresses& at);
  void add_engines(const ConvolutionGraph& graph, const ConvolutionProblem& problem,
                   cudnnBackendHeurMode_t mode, std::vector<Engine>& engines) const;
  Plan finalized(std::shared_ptr<const ConvolutionGraph> graph, const ConvolutionProblem& problem,
                 Engine& engine) const;
  std::size_t fastest(const KernelCall& call, const ConvolutionProblem& problem,
                      const std::vector<Plan>& plans, const std::vector<std::string>& names,
                      const ConvolutionAddresses& at);

  const std::shared_ptr<CudnnHandle> handle_ = std::make_shared<CudnnHandle>();
  Tuner tuner_;
  std::mutex mutex_;
  std::map<ConvolutionProblem, Plan> plans_;  // guarded by mutex_
};

}  // namespace tandem::cuda
