#include "tandem/graph/local_collectives.h"

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/core/timer.h"
#include "tandem/device/device.h"
#include "tandem/graph/internal/collective_work.h"

namespace tandem {

Collectives::~Collectives() = default;

namespace {

std::string describe(const Collectives::Member& member) {
  if (member.rank != Collectives::Member::kByDevice) return cat("rank ", member.rank);
  return member.device ? member.device->name() : "a member";
}

auto place_of(const Device& device) {
  const DeviceSpec& spec = device.spec();
  return std::make_tuple(spec.job, spec.replica, spec.task, spec.type, spec.index);
}

bool goes_before(const Collectives::Member& a, const Collectives::Member& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  return a.device && b.device && place_of(*a.device) < place_of(*b.device);
}

std::exception_ptr failure(const std::string& key, const std::string& why) {
  return std::make_exception_ptr(InvalidArgumentError(cat("Collective '", key, "': ", why)));
}

}  // namespace

class LocalCollectives::Groups : public std::enable_shared_from_this<Groups> {
 public:
  void join(const Member& member, Array input, const CollectiveWork& work, Done done);
  void abort(const std::exception_ptr& error);

 private:
  struct Entry {
    Member member;
    Array input;
    Done done;
    Cancellation::Token token = 0;
    Timer timer;
  };
  struct Group {
    CollectiveWork work;
    int size = 0;
    std::list<Entry> entries;  // in the order in which they came
  };
  using GroupRef = std::shared_ptr<Group>;

  static std::string mismatch(const Group& group, const Member& member, const CollectiveWork& work);
  void watch(const GroupRef& group, Entry& entry) TANDEM_REQUIRES(mutex_);
  bool remove(const std::string& key, const Group* group);
  void fail(const std::string& key, const GroupRef& group, const std::exception_ptr& error);
  static void stop_watching(Group& group);
  static void end(Group& group, const std::exception_ptr& error);

  Mutex mutex_;
  std::map<std::string, GroupRef> groups_ TANDEM_GUARDED_BY(mutex_);
  std::exception_ptr aborted_ TANDEM_GUARDED_BY(mutex_);
};

// Why the member cannot be of the group; empty if it can.
std::string LocalCollectives::Groups::mismatch(const Group& group, const Member& member,
                                               const CollectiveWork& work) {
  if (group.size != member.group_size) {
    return cat("the group has ", group.size, " members for others and ", member.group_size, " for ",
               describe(member), ".");
  }
  if (group.work != work) return "other members of the group ask for another kind of work.";
  for (const Entry& other : group.entries) {
    const bool ranked = member.rank != Member::kByDevice;
    if (ranked != (other.member.rank != Member::kByDevice))
      return "either all members give their ranks or none does.";
    const bool same =
        ranked ? other.member.rank == member.rank : other.member.device == member.device;
    if (same) return cat(describe(member), " has come already.");
  }
  return {};
}

// What may end the wait for the others. Callbacks find the group gone once it is complete.
void LocalCollectives::Groups::watch(const GroupRef& group, Entry& entry) {
  const Member& member = entry.member;
  const auto gives_up = [weak = weak_from_this(), key = member.key,
                         waiting = std::weak_ptr<Group>(group)](const std::exception_ptr& why) {
    const auto self = weak.lock();
    const GroupRef found = waiting.lock();
    if (self && found) self->fail(key, found, why);
  };
  if (member.timeout.count() > 0) {
    const auto wait = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::min(member.timeout, std::chrono::duration<double>(1e9)));
    entry.timer = Timer(std::chrono::steady_clock::now() + wait, [=, key = member.key] {
      gives_up(std::make_exception_ptr(DeadlineExceededError(
          cat("Collective '", key, "' has timed out before all members had come."))));
    });
  }
  if (!member.cancellation) return;
  entry.token = member.cancellation->register_callback([=, key = member.key] {
    gives_up(std::make_exception_ptr(
        CancelledError(cat("Collective '", key, "' was cancelled before all members had come."))));
  });
  if (entry.token == 0) throw CancelledError(cat("Collective '", member.key, "' was cancelled."));
}

