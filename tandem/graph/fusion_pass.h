#pragma once

#include "tandem/core/export.h"

namespace tandem {

class Evaluator;
class OpRegistry;
struct MutableFunction;
struct OptimizerOptions;

/// A fusing pass that looks for particular ops, and so is registered beside them: `fuse_ops` and
/// `specialize` (tandem/graph/passes.h) run it after the passes that go by what all ops declare.
struct FusionPass {
  const char* name;
  /// Whether these options ask for it.
  bool (*enabled)(const OptimizerOptions& options);
  /// Returns whether it changed anything. Stateful nodes are never merged or dropped.
  bool (*run)(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator);
};

/// Define one at namespace scope per pass; it must live as long as the program or the library that
/// defines it. Passes run in the order of their names.
class TANDEM_EXPORT FusionPassRegistration {
 public:
  explicit FusionPassRegistration(const FusionPass& pass);
  const FusionPass& pass() const { return pass_; }
  const FusionPassRegistration* next() const { return next_; }
  /// The newest registration; follow `next` to the oldest.
  static const FusionPassRegistration* newest();

 private:
  FusionPass pass_;
  const FusionPassRegistration* next_;
};

namespace passes {
/// Runs the registered passes that the options ask for. Returns whether anything changed.
bool run_fusion_passes(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
                       const OptimizerOptions& options);
}  // namespace passes

}  // namespace tandem
