#include "tandem/runtime/remote_calls.h"

#include <mutex>
#include <utility>

#include "tandem/core/never_destroyed.h"
#include "tandem/device/device_spec.h"
#include "tandem/runtime/eager/eager_choice.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

// The connection, as a process has one default runtime.
struct Current {
  std::mutex mutex;
  std::shared_ptr<RemoteCalls> calls;  // guarded by mutex
};
Current& current() {
  static NeverDestroyed<Current> current;
  return *current;
}

// The full name of the device that the thread's scope asks for; empty if it is not on another task.
std::string device_of_scope(const RemoteCalls& calls) {
  const auto& scopes = thread_context().devices;
  if (scopes.empty() || scopes.back().empty()) return {};
  DeviceSpec wanted = DeviceSpec::parse(scopes.back());
  if (!names_other_task(Runtime::current(), wanted) || !calls.has_task(wanted)) return {};
  wanted.replica = wanted.replica.value_or(0);
  wanted.task = wanted.task.value_or(0);
  wanted.type = wanted.type.value_or("CPU");
  wanted.index = wanted.index.value_or(0);
  return wanted.to_string();
}

}  // namespace

RemoteValue::~RemoteValue() = default;
RemoteCalls::~RemoteCalls() = default;
std::atomic<bool> RemoteCalls::active_{false};

RemoteValue* remote_value_of(const Tensor& tensor) {
  const TensorImpl* impl = tensor.impl();
  return impl && impl->pending ? dynamic_cast<RemoteValue*>(impl->pending.get()) : nullptr;
}

void RemoteCalls::set(std::shared_ptr<RemoteCalls> calls) {
  std::shared_ptr<RemoteCalls> before;  // without the lock
  const std::lock_guard lock(current().mutex);
  before = std::exchange(current().calls, std::move(calls));
  active_ = current().calls != nullptr;
}

std::shared_ptr<RemoteCalls> RemoteCalls::get() {
  const std::lock_guard lock(current().mutex);
  return current().calls;
}

std::optional<RemoteTarget> remote_target(std::span<const Tensor> inputs, CallKind kind) {
  std::shared_ptr<RemoteCalls> calls = RemoteCalls::get();
  if (!calls) return std::nullopt;
  std::string of_scope = device_of_scope(*calls);
  if (kind == CallKind::kFunction && !of_scope.empty())
    return RemoteTarget{std::move(calls), std::move(of_scope)};
  for (const Tensor& input : inputs) {
    const TensorImpl* impl = input.impl();
    if (!impl || impl->array.dtype() != DType::kResource) continue;
    if (const RemoteValue* value = remote_value_of(input))
      return RemoteTarget{std::move(calls), value->device()};
    return std::nullopt;  // a resource of this process
  }
  if (of_scope.empty()) return std::nullopt;
  return RemoteTarget{std::move(calls), std::move(of_scope)};
}

}  // namespace tandem
