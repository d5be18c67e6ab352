#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tandem/io/internal/import.h"
#include "tandem/io/proto/messages.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"
#include "tandem/saved_model/internal/concrete.h"

namespace tandem::saved_model::internal {

/// The functions of a SavedModel of TensorFlow 2, and the values that they captured. It is kept by
/// the functions of the model, so it keeps none of the model's objects. Thread-safe.
class LoadedFunctions : public std::enable_shared_from_this<LoadedFunctions> {
 public:
  LoadedFunctions(std::shared_ptr<io::proto::MetaGraphDef> meta, std::string name);

  const io::proto::SavedObjectGraph& objects() const { return *meta_->object_graph_def; }
  /// The handle of a variable or table, or the path of an asset, once it is known.
  void set_value(int object, Tensor value);
  /// What functions capture of an object. Throws InvalidArgumentError if it has no value.
  Tensor value(int object);
  /// A function as what its signature says, imported when it is called. Throws InvalidArgumentError
  /// if the file has no such function.
  std::shared_ptr<Concrete> concrete(const std::string& name);

 private:
  ConcreteFunction import(const std::string& name, const Concrete& concrete);
  const io::ImportedGradient* gradient(const std::string& op_type, const std::string& body);
  io::ImportedGradient find_gradient(const std::string& function, const std::string& body) const;
  Tensor constant(const std::string& operation) const;
  FunctionRef with_shapes(const FunctionRef& function, const Concrete& concrete,
                          const std::vector<Tensor>& captures) const;

  const std::shared_ptr<io::proto::MetaGraphDef> meta_;
  const std::string name_;
  std::map<std::string, std::string> gradients_;  // functions, by the types of nodes that name them
  std::mutex mutex_;
  std::map<int, Tensor> values_;                             // guarded by mutex_
  std::map<std::string, std::weak_ptr<Concrete>> concrete_;  // guarded by mutex_
  // By type of node and function. Used while the library is locked.
  std::map<std::pair<std::string, std::string>, io::ImportedGradient> found_gradients_;
  io::FunctionLibrary library_;
};

}  // namespace tandem::saved_model::internal
