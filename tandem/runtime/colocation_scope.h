#pragma once

#include <optional>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {

class Trace;

/// Ops called while it lives run where another one does: see `colocate_with`.
class TANDEM_EXPORT ColocationScope {
 public:
  explicit ColocationScope(const Tensor& tensor);
  ~ColocationScope();
  ColocationScope(const ColocationScope&) = delete;
  ColocationScope& operator=(const ColocationScope&) = delete;

 private:
  std::optional<DeviceScope> device_;
  Trace* trace_ = nullptr;  // null: calls were eager
};

/// Ops called in the block run on the device of `tensor`; of a resource, where what it stands for
/// lies:
///
///     const auto near = td::colocate_with(table);
///     td::Tensor rows = td::gather(table, ids);
///
/// While a function is traced its nodes get the attribute `_class: loc:@NODE`, and wherever the
/// node that makes `tensor` is placed, they are too. Device scopes around it do not count; those
/// within go first. Throws as any use does for an undefined tensor.
[[nodiscard]] inline ColocationScope colocate_with(const Tensor& tensor) {
  return ColocationScope(tensor);
}
/// With a variable: its memory, not what is read from it.
template <class Variable>
requires requires(const Variable& variable) { variable.handle(); }
[[nodiscard]] ColocationScope colocate_with(const Variable& variable) {
  return ColocationScope(variable.handle());
}

}  // namespace tandem
