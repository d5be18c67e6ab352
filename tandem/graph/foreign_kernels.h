#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "tandem/core/export.h"

// What libtandem knows of kernel classes whose kernels other libraries have.

namespace tandem {

/// The priority of a KernelDecl that says only that a class has such a kernel. Without effect once
/// the class' own kernels are there.
inline constexpr int kDeclaredPriority = std::numeric_limits<int>::min();

/// Says that fused ops of a kernel class can do what an elementwise op does, and with values of any
/// size gain by it, as each launch costs time; a constant at namespace scope, as
/// KernelRegistration.
class TANDEM_EXPORT FusesRegistration {
 public:
  FusesRegistration(const char* op, const char* kernel_class);

 private:
  friend TANDEM_EXPORT std::optional<bool> fuses_any_size(std::string_view, std::string_view);
  const char* op_;
  const char* kernel_class_;
  const FusesRegistration* next_;
};

/// Whether a FusesRegistration says so. Nothing where the class has none: its fused ops then take
/// in what those of the CPU do. Thread-safe.
TANDEM_EXPORT std::optional<bool> fuses_any_size(std::string_view op,
                                                 std::string_view kernel_class);

}  // namespace tandem
