#pragma once

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"

namespace tandem {

/// In the block, floating variables made with `.autocast = true` have this dtype where they are
/// used as tensors: how layers compute in half precision with weights in full. Gradients arrive in
/// the variable's dtype; `read_value` and assignments are as ever. Inner scopes win;
/// `DType::kInvalid` means no casts. Concerns the calling thread.
class TANDEM_EXPORT AutocastScope {
 public:
  explicit AutocastScope(DType dtype);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

  /// The dtype of the innermost scope; kInvalid if there is none.
  static DType current();

 private:
  DType outer_;
};

}  // namespace tandem
