#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/eager/eager_context.h"
#include "tandem/distribute/internal/eager/eager_programs.h"
#include "tandem/distribute/proto/messages.h"
#include "tandem/graph/function.h"
#include "tandem/runtime/partition/partition.h"

namespace tandem::distribute {

/// What a function is called with: a value of this task, or one that another task has.
struct TaskInput {
  Array value = {};
  DType dtype = DType::kInvalid;
  std::string task = {};  ///< empty: this one
  proto::RemoteTensorHandle handle = {};
};

/// A function cut into the parts that each task runs: this task's own, and those of others, which
/// they are given as component functions. What it returns arrives here. Immutable.
class TaskFunction {
 public:
  struct Remote {
    std::string task;
    std::string device;
    std::string name;        ///< of the component function
    std::string definition;  ///< a FunctionDefLibrary: it, and what it calls
    std::vector<int> args;
  };

  /// `inputs` say where the arguments are. Throws as the placer does, and InvalidArgumentError for
  /// a resource that would have to move.
  TaskFunction(const Function& function, const std::vector<TaskInput>& inputs,
               const EagerContext& context, const std::string& device);

  /// This task's part; its function is null if it has none.
  const GraphPart& own() const { return own_; }
  const std::vector<Remote>& remotes() const { return remotes_; }

 private:
  GraphPart own_;
  std::vector<Remote> remotes_;
};

/// The functions of a context that run in several tasks, each cut once for the tasks that its
/// arguments are in. Thread-safe.
class TaskFunctions {
 public:
  std::shared_ptr<const TaskFunction> get(const std::shared_ptr<const EagerProgram>& program,
                                          const std::vector<TaskInput>& inputs,
                                          const EagerContext& context, const std::string& device);
  /// Whether a task has been given its part.
  bool is_registered(const TaskFunction::Remote& remote) const;
  void set_registered(const TaskFunction::Remote& remote);
  /// All are cut again: the tasks have changed.
  void clear();

 private:
  static constexpr std::size_t kMaxFunctions = 1024;
  struct Entry {
    std::shared_ptr<const EagerProgram> program;  // keeps its address from being used again
    std::shared_ptr<const TaskFunction> function;
  };
  mutable Mutex mutex_;
  std::map<std::string, Entry> functions_ TANDEM_GUARDED_BY(mutex_);
  std::set<std::string> registered_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
