#include "tandem/runtime/thread_context.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/draw_position.h"
#include "tandem/runtime/internal/configured.h"

namespace tandem {

namespace {

// A pointer needs neither a guard nor a second look-up of the thread's storage, as an object with a
// destructor does, and every op call comes by here several times.
constinit thread_local ThreadContext* current = nullptr;

[[gnu::noinline]] ThreadContext& make_thread_context() {
  thread_local ThreadContext context;
  current = &context;
  return context;
}

[[maybe_unused]] const bool kTold = [] {
  DrawPosition::set_current([] { return thread_context().draws.get(); });
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

CancellationScope::CancellationScope(std::shared_ptr<const Cancellation> cancellation)
    : saved_(std::exchange(thread_context().cancellation, std::move(cancellation))) {}
CancellationScope::~CancellationScope() { thread_context().cancellation = std::move(saved_); }

NameScope::NameScope(const std::string& name) : saved_(thread_context().name_scope) {
  thread_context().name_scope += name + "/";
}
NameScope::~NameScope() { thread_context().name_scope = std::move(saved_); }

}  // namespace tandem
