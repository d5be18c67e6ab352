#pragma once

#include <memory>

#include "tandem/core/cancellation.h"
#include "tandem/core/export.h"

namespace tandem::fs {

/// While it lives, file operations of this thread that wait for a store end with a CancelledError
/// when `cancellation` is cancelled. Scopes nest: the innermost counts. Where there is none, the
/// source counts that the runtime sets: a CancellationScope of the calling thread.
class TANDEM_EXPORT IoScope {
 public:
  explicit IoScope(std::shared_ptr<const Cancellation> cancellation);
  /// Takes a cancellation that lives at least as long as the scope; null changes nothing.
  explicit IoScope(const Cancellation* borrowed);
  ~IoScope();
  IoScope(const IoScope&) = delete;
  IoScope& operator=(const IoScope&) = delete;

  /// What the operations of this thread obey; may be null.
  static std::shared_ptr<const Cancellation> current();

  using Source = std::shared_ptr<const Cancellation> (*)();
  static void set_source(Source source);

 private:
  std::shared_ptr<const Cancellation> cancellation_;
  const Cancellation* borrowed_ = nullptr;
  Cancellation::Token token_ = 0;
  const IoScope* outer_;
};

}  // namespace tandem::fs
