#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/op_def.h"

namespace tandem {

/// The ops that a Runtime knows: a parsed copy of every registered declaration. Thread-safe; OpDefs
/// never move, and those that graphs use live on with the graphs.
class TANDEM_EXPORT OpRegistry {
 public:
  /// Throws AlreadyExistsError when two declarations share a name.
  OpRegistry();
  ~OpRegistry();
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  /// Null when unknown, after looking for declarations that were registered meanwhile.
  const OpDef* find(std::string_view name) const;
  /// Throws NotFoundError that names the nearest known op.
  const OpDef& get(std::string_view name) const;
  const OpDef& get(const OpRegistration& op) const;
  /// The op of a kind of which there is one (const, arg, retval, if, while).
  const OpDef& of_kind(NodeKind kind) const;
  /// All ops, by name.
  std::vector<const OpDef*> all() const;

 private:
  struct State;
  void refresh() const;
  std::unique_ptr<State> state_;
};

/// The name nearest to `wanted` by edit distance, or "" if none is near: for "did you mean".
TANDEM_EXPORT std::string nearest_name(std::string_view wanted,
                                       const std::vector<std::string>& names);

}  // namespace tandem
