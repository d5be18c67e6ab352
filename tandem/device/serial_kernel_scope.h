#pragma once

#include "tandem/core/export.h"

namespace tandem {

/// Kernels that the thread runs in the block do their work on it alone, without the workers of
/// intra-op pools: for threads that work side by side already.
class TANDEM_EXPORT SerialKernelScope {
 public:
  SerialKernelScope();
  ~SerialKernelScope();
  SerialKernelScope(const SerialKernelScope&) = delete;
  SerialKernelScope& operator=(const SerialKernelScope&) = delete;

 private:
  bool before_;
};

}  // namespace tandem
