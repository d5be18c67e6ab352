#include "tandem/saved_model/module.h"

#include <algorithm>
#include <set>

#include "tandem/core/error.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/saved_model/internal/object.h"

namespace tandem::saved_model {

using internal::Object;

namespace internal {

const char* kind_name(Object::Kind kind) {
  switch (kind) {
    case Object::Kind::kModule: return "a module";
    case Object::Kind::kVariable: return "a variable";
    case Object::Kind::kFunction: return "a function";
    case Object::Kind::kTable: return "a table";
    case Object::Kind::kAsset: return "an asset";
    case Object::Kind::kConstant: return "a constant";
  }
  return "an object";
}

void for_each_object(
    const std::shared_ptr<Object>& root,
    const std::function<void(const std::shared_ptr<Object>&, const std::string&)>& visit) {
  // Parents first, and nearer ones before farther ones.
  std::set<const Object*> seen{root.get()};
  std::vector<std::pair<std::shared_ptr<Object>, std::string>> open{{root, ""}};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const auto [object, path] = open[i];
    visit(object, path);
    for (const Object::Child& child : object->children) {
      const std::shared_ptr<Object> part = child.get();
      if (part && seen.insert(part.get()).second)
        open.emplace_back(part, path.empty() ? child.name : cat(path, ".", child.name));
    }
  }
}

}  // namespace internal

namespace {

std::shared_ptr<Object> part_of(Object::Kind kind) {
  auto part = std::make_shared<Object>();
  part->kind = kind;
  return part;
}

bool holds(const std::shared_ptr<Object>& object, const Object* wanted) {
  bool found = false;
  internal::for_each_object(object, [&](const std::shared_ptr<Object>& part, const std::string&) {
    found = found || part.get() == wanted;
  });
  return found;
}

template <class T>
void require_defined(const T& part, const std::string& name, const char* what) {
  if (!part.defined())
    throw InvalidArgumentError(cat("'", name, "' is set to ", what, " that is none."));
}

}  // namespace

Tensor Table::lookup(Tensor keys, Tensor default_value) const {
  return raw_op("LookupTableFindV2", {handle_, std::move(keys), std::move(default_value)})[0];
}
Tensor Table::size() const { return raw_op("LookupTableSizeV2", {handle_})[0]; }

Module::Module() : object_(std::make_shared<Object>()) {}
Module::Module(std::shared_ptr<Object> object) : object_(std::move(object)) {}

Module& Module::put(const std::string& name, std::shared_ptr<Object> part) {
  if (name.empty() || name.find_first_of("./") != std::string::npos || name == "signatures") {
    throw InvalidArgumentError(cat("A part of a module can't be called '", name, "'",
                                   name == "signatures" ? ": set_signature sets signatures."
                                                        : ": names hold no '.' and no '/'."));
  }
  if (holds(part, object_.get()))
    throw InvalidArgumentError(cat("The module '", name, "' holds the one that it is set in."));
  for (Object::Child& child : object_->children) {
    if (child.name != name) continue;
    child = {name, std::move(part), {}};
    return *this;
  }
  object_->children.push_back({name, std::move(part), {}});
  return *this;
}

Module& Module::set(const std::string& name, const Variable& variable) {
  require_defined(variable, name, "a variable");
  // A variable in two places is one object.
  std::shared_ptr<Object> known;
  internal::for_each_object(object_, [&](const std::shared_ptr<Object>& part, const std::string&) {
    if (part->kind == Object::Kind::kVariable && part->variable.is_same(variable)) known = part;
  });
  if (known) return put(name, known);
  auto part = part_of(Object::Kind::kVariable);
  part->variable = variable;
  return put(name, std::move(part));
}
Module& Module::set(const std::string& name, const Function& function) {
  require_defined(function, name, "a function");
  auto part = part_of(Object::Kind::kFunction);
  part->function = function;
  return put(name, std::move(part));
}
Module& Module::set(const std::string& name, const Table& table) {
  require_defined(table, name, "a table");
  auto part = part_of(Object::Kind::kTable);
  part->tensor = table.handle();
  return put(name, std::move(part));
}
Module& Module::set(const std::string& name, const Asset& asset) {
  require_defined(asset, name, "an asset");
  auto part = part_of(Object::Kind::kAsset);
  part->tensor = asset.path();
  return put(name, std::move(part));
}
Module& Module::set(const std::string& name, const Module& module) {
  return put(name, module.impl());
}
Module& Module::set(const std::string& name, const Tensor& constant) {
  require_defined(constant, name, "a tensor");
  auto part = part_of(Object::Kind::kConstant);
  part->tensor = constant;
  return put(name, std::move(part));
}
Module& Module::set(const std::string& name, const std::vector<Variable>& list) {
  Module parts;
  parts.object_->identifier = "trackable_list_wrapper";
  set(name, parts);
  for (std::size_t i = 0; i < list.size(); ++i) {
    // Variables that this module holds already are not there twice.
    std::shared_ptr<Object> known;
    internal::for_each_object(object_, [&](const std::shared_ptr<Object>& p, const std::string&) {
      if (p->kind == Object::Kind::kVariable && p->variable.is_same(list[i])) known = p;
    });
    if (known) {
      parts.put(cat(i), known);
    } else {
      parts.set(cat(i), list[i]);
    }
  }
  return *this;
}

