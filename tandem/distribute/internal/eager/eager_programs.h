#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/eager/function_table.h"
#include "tandem/distribute/proto/messages.h"
#include "tandem/graph/function.h"

namespace tandem {
class Runtime;
}

namespace tandem::distribute {

/// An eager operation as a function of one node, which takes the operation's inputs as arguments
/// and whose outputs are the results.
struct EagerProgram {
  FunctionRef function;
  bool calls_functions = false;
  bool spans_tasks = false;  ///< nodes of functions that it calls ask for other tasks
};

/// The programs of a context's operations: each kind of operation, with its attributes, device and
/// dtypes, is made once. Thread-safe.
class EagerPrograms {
 public:
  /// What is given by reference must outlive this.
  EagerPrograms(Runtime& runtime, const FunctionTable& functions)
      : runtime_(runtime), functions_(functions) {}

  /// Throws NotFoundError for unknown ops, InvalidArgumentError for what does not fit.
  std::shared_ptr<const EagerProgram> get(const proto::EagerOperation& operation,
                                          std::span<const DType> inputs);
  /// Those that call functions are made again, since a function has changed.
  void forget_functions();

 private:
  static constexpr std::size_t kMaxPrograms = 4096;
  EagerProgram make(const proto::EagerOperation& operation, std::span<const DType> inputs,
                    std::uint64_t number) const;

  Runtime& runtime_;
  const FunctionTable& functions_;
  Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const EagerProgram>> programs_
      TANDEM_GUARDED_BY(mutex_);
  std::uint64_t next_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::distribute
