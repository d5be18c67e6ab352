#pragma once

#include <functional>
#include <memory>
#include <optional>
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
  /// A value besides that of a variable: of a dataset's iterator, a table or a counter.
  struct Value {
    std::string attribute;  ///< "ITERATOR_STATE"
    std::string key;        ///< under which it is stored
  };
  /// What optimizers before Keras 3 keep of a variable.
  struct Slot {
    int variable;      ///< position in `objects`
    std::string name;  ///< "m", "momentum"
    int object;        ///< that holds the slot's value
  };
  struct Object {
    std::vector<std::pair<std::string, int>> children;  ///< names, and positions in `objects`
    std::string key;   ///< under which the value of a variable is stored; empty: it has none
    std::string name;  ///< of the variable, for people
    std::vector<Value> values = {};  ///< others
    std::vector<Slot> slots = {};

    /// The key of an attribute's value, or "".
    std::string key_of(const std::string& attribute) const {
      if (attribute == kVariableValue) return key;
      for (const Value& value : values)
        if (value.attribute == attribute) return value.key;
      return "";
    }
  };
  static constexpr const char* kVariableValue = "VARIABLE_VALUE";
  std::vector<Object> objects;

  /// Position of the child of this name, or -1.
  int child(int object, const std::string& name) const {
    for (const auto& [child_name, position] : objects[static_cast<std::size_t>(object)].children)
      if (child_name == name) return position;
    return -1;
  }
};

/// A checkpoint, open for reading. Thread-safe.
class TANDEM_EXPORT ObjectCheckpoint {
 public:
  virtual ~ObjectCheckpoint();
  /// Where it holds no objects, because a Saver of TensorFlow 1 wrote it, or SaveV2 itself, values
  /// have names alone, and `graph` throws InvalidArgumentError.
  virtual bool has_graph() const = 0;
  virtual const ObjectGraph& graph() const = 0;
  /// All keys, sorted.
  virtual std::vector<std::string> keys() const = 0;
  virtual bool contains(const std::string& key) const = 0;
  // Throw NotFoundError for keys that are not stored, DataLossError where the files are damaged.
  virtual DType dtype(const std::string& key) const = 0;
  virtual Shape shape(const std::string& key) const = 0;
  virtual Tensor read(const std::string& key) const = 0;
  /// Several, read by several threads.
  virtual std::vector<Tensor> read(const std::vector<std::string>& keys) const = 0;
  /// Reads several only to check them: throws what `read` would, without memory for the values.
  virtual void verify(const std::vector<std::string>& keys) const = 0;
};

/// A checkpoint to be written.
struct CheckpointContents {
  struct Item {
    std::string key;
    Tensor value;   ///< released as soon as it is written
    int shard = 0;  ///< the data file
  };
  std::optional<ObjectGraph> graph;  ///< none: values by name alone
  std::vector<Item> items;
  int num_shards = 1;
  /// Called by each thread that writes once no value that is left to it is shared with a variable
  /// any more. Until then a step that changes the variable copies it, and writing goes before.
  std::function<void()> when_unshared = {};
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
  /// Writes any checkpoint, shards of it side by side. It is there, and would survive a crash, when
  /// this returns.
  virtual void write_checkpoint(const std::string& prefix, CheckpointContents contents) const = 0;
  /// Makes one checkpoint of several by renaming their files. Objects must be equal in all; a
  /// tensor is in one of them.
  virtual void merge_checkpoints(const std::vector<std::string>& prefixes,
                                 const std::string& destination) const = 0;
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
