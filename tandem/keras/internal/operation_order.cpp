#include "tandem/keras/internal/operation_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

namespace tandem::keras::internal {
namespace {

// A call of a layer, or an op that computes a mask. An operation is a layer, which may be called
// several times, or such an op.
struct Step {
  const CallNode* call = nullptr;
  const MaskOp* mask = nullptr;

  const void* id() const { return call ? static_cast<const void*>(call) : mask; }
  const void* operation() const {
    return call ? static_cast<const void*>(call->layer.get()) : mask;
  }
};

class Walk {
 public:
  Walk(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs)
      : inputs_(inputs) {
    for (const KerasTensor& output : outputs) visit(output);
    measure();
    for (const KerasTensor& input : inputs) {  // those that no output uses
      const CallNode* node = input.node().get();
      if (!node->inputs.empty() || finished_.count(node) > 0) continue;
      operations_.push_back({{.call = node}, -1});
      depths_.emplace(node->layer.get(), 0);
    }
  }

  OperationOrder order() {
    std::stable_sort(operations_.begin(), operations_.end(), [&](const auto& a, const auto& b) {
      const int depth_of_a = depths_[a.first.operation()],
                depth_of_b = depths_[b.first.operation()];
      return depth_of_a != depth_of_b ? depth_of_a > depth_of_b : a.second < b.second;
    });
    OperationOrder result;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const CallNode* call = operations_[i].first.call;
      if (!call) continue;
      result.layers.push_back(call->layer);
      result.positions.push_back(static_cast<int>(i));
    }
    std::set<int> taken;
    for (const Step& step : steps_) {
      if (step.call) {
        result.in_a_row = result.in_a_row && taken.insert(step_depths_[step.id()]).second;
      }
    }
    return result;
  }

 private:
  void visit(const KerasTensor& tensor) {
    const bool given = std::any_of(inputs_.begin(), inputs_.end(),
                                   [&](const KerasTensor& t) { return t.is_same(tensor); });
    if (given && !tensor.node()->inputs.empty()) return;
    visit(Step{.call = tensor.node().get()});
  }

  void visit(const Step& step) {
    if (!finished_.insert(step.id()).second) return;
    if (seen_.insert(step.operation()).second)
      operations_.emplace_back(step, static_cast<int>(operations_.size()));
    each_source(step, [this](const auto& source) { visit(source); });
    steps_.push_back(step);
  }
  void visit(const MaskValue& mask) {
    if (const KerasTensor* given = mask->given()) return visit(*given);
    visit(Step{.mask = mask.get()});
  }

  // What a step reads, as Keras finds it.
  template <class F>
  void each_source(const Step& step, const F& f) {
    if (step.mask) {
      for (const auto& input : step.mask->inputs) std::visit(f, input);
      return;
    }
    for (const KerasTensor& input : step.call->inputs) f(input);
    for (const MaskValue& mask : step.call->mask_inputs) f(mask);
  }

  // How far steps and operations are from the outputs.
  void measure() {
    for (auto at = steps_.rbegin(); at != steps_.rend(); ++at) {
      const int depth = std::max(step_depths_[at->id()], depths_[at->operation()]);
      step_depths_[at->id()] = depth;
      depths_[at->operation()] = depth;
      each_source(*at, [&](const auto& source) {
        int& before = step_depths_[id_of(source)];
        before = std::max(before, depth + 1);
      });
    }
  }
  static const void* id_of(const KerasTensor& tensor) { return tensor.node().get(); }
  static const void* id_of(const MaskValue& mask) {
    const KerasTensor* given = mask->given();
    return given ? id_of(*given) : mask.get();
  }

  const std::vector<KerasTensor>& inputs_;
  std::vector<Step> steps_;                       // each after what it reads
  std::vector<std::pair<Step, int>> operations_;  // with the order in which they were found
  std::unordered_set<const void*> finished_, seen_;
  std::map<const void*, int> step_depths_, depths_;
};

}  // namespace

OperationOrder order_operations(const std::vector<KerasTensor>& inputs,
                                const std::vector<KerasTensor>& outputs) {
  return Walk(inputs, outputs).order();
}

}  // namespace tandem::keras::internal