std::vector<std::string> Module::names() const {
  std::vector<std::string> names;
  for (const Object::Child& child : object_->children) names.push_back(child.name);
  return names;
}

std::shared_ptr<Object> Module::find(const std::string& path) const {
  std::shared_ptr<Object> object = object_;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    const Object::Child* child = object->find(path.substr(at, end - at));
    object = child ? child->get() : nullptr;
    if (!object) return nullptr;
    at = end + 1;
  }
  return object;
}

bool Module::has(const std::string& path) const { return find(path) != nullptr; }

namespace {

std::shared_ptr<Object> expect(std::shared_ptr<Object> object, Object::Kind kind,
                               const std::string& path, const std::shared_ptr<Object>& root) {
  if (!object) {
    std::string known;
    internal::for_each_object(root,
                              [&](const std::shared_ptr<Object>& part, const std::string& at) {
                                constexpr std::size_t kMax = 2000;
                                if (part->kind != kind || at.empty() || known.size() > kMax) return;
                                known += cat(known.empty() ? "'" : ", '", at, "'");
                              });
    throw NotFoundError(
        cat("The module has no part '", path, "'.",
            known.empty() ? cat(" It has not ", internal::kind_name(kind), " at all.")
                          : cat(" Parts that are ", internal::kind_name(kind), ": ", known, ".")));
  }
  if (object->kind != kind) {
    throw InvalidArgumentError(cat("'", path, "' is ", internal::kind_name(object->kind), ", not ",
                                   internal::kind_name(kind), "."));
  }
  return object;
}

}  // namespace

Variable Module::variable(const std::string& path) const {
  return expect(find(path), Object::Kind::kVariable, path, object_)->variable;
}
Function Module::function(const std::string& path) const {
  return expect(find(path), Object::Kind::kFunction, path, object_)->function;
}
Table Module::table(const std::string& path) const {
  return Table(expect(find(path), Object::Kind::kTable, path, object_)->tensor);
}
Asset Module::asset(const std::string& path) const {
  const auto part = expect(find(path), Object::Kind::kAsset, path, object_);
  return Asset(part->tensor);
}
Module Module::module(const std::string& path) const {
  return Module(expect(find(path), Object::Kind::kModule, path, object_));
}
Tensor Module::constant(const std::string& path) const {
  return expect(find(path), Object::Kind::kConstant, path, object_)->tensor;
}

std::vector<Variable> Module::variables() const {
  std::vector<Variable> all;
  internal::for_each_object(object_, [&](const std::shared_ptr<Object>& part, const std::string&) {
    if (part->kind == Object::Kind::kVariable) all.push_back(part->variable);
  });
  return all;
}
std::vector<Variable> Module::trainable_variables() const {
  std::vector<Variable> all = variables();
  std::erase_if(all, [](const Variable& variable) { return !variable.trainable(); });
  return all;
}
std::vector<std::string> Module::functions() const {
  std::vector<std::string> paths;
  internal::for_each_object(object_,
                            [&](const std::shared_ptr<Object>& part, const std::string& path) {
                              if (part->kind == Object::Kind::kFunction) paths.push_back(path);
                            });
  return paths;
}

std::vector<std::string> Module::signature_names() const {
  std::vector<std::string> names;
  for (const auto& [name, signature] : object_->signatures) names.push_back(name);
  return names;
}
Signature Module::signature(const std::string& name) const {
  const auto found = object_->signatures.find(name);
  if (found != object_->signatures.end()) return found->second;
  std::string known;
  for (const std::string& other : signature_names())
    known += cat(known.empty() ? "'" : ", '", other, "'");
  throw NotFoundError(
      cat("The model has no signature '", name, "'. ",
          known.empty() ? std::string("It has none.") : cat("It has ", known, ".")));
}
Module& Module::set_signature(const std::string& name, const Signature& signature) {
  if (name.empty()) throw InvalidArgumentError("A signature needs a name.");
  require_defined(signature, name, "a signature");
  object_->signatures[name] = signature;
  return *this;
}
const std::vector<std::string>& Module::tags() const { return object_->tags; }

}  // namespace tandem::saved_model
