#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"
#include "tandem/saved_model/function.h"

namespace tandem::saved_model::internal {

/// A part of a module: what its kind says.
struct Object {
  enum class Kind { kModule, kVariable, kFunction, kTable, kAsset, kConstant };

  /// An edge back to an object that holds this one is weak, else the two would keep each other.
  struct Child {
    std::string name;
    std::shared_ptr<Object> part;
    std::weak_ptr<Object> holder;
    std::shared_ptr<Object> get() const { return part ? part : holder.lock(); }
  };

  Kind kind = Kind::kModule;
  std::vector<Child> children;

  Variable variable;
  Function function;
  /// A table's handle, an asset's path, or a constant.
  Tensor tensor;
  /// Class that TensorFlow has for a module: "trackable_list_wrapper".
  std::string identifier = "_generic_user_object";

  /// Functions that make and fill a table that was loaded.
  std::shared_ptr<Concrete> create_table;
  std::shared_ptr<Concrete> fill_table;

  // What a module that was loaded, or is to be saved, has besides.
  std::map<std::string, Signature> signatures;
  std::vector<std::string> tags;

  const Child* find(const std::string& name) const {
    for (const Child& child : children) {
      if (child.name == name) return &child;
    }
    return nullptr;
  }
};

const char* kind_name(Object::Kind kind);

/// Calls `visit` for each object once, with a path that leads to it, each before its parts; the
/// root's is "".
void for_each_object(const std::shared_ptr<Object>& root,
                     const std::function<void(const std::shared_ptr<Object>& object,
                                              const std::string& path)>& visit);

}  // namespace tandem::saved_model::internal
