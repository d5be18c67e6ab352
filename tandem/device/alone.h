#pragma once

#include "tandem/core/export.h"

namespace tandem {

/// Kernels that the thread runs in the block do their work on it alone, without the workers of
/// intra-op pools: for threads that work side by side already.
class TANDEM_EXPORT AloneScope {
 public:
  AloneScope();
  ~AloneScope();
  AloneScope(const AloneScope&) = delete;
  AloneScope& operator=(const AloneScope&) = delete;

 private:
  bool before_;
};

}  // namespace tandem
