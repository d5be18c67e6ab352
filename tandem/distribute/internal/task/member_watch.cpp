#include "tandem/distribute/internal/task/member_watch.h"

#include <chrono>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

constexpr auto kPause = std::chrono::milliseconds(500);

}  // namespace

MemberWatch::MemberWatch(std::function<ClusterSpec()> members,
                         std::function<void(const ClusterSpec&)> on_members)
    : members_(std::move(members)), on_members_(std::move(on_members)) {
  if (members_) thread_ = std::thread([this] { watch(); });
}

void MemberWatch::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MemberWatch::watch() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + kPause;
      while (!stopped_ && std::chrono::steady_clock::now() < until)
        lock.wait_until(changed_, until);
      if (stopped_) return;
    }
    try {
      on_members_(members_());
    } catch (const Error&) {  // what is known goes on; the next time, perhaps
    }
  }
}

}  // namespace tandem::distribute
