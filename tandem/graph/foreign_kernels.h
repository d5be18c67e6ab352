#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "tandem/core/export.h"

// What libtandem knows of kernel classes whose kernels other libraries have.

namespace tandem {

class Node;

/// The priority of a KernelDecl that says only that a class has such a kernel. Without effect once
/// the class' own kernels are there.
inline constexpr int kDeclaredPriority = std::numeric_limits<int>::min();

/// Whether, and with which values, fused ops of a kernel class can do what an elementwise op does.
enum class Fuses {
  kAsCpu,  ///< nothing is registered for the class: its fused ops can do what the CPU's can
  kNo,
  kLarge,
  kAnySize,
};

/// Says that fused ops of a kernel class can do what an elementwise op does. Is never destroyed or
/// moved, as a KernelRegistration.
class TANDEM_EXPORT FusesRegistration {
 public:
  /// `any_size`: where each launch costs time, values of any size gain by it, else large ones.
  FusesRegistration(const char* op, const char* kernel_class, bool any_size = true);

 private:
  friend TANDEM_EXPORT Fuses fuses(std::string_view, std::string_view);
  friend TANDEM_EXPORT bool launches_cost_time(std::string_view);
  const char* op_;
  const char* kernel_class_;
  bool any_size_;
  const FusesRegistration* next_;
};

/// What FusesRegistrations say. Thread-safe.
TANDEM_EXPORT Fuses fuses(std::string_view op, std::string_view kernel_class);
/// Whether each launch costs time there: values of any size gain by some fused ops. Thread-safe.
TANDEM_EXPORT bool launches_cost_time(std::string_view kernel_class);

/// Looks at the fused elementwise ops of a kernel class before they are made; as FusesRegistration.
class TANDEM_EXPORT FusedCheckRegistration {
 public:
  /// Why the class cannot run such a node; empty if it can. Thread-safe.
  using Check = std::function<std::string(const Node& fused)>;
  FusedCheckRegistration(const char* kernel_class, Check check);

 private:
  friend TANDEM_EXPORT std::string fused_refusal(const Node&, std::string_view);
  const char* kernel_class_;
  Check check_;
  const FusedCheckRegistration* next_;
};

/// What the first FusedCheckRegistration that refuses the node says; empty if none does, and for
/// nodes that are no fused elementwise op. Thread-safe.
TANDEM_EXPORT std::string fused_refusal(const Node& node, std::string_view kernel_class);

}  // namespace tandem
