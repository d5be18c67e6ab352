#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tandem/core/export.h"
#include "tandem/graph/collectives.h"

namespace tandem {

/// Collectives among the devices of one process: values meet in host memory.
class TANDEM_EXPORT LocalCollectives final : public Collectives {
 public:
  void all_reduce(const Member& member, Array input, Reduction reduction, Done done) override;
  void all_gather(const Member& member, Array input, Done done) override;
  void broadcast(const Member& member, Array input, int root, Done done) override;

 private:
  struct Work;
  struct Group;
  void join(const Member& member, Array input, const Work& work, Done done);
  void fail(const std::string& key, const Group* group, const std::exception_ptr& error);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Group>> groups_;  // guarded by mutex_
};

}  // namespace tandem
