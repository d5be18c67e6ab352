#include "tandem/runtime/thread_context.h"

#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/fs/io_scope.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/graph/rng_position.h"
#include "tandem/runtime/config/configured.h"
#include "tandem/runtime/execute/program_end.h"

namespace tandem {

namespace {

// A pointer needs neither a guard nor a second look-up of the thread's storage, as an object with a
// destructor does, and every op call comes by here several times.
constinit thread_local ThreadContext* current = nullptr;

// What is called once the thread's objects are destroyed, by a static object of the program say,
// finds a context too.
constinit thread_local bool destroyed = false;

struct OwnedContext {
  ThreadContext context;
  ~OwnedContext() {
    thread_ends();
    current = nullptr;
    destroyed = true;
  }
};

[[gnu::noinline]] ThreadContext& make_thread_context() {
  if (destroyed) {
    static thread_local NeverDestroyed<ThreadContext> last;
    return *(current = &*last);
  }
  thread_local OwnedContext owned;
  current = &owned.context;
  return owned.context;
}

[[maybe_unused]] const bool kRegistered = [] {
  RngPosition::set_current([] { return thread_context().draws.get(); });
  fs::IoScope::set_source([] { return thread_context().cancellation; });
  return true;
}();

}  // namespace

ThreadContext& thread_context() { return current ? *current : make_thread_context(); }

ThreadContextScope::ThreadContextScope(ThreadContext context)
    : saved_(std::exchange(thread_context(), std::move(context))) {}
ThreadContextScope::~ThreadContextScope() { thread_context() = std::move(saved_); }

namespace {

// A type that is there but was never asked for becomes known with the list of devices.
DeviceSpec parse_device(const std::string& device) {
  try {
    return DeviceSpec::parse(device);
  } catch (const InvalidArgumentError&) {
    config::devices_now();
    return DeviceSpec::parse(device);
  }
}

}  // namespace

DeviceScope::DeviceScope(const std::string& device) {
  DeviceSpec spec = parse_device(device);
  auto& scopes = thread_context().devices;
  if (!device.empty() && !scopes.empty()) spec = spec.merged_into(DeviceSpec::parse(scopes.back()));
  scopes.push_back(spec.to_string());
}
DeviceScope::~DeviceScope() { thread_context().devices.pop_back(); }

namespace {

// What stops the calls of an inner scope: its own or the outer one's, so that a library's scope
// does not keep its caller's from being heard.
std::shared_ptr<const Cancellation> joined(std::shared_ptr<const Cancellation> inner,
                                           const std::shared_ptr<const Cancellation>& outer) {
  if (!inner || inner == outer) return outer;
  if (!outer || inner->joins(outer)) return inner;
  return std::make_shared<const Cancellation>(std::move(inner), outer);
}

}  // namespace

CancellationScope::CancellationScope(std::shared_ptr<const Cancellation> cancellation)
    : saved_(thread_context().cancellation) {
  thread_context().cancellation = joined(std::move(cancellation), saved_);
}
CancellationScope::~CancellationScope() { thread_context().cancellation = std::move(saved_); }

DeadlineScope::DeadlineScope(std::chrono::nanoseconds timeout)
    : saved_(thread_context().cancellation), saved_deadline_(thread_context().deadline) {
  using Clock = std::chrono::steady_clock;
  if (timeout <= std::chrono::nanoseconds(0)) {
    throw InvalidArgumentError(cat("A deadline must lie ahead: the timeout is ",
                                   1e-9 * static_cast<double>(timeout.count()),
                                   " s, but has to be greater than zero."));
  }
  const Clock::time_point now = Clock::now();
  // The sum would overflow for a timeout that never ends.
  const bool endless = timeout > Clock::time_point::max() - now;
  const Clock::time_point deadline = endless ? Clock::time_point::max() : now + timeout;
  if (deadline >= saved_deadline_) return;
  const auto expired = std::make_shared<Cancellation>();
  timer_ = Timer(deadline, [expired] { expired->cancel(Code::kDeadlineExceeded); });
  ThreadContext& context = thread_context();
  context.cancellation = joined(expired, saved_);
  context.deadline = deadline;
}
DeadlineScope::~DeadlineScope() {
  thread_context().cancellation = std::move(saved_);
  thread_context().deadline = saved_deadline_;
}

NameScope::NameScope(const std::string& name) : saved_(thread_context().name_scope) {
  std::string& scope = thread_context().name_scope;
  if (name.empty() || name.ends_with('/')) {
    scope = name;
  } else {
    scope += name + "/";
  }
}
NameScope::~NameScope() { thread_context().name_scope = std::move(saved_); }

}  // namespace tandem
