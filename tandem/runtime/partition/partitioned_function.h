#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/runtime/partition/partition.h"

namespace tandem {

class LocalRendezvous;
class Runtime;

/// A graph whose parts run on several tasks of one process, each task a Runtime with devices,
/// resources and threads of its own (Runtime::Options::task). Immutable; thread-safe, any number of
/// steps may run at a time.
class TANDEM_EXPORT PartitionedFunction {
 public:
  /// `parts`: as `partition` makes them; each goes to the task that its name begins with. Throws
  /// InvalidArgumentError for a part without a task, for a device that a part's values come from or
  /// go to and that its task lacks, and as `check_parts`. The runtimes must outlive this.
  PartitionedFunction(std::vector<GraphPart> parts, std::vector<Runtime*> tasks);
  ~PartitionedFunction();

  const std::vector<GraphPart>& parts() const { return parts_; }

  /// One step: all parts side by side, each on a thread of its own. Returns when all have ended.
  /// The first failure, or the calling thread's cancellation, ends the others: it aborts the step's
  /// rendezvous and cancels what waits elsewhere; it is what is thrown. Throws InternalError naming
  /// the keys if a step that went well leaves values behind.
  std::vector<Array> run(std::vector<Array> args) const;
  /// One step whose parts meet in a rendezvous of the caller's, which must be new.
  std::vector<Array> run(std::vector<Array> args, LocalRendezvous& rendezvous) const;

 private:
  class Step;
  std::vector<GraphPart> parts_;
  std::vector<Runtime*> runtime_of_;  // by part
  std::size_t num_args_ = 0, num_results_ = 0;
};

/// The devices of several tasks, in order: what `partition` and the placer take.
TANDEM_EXPORT std::vector<PartitionDevice> devices_of(std::span<Runtime* const> tasks);

}  // namespace tandem
