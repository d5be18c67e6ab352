#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tandem/graph/passes.h"

namespace tandem {

class Runtime;

/// Folds constants by running the node's kernel.
class KernelEvaluator final : public Evaluator {
 public:
  explicit KernelEvaluator(Runtime& runtime) : runtime_(runtime) {}
  std::optional<std::vector<Array>> evaluate(const Node& node,
                                             std::span<const Array> inputs) override;
  bool has_float_loops(const Node& node) override;

 private:
  Runtime& runtime_;
};

}  // namespace tandem
