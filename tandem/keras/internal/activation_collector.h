#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/tensor.h"

namespace tandem {
class Trace;
}

namespace tandem::keras {
class LayerImpl;
}

namespace tandem::keras::internal {

/// Receives what the layers of this thread compute, as long as it lives, with the layers' names.
/// The calls within branches and loops belong to functions of their own and are left out.
class ActivationCollector {
 public:
  using Activations = std::vector<std::pair<std::string, Tensor>>;

  ActivationCollector();
  ~ActivationCollector();
  ActivationCollector(const ActivationCollector&) = delete;
  ActivationCollector& operator=(const ActivationCollector&) = delete;

  const Activations& activations() const { return activations_; }
  /// To the innermost collector; forgotten if there is none.
  static void add(const LayerImpl& layer, std::span<const Tensor> outputs);

 private:
  ActivationCollector* outer_;
  const Trace* trace_;
  Activations activations_;
};

}  // namespace tandem::keras::internal
