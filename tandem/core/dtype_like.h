#pragma once

#include <string>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"

namespace tandem {

/// A dtype that a user gives: td::float32, or its name, "float32". The type of parameters and
/// options; converts to DType by itself.
class TANDEM_EXPORT DTypeLike {
 public:
  constexpr DTypeLike(DType dtype) : dtype_(dtype) {}
  /// Throws InvalidArgumentError for an unknown name.
  DTypeLike(StringView name);
  DTypeLike(const char* name, int line = __builtin_LINE(),
            const char* function = __builtin_FUNCTION())
      : DTypeLike(StringView(name, line, function)) {}
  DTypeLike(const std::string& name) : DTypeLike(StringView(name)) {}

  constexpr operator DType() const { return dtype_; }

 private:
  DType dtype_;
};

}  // namespace tandem
