#pragma once

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/core/resource_handle.h"

namespace tandem {

/// A table that is looked up by key, as those see it who write graphs. Thread-safe.
class TANDEM_EXPORT TableResource : public Resource {
 public:
  ~TableResource() override;
  /// False: an initializer fills it once, and nothing changes it then.
  virtual bool may_change() const = 0;
  /// The contents of n rows: keys of shape [n] + a key's, values of shape [n] + a value's.
  struct Contents {
    Array keys, values;
  };
  /// Copies of all rows, which are the caller's, in an order that follows from the keys alone.
  /// Throws FailedPreconditionError while a table that is filled once is empty.
  virtual Contents contents() const = 0;
};

}  // namespace tandem
