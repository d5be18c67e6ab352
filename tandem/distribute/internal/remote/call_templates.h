#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/shape.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/graph/function.h"
#include "tandem/graph/op_def.h"

namespace tandem::distribute {

/// What all calls of one kind have in common: an op with its attributes, for inputs of certain
/// dtypes and shapes, or a function.
struct CallTemplate {
  std::string name;                    ///< of the op, or of the function as tasks know it
  std::vector<std::string> attrs;      ///< entries of an operation's map
  std::vector<std::string> functions;  ///< FunctionDefs that tasks need for it
  std::vector<DType> dtypes;           ///< of the outputs
  std::vector<PartialShape> shapes;
};

/// The templates of a client's calls, each made at first use. Thread-safe.
class CallTemplates {
 public:
  struct Input {
    DType dtype;
    Shape shape;
    bool operator==(const Input&) const = default;
  };
  /// Throws as the op does for inputs or attributes that do not fit.
  std::shared_ptr<const CallTemplate> of_op(const OpDef& op, const AttrMap& attrs,
                                            std::vector<Input> inputs);
  std::shared_ptr<const CallTemplate> of_function(const FunctionRef& function);

 private:
  static constexpr std::size_t kMaxOfOp = 64;
  static constexpr std::size_t kMaxFunctions = 1024;
  struct Entry {
    AttrMap attrs;
    std::vector<Input> inputs;
    std::shared_ptr<const CallTemplate> made;
  };
  struct FunctionEntry {
    FunctionRef function;  // keeps its address from being used again
    std::shared_ptr<const CallTemplate> made;
  };
  Mutex mutex_;
  std::map<std::string, std::vector<Entry>> ops_ TANDEM_GUARDED_BY(mutex_);
  std::map<const Function*, FunctionEntry> functions_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
