#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/thread_annotations.h"

namespace tandem {
class OpRegistry;
}

namespace tandem::distribute {

/// The functions that a client has registered in an eager context, as FunctionDefs. Thread-safe.
class FunctionTable {
 public:
  using Definition = std::shared_ptr<const std::string>;

  /// `ops` must outlive this.
  explicit FunctionTable(const OpRegistry& ops) : ops_(ops) {}

  /// Returns true if another one of that name is replaced. Throws InvalidArgumentError if it has no
  /// name.
  /// `is_component`: it is the part of a step, of which all nodes with effects run, whether the
  /// definition lists them or not.
  bool add(std::string_view function_def, bool is_component);
  void remove(const std::string& name);
  bool contains(const std::string& name) const;
  /// The definitions of these, and of all that they call in turn; other names are passed over.
  std::vector<Definition> closure_of(const std::set<std::string>& names) const;

 private:
  struct Entry {
    Definition definition;
    std::set<std::string> calls;  // perhaps ops rather than functions
  };
  void add_effects(std::string& function_def) const;

  const OpRegistry& ops_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> functions_ TANDEM_GUARDED_BY(mutex_);
};

/// Adds the functions that a serialized attribute (an entry of a NodeDef's `attr`) names.
void add_functions_of_attr(std::string_view entry, std::set<std::string>& names);

}  // namespace tandem::distribute
