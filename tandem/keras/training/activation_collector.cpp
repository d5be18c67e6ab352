#include "tandem/keras/internal/activation_collector.h"

#include "tandem/core/error.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::keras::internal {
namespace {

// It belongs to the code that traces a step, which is one thread's from beginning to end.
thread_local ActivationCollector* innermost = nullptr;

}  // namespace

ActivationCollector::ActivationCollector() : outer_(innermost), trace_(thread_context().trace) {
  innermost = this;
}
ActivationCollector::~ActivationCollector() { innermost = outer_; }

void ActivationCollector::add(const LayerImpl& layer, std::span<const Tensor> outputs) {
  if (!innermost || thread_context().trace != innermost->trace_) return;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    innermost->activations_.emplace_back(
        outputs.size() == 1 ? layer.name() : cat(layer.name(), "/", i), outputs[i]);
  }
}

}  // namespace tandem::keras::internal