void LocalCollectives::Groups::join(const Member& member, Array input, const CollectiveWork& work,
                                    Done done) {
  if (member.group_size < 1 || member.rank < Member::kByDevice ||
      member.rank >= member.group_size) {
    return done(failure(member.key, cat(describe(member), " of a group of ", member.group_size,
                                        ": there must be a member, and a rank lies below the ",
                                        "group's size.")),
                Array());
  }
  GroupRef group;
  std::exception_ptr error;  // of the whole group
  bool complete = false;
  {
    const MutexLock lock(mutex_);
    if (aborted_) {
      error = aborted_;
    } else {
      GroupRef& found = groups_[member.key];
      if (!found) found = std::make_shared<Group>(Group{work, member.group_size, {}});
      group = found;
      if (const std::string why = mismatch(*group, member, work); !why.empty()) {
        error = failure(member.key, why);
      } else {
        Entry& entry = group->entries.emplace_back();
        entry.member = member;
        entry.input = std::move(input);
        entry.done = done;
        complete = static_cast<int>(group->entries.size()) == group->size;
        if (complete) {
          groups_.erase(member.key);
        } else {
          try {
            watch(group, entry);
          } catch (...) {
            error = std::current_exception();
            group->entries.pop_back();
          }
        }
      }
    }
  }
  if (error) {
    if (group) fail(member.key, group, error);
    return done(error, Array());
  }
  if (!complete) return;
  stop_watching(*group);
  group->entries.sort(
      [](const Entry& a, const Entry& b) { return goes_before(a.member, b.member); });
  std::vector<CollectiveMember> members;
  for (Entry& entry : group->entries)
    members.push_back({std::move(entry.input), entry.member.memory, std::move(entry.done)});
  run_collective(work, std::move(members));
}

bool LocalCollectives::Groups::remove(const std::string& key, const Group* group) {
  const MutexLock lock(mutex_);
  const auto found = groups_.find(key);
  if (found == groups_.end() || found->second.get() != group) return false;
  groups_.erase(found);
  return true;
}

void LocalCollectives::Groups::fail(const std::string& key, const GroupRef& group,
                                    const std::exception_ptr& error) {
  if (remove(key, group.get())) end(*group, error);
}

void LocalCollectives::Groups::stop_watching(Group& group) {
  for (Entry& entry : group.entries) {
    entry.timer = Timer();
    if (entry.token != 0) entry.member.cancellation->deregister_callback(entry.token);
  }
}

void LocalCollectives::Groups::end(Group& group, const std::exception_ptr& error) {
  stop_watching(group);
  for (Entry& entry : group.entries) {
    entry.input = Array();
    entry.done(error, Array());
  }
}

void LocalCollectives::Groups::abort(const std::exception_ptr& error) {
  std::map<std::string, GroupRef> groups;
  {
    const MutexLock lock(mutex_);
    if (aborted_) return;
    aborted_ = error;
    groups.swap(groups_);
  }
  for (auto& [key, group] : groups) end(*group, error);
}

LocalCollectives::LocalCollectives() = default;
LocalCollectives::~LocalCollectives() = default;

LocalCollectives::Groups& LocalCollectives::groups() {
  std::call_once(made_, [this] { groups_ = std::make_shared<Groups>(); });
  return *groups_;
}

void LocalCollectives::all_reduce(const Member& member, Array input, Reduction reduction,
                                  Done done) {
  groups().join(member, std::move(input), {.kind = CollectiveWork::kReduce, .reduction = reduction},
                std::move(done));
}
void LocalCollectives::reduce_scatter(const Member& member, Array input, Reduction reduction,
                                      Done done) {
  groups().join(member, std::move(input),
                {.kind = CollectiveWork::kScatter, .reduction = reduction}, std::move(done));
}
void LocalCollectives::all_gather(const Member& member, Array input, Done done) {
  groups().join(member, std::move(input), {.kind = CollectiveWork::kGather}, std::move(done));
}
void LocalCollectives::broadcast(const Member& member, Array input, Done done) {
  groups().join(member, std::move(input), {.kind = CollectiveWork::kBroadcast}, std::move(done));
}
void LocalCollectives::start_abort(std::exception_ptr error) { groups().abort(error); }

}  // namespace tandem
