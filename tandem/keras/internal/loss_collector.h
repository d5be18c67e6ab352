#pragma once

#include <vector>

#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Receives what layers of this thread pass to add_loss, as long as it lives.
class LossCollector {
 public:
  LossCollector();
  ~LossCollector();
  LossCollector(const LossCollector&) = delete;
  LossCollector& operator=(const LossCollector&) = delete;

  const std::vector<Tensor>& losses() const { return losses_; }
  /// To the innermost collector; false if there is none.
  static bool add(const Tensor& loss);

 private:
  LossCollector* outer_;
  std::vector<Tensor> losses_;
};

}  // namespace tandem::keras::internal
