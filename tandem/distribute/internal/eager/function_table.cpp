#include "tandem/distribute/internal/eager/function_table.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/graph/op_registry.h"

namespace tandem::distribute {
namespace {

void add_functions(const proto::AttrParts& value, std::set<std::string>& names) {
  if (value.func.has()) names.insert(value.func->name);
  if (!value.list.has()) return;
  for (const proto::FunctionName& function : value.list->func) names.insert(function.name);
}

}  // namespace

void add_functions_of_attr(std::string_view entry, std::set<std::string>& names) {
  proto::AttrEntry attr;
  read_part(entry, attr);
  add_functions(*attr.value, names);
}

void FunctionTable::add_effects(std::string& function_def) const {
  proto::FunctionParts parts;
  read_part(function_def, parts);
  proto::FunctionEffects effects;
  for (const proto::FunctionNode& node : parts.node_def) {
    const OpDef* op = ops_.find(node.op);
    if (op && op->traits.stateful && !op->traits.reads_only && !op->traits.keeps_state)
      effects.control_ret[node.name] = node.name;
  }
  function_def += io::proto::WireWriter::write(effects);  // entries of a map add up
}

bool FunctionTable::add(std::string_view function_def, bool is_component) {
  proto::FunctionParts parts;
  read_part(function_def, parts);
  const std::string name = parts.signature->name;
  if (name.empty()) throw InvalidArgumentError("A function without a name cannot be registered.");
  Entry entry;
  for (const proto::FunctionNode& node : parts.node_def) {
    entry.calls.insert(node.op);
    for (const proto::AttrEntry& attr : node.attr) add_functions(*attr.value, entry.calls);
  }
  std::string definition(function_def);
  if (is_component) add_effects(definition);
  entry.definition = std::make_shared<const std::string>(std::move(definition));
  const MutexLock lock(mutex_);
  Entry& known = functions_[name];
  const bool replaces = known.definition && *known.definition != *entry.definition;
  known = std::move(entry);
  return replaces;
}

void FunctionTable::remove(const std::string& name) {
  const MutexLock lock(mutex_);
  functions_.erase(name);
}

bool FunctionTable::contains(const std::string& name) const {
  const MutexLock lock(mutex_);
  return functions_.contains(name);
}

std::vector<FunctionTable::Definition> FunctionTable::closure_of(
    const std::set<std::string>& names) const {
  const MutexLock lock(mutex_);
  std::vector<Definition> found;
  std::set<std::string> seen = names;
  std::vector<std::string> open(names.begin(), names.end());
  while (!open.empty()) {
    const auto function = functions_.find(open.back());
    open.pop_back();
    if (function == functions_.end()) continue;
    found.push_back(function->second.definition);
    for (const std::string& called : function->second.calls) {
      if (seen.insert(called).second) open.push_back(called);
    }
  }
  return found;
}

}  // namespace tandem::distribute
