#pragma once

#include <memory>
#include <mutex>

#include "tandem/core/export.h"
#include "tandem/graph/collectives.h"

namespace tandem {

/// Collectives among the devices of one process. Values that lie on devices which can exchange them
/// (`communicator_of`) stay there; all others meet in host memory. Every step has one, so until it
/// is used it costs nothing.
class TANDEM_EXPORT LocalCollectives final : public Collectives {
 public:
  LocalCollectives();
  ~LocalCollectives() override;
  void all_reduce(const Member& member, Array input, Reduction reduction, Done done) override;
  void reduce_scatter(const Member& member, Array input, Reduction reduction, Done done) override;
  void all_gather(const Member& member, Array input, Done done) override;
  void broadcast(const Member& member, Array input, Done done) override;
  void start_abort(std::exception_ptr error) override;

 private:
  class Groups;
  Groups& groups();

  std::once_flag made_;
  std::shared_ptr<Groups> groups_;  // which callbacks keep; null until it is used
};

}  // namespace tandem
