#pragma once

#include "tandem/core/array.h"
#include "tandem/core/resource_handle.h"

namespace tandem {

/// A table that is looked up by key, as those see it who write graphs. Thread-safe.
class TableResource : public Resource {
 public:
  /// False: an initializer fills it once, and nothing changes it then.
  virtual bool may_change() const = 0;
  struct Contents {
    Array keys, values;
  };
  /// All rows, in no order. Throws FailedPreconditionError while a table that is filled once is
  /// empty.
  virtual Contents contents() const = 0;
};

}  // namespace tandem
