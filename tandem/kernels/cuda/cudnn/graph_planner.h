#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tandem/device/cuda/internal/per_gpu.h"
#include "tandem/kernels/cuda/cudnn/plan_chooser.h"

namespace tandem::cuda {

/// The plans of a GPU's problems of one kind, each made once. For a Problem there are
/// `operator<=>`, a member `request()` that makes a PlanRequest, and a function `graph_of(handle,
/// problem)`.
///
/// The choice is made before the first result is handed out and stays, so that equal calls in one
/// process give equal bits. Thread-safe.
template <class Problem>
class GraphPlanner {
 public:
  explicit GraphPlanner(Gpu& gpu) : chooser_(of_gpu<PlanChooser>(gpu)) {}

  /// As PlanChooser::choose.
  std::shared_ptr<const GraphPlan> plan(const KernelCall& call, const Problem& problem,
                                        const std::function<GraphOperands()>& trial) {
    {
      std::lock_guard lock(mutex_);
      const auto found = plans_.find(problem);
      if (found != plans_.end()) return found->second;
    }
    // Another thread may make the same: what is there first stays.
    std::shared_ptr<const GraphPlan> made =
        chooser_.choose(call, graph_of(chooser_.handle(), problem), problem.request(), trial);
    std::lock_guard lock(mutex_);
    if (plans_.size() >= kMaxPlans) plans_.clear();
    return plans_.try_emplace(problem, std::move(made)).first->second;
  }

 private:
  static constexpr std::size_t kMaxPlans = 4096;
  PlanChooser& chooser_;
  std::mutex mutex_;
  std::map<Problem, std::shared_ptr<const GraphPlan>> plans_;  // guarded by mutex_
};

}  // namespace tandem::cuda
