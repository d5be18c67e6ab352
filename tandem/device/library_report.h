#pragma once

#include <string>

#include "tandem/core/export.h"

namespace tandem {

class Backend;

/// A backend whose devices use libraries that are opened at run time.
class TANDEM_EXPORT LibraryReport {
 public:
  virtual ~LibraryReport();
  /// Lines for people: which libraries there are, and what is done without those that are missing.
  /// The first call may open them.
  virtual std::string libraries() const = 0;
};

/// The lines of a backend; empty if it has none.
TANDEM_EXPORT std::string libraries_of(const Backend& backend);

}  // namespace tandem
