#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/lookup.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"
#include "tandem/saved_model/function.h"

namespace tandem::saved_model {

namespace internal {
struct Object;
}

/// A file that belongs to a model, such as a vocabulary: saving copies it into the model's folder.
/// A shared handle.
class TANDEM_EXPORT Asset {
 public:
  /// None.
  Asset() = default;
  explicit Asset(const std::string& path) : path_(path) {}
  explicit Asset(const char* path) : path_(path) {}
  explicit Asset(Tensor path) : path_(std::move(path)) {}
  bool defined() const { return path_.defined(); }
  /// Where it is now, a string; functions that use this very tensor find the file wherever the
  /// model is loaded.
  const Tensor& path() const { return path_; }

 private:
  Tensor path_;
};

/// A look-up table of a model. A shared handle; thread-safe.
class TANDEM_EXPORT Table {
 public:
  /// None.
  Table() = default;
  explicit Table(Tensor handle) : handle_(std::move(handle)) {}
  Table(const lookup::StaticHashTable& table) : handle_(table.handle()) {}
  Table(const lookup::MutableHashTable& table) : handle_(table.handle()) {}
  bool defined() const { return handle_.defined(); }
  /// The resource that LookupTable ops take.
  const Tensor& handle() const { return handle_; }
  /// The values of keys, or the default for unknown ones.
  Tensor lookup(Tensor keys, Tensor default_value) const;
  /// The number of keys, an int64 scalar.
  Tensor size() const;

 private:
  Tensor handle_;
};

/// An object with parts that have names: variables, functions, tables, assets, constant tensors and
/// other objects. What `load` returns and `save` takes; a shared handle.
///
///     Module model;
///     model.set("w", w).set("predict", Function(predict.concrete(example), {.inputs = {"x"}}));
///     save(model, "folder");
///
/// Parts within parts are named by a path: "encoder.layers.0.kernel". Not thread-safe while parts
/// are set.
class TANDEM_EXPORT Module {
 public:
  Module();

  // Each replaces the part of that name. Throws InvalidArgumentError for names that are empty or
  // hold a
  // '.' or a '/', for parts that are none, and for a module that holds this one.
  Module& set(const std::string& name, const Variable& variable);
  Module& set(const std::string& name, const Function& function);
  Module& set(const std::string& name, const Table& table);
  Module& set(const std::string& name, const Asset& asset);
  Module& set(const std::string& name, const Module& module);
  /// A value that does not change.
  Module& set(const std::string& name, const Tensor& constant);
  /// A list, whose parts are called "0", "1", …
  Module& set(const std::string& name, const std::vector<Variable>& list);

  /// Names of the parts, in the order in which they were set or saved.
  std::vector<std::string> names() const;
  bool has(const std::string& path) const;
  // Throw NotFoundError that lists what there is, InvalidArgumentError if it is something else.
  Variable variable(const std::string& path) const;
  Function function(const std::string& path) const;
  Table table(const std::string& path) const;
  Asset asset(const std::string& path) const;
  Module module(const std::string& path) const;
  Tensor constant(const std::string& path) const;

  /// The variables of all parts, each once.
  std::vector<Variable> variables() const;
  std::vector<Variable> trainable_variables() const;
  /// Paths of all functions.
  std::vector<std::string> functions() const;

  /// Functions that are called by name. A model that was loaded has those of its file.
  std::vector<std::string> signature_names() const;
  /// Throws NotFoundError that lists the names.
  Signature signature(const std::string& name = "serving_default") const;
  Module& set_signature(const std::string& name, const Signature& signature);
  /// The tags under which it was saved; none for a module made here.
  const std::vector<std::string>& tags() const;

  // ---- For loading and saving. ----
  explicit Module(std::shared_ptr<internal::Object> object);
  const std::shared_ptr<internal::Object>& impl() const { return object_; }

 private:
  Module& put(const std::string& name, std::shared_ptr<internal::Object> part);
  std::shared_ptr<internal::Object> find(const std::string& path) const;
  std::shared_ptr<internal::Object> object_;
};

}  // namespace tandem::saved_model
