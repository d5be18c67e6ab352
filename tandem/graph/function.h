#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem {

/// A graph with arguments and results: what a trace produces, and what call, If and While nodes
/// run.
///
/// Immutable once made; shared by threads. `body` holds one node of kind arg for each argument.
class TANDEM_EXPORT Function {
 public:
  Function(std::string name, Graph body, std::vector<Node*> args, std::vector<Output> results,
           std::vector<Node*> control_results = {}, bool may_optimize = true);
  ~Function();

  const std::string& name() const { return name_; }
  const Graph& body() const { return body_; }
  const std::vector<Node*>& args() const { return args_; }
  const std::vector<Output>& results() const { return results_; }
  /// Stateful nodes that must run though no result depends on them.
  const std::vector<Node*>& control_results() const { return control_results_; }
  std::vector<DType> arg_dtypes() const;
  std::vector<DType> result_dtypes() const;
  std::vector<PartialShape> result_shapes() const;
  bool stateful() const { return stateful_; }
  /// False: the body runs node by node as it was made.
  bool may_optimize() const { return may_optimize_; }
  std::string to_string() const;

  /// Something derived from this function that upper modules keep with it, such as its execution
  /// plans or its gradient function: made by `make` at first use. No lock is held meanwhile, so two
  /// threads may make it at a time; the first to be done wins, and all get what that one made.
  enum Slot { kPlans, kGradient, kWaits, kSlots };
  template <class T, class Make>
  std::shared_ptr<T> derived(Slot slot, Make make) const {
    DerivedSlot& kept = slots_[slot];
    if (!kept.made.load(std::memory_order_acquire)) {
      std::shared_ptr<T> made = make();
      const std::lock_guard lock(kept.mutex);
      if (!kept.value) kept.value = std::move(made);
      kept.made.store(true, std::memory_order_release);
    }
    return std::static_pointer_cast<T>(kept.value);  // which nothing changes any more
  }

 private:
  struct DerivedSlot {
    std::mutex mutex;  // of those that make it
    std::atomic<bool> made{false};
    std::shared_ptr<void> value;
  };
  std::string name_;
  Graph body_;
  std::vector<Node*> args_;
  std::vector<Output> results_;
  std::vector<Node*> control_results_;
  bool stateful_ = false;
  bool may_optimize_ = true;
  mutable DerivedSlot slots_[kSlots];
};

}  // namespace tandem
