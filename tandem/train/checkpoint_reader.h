#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/core/string.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
class ObjectCheckpoint;
}

namespace tandem::train {

/// The tensors of a checkpoint by name, as tf.train.load_checkpoint gives them. Thread-safe.
class TANDEM_EXPORT CheckpointReader {
 public:
  explicit CheckpointReader(const String& path);

  std::map<std::string, Shape> get_variable_to_shape_map() const;
  std::map<std::string, DType> get_variable_to_dtype_map() const;
  bool has_tensor(const String& name) const;
  /// Throws NotFoundError "Key NAME not found in checkpoint", DataLossError where it is damaged.
  Tensor get_tensor(const String& name) const;

 private:
  std::shared_ptr<const ObjectCheckpoint> file_;
};

/// `path`: a checkpoint, or a folder, whose latest one is meant. Throws NotFoundError if there is
/// none.
TANDEM_EXPORT CheckpointReader load_checkpoint(const String& path);
/// Names and shapes, sorted by name.
TANDEM_EXPORT std::vector<std::pair<std::string, Shape>> list_variables(const String& path);
TANDEM_EXPORT Tensor load_variable(const String& path, const String& name);

// ---- Checkpoints of variables by name, as TensorFlow 1's Saver writes them. ----

/// Variables under the names that they have in the checkpoint.
using NamedVariables = std::map<std::string, Variable>;

TANDEM_EXPORT void save_variables(const std::string& path, const NamedVariables& variables);

struct RestoreVariablesOptions {
  bool allow_missing = false;  ///< variables that the checkpoint lacks stay as they are
};
/// Reads checkpoints with objects too, by key. Nothing is changed unless all fit: throws
/// NotFoundError for a name that is not stored, InvalidArgumentError naming variable, dtypes and
/// shapes where they differ.
TANDEM_EXPORT void restore_variables(const std::string& path, const NamedVariables& variables,
                                     const RestoreVariablesOptions& options = {});
/// As tf.compat.v1.train.init_from_checkpoint. The map gives for a scope of the checkpoint, which
/// ends in '/', or a whole name there, the scope or name of our variables: `{{"bert/",
/// "encoder/"}}` initialises "encoder/kernel" from "bert/kernel". Throws InvalidArgumentError if a
/// pair matches none of the variables.
TANDEM_EXPORT void init_from_checkpoint(const String& path,
                                        const std::map<std::string, std::string>& assignment_map,
                                        const std::vector<Variable>& variables);

}  // namespace tandem::train
