#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {

/// The objects that the values in a checkpoint belong to: a graph whose edges have names. The first
/// object is the root.
struct ObjectGraph {
  struct Object {
    std::vector<std::pair<std::string, int>> children;  ///< names, and positions in `objects`
    std::string key;   ///< under which the value is stored; empty: the object has none
    std::string name;  ///< of the variable, for people
  };
  std::vector<Object> objects;

  /// Position of the child of this name, or -1.
  int child(int object, const std::string& name) const {
    for (const auto& [child_name, position] : objects[static_cast<std::size_t>(object)].children)
      if (child_name == name) return position;
    return -1;
  }
};

/// A checkpoint of objects, open for reading.
class TANDEM_EXPORT ObjectCheckpoint {
 public:
  virtual ~ObjectCheckpoint();
  virtual const ObjectGraph& graph() const = 0;
  // Throw NotFoundError for keys that are not stored, DataLossError where the files are damaged.
  virtual DType dtype(const std::string& key) const = 0;
  virtual Shape shape(const std::string& key) const = 0;
  virtual Tensor read(const std::string& key) const = 0;
};

/// How a graph that was written is run: tensors to feed and to fetch.
struct WrittenGraph {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

/// What the module io offers to modules that do not include it, and that are built without it too.
class TANDEM_EXPORT Saving {
 public:
  virtual ~Saving();
  /// Writes a checkpoint at a prefix; `values` by object, undefined where one has no key.
  virtual void write_checkpoint(const std::string& prefix, const ObjectGraph& graph,
                                const std::vector<Tensor>& values) const = 0;
  virtual std::unique_ptr<ObjectCheckpoint> open_checkpoint(const std::string& prefix) const = 0;
  /// Writes a function as a GraphDef in which what it captured is constant.
  virtual WrittenGraph write_graph(const std::string& path, const ConcreteFunction& function,
                                   std::vector<std::string> inputs,
                                   std::vector<std::string> outputs) const = 0;
};

/// Makes `saving` what `saving_for` gives; it must live as long as the program.
TANDEM_EXPORT void register_saving(const Saving& saving);
/// Throws UnimplementedError that names `what` and the missing part in builds without io.
TANDEM_EXPORT const Saving& saving_for(const std::string& what);

}  // namespace tandem
