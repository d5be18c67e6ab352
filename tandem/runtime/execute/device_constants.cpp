#include "tandem/runtime/execute/device_constants.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/device/memory_space.h"
#include "tandem/graph/graph.h"
#include "tandem/runtime/execute/transfers.h"

namespace tandem {

Array DeviceConstants::add(const Node& node, const Array& value, Device& device) {
  const AllocationScope holder("constants");
  Constant constant{.node = &node, .value = value, .place = {}, .waiting = {}};
  try {
    constant.place = kernel_view(allocate_on(device, value.dtype(), value.shape()));
  } catch (const Error&) {
    std::rethrow_exception(
        with_line(std::current_exception(), cat("in uploading ", node.describe())));
  }
  if (!is_computed(value)) constant.place.buffer()->mark_unmaterialized();
  constants_.push_back(std::move(constant));
  missing_.fetch_add(1, std::memory_order_relaxed);
  return constants_.back().place;
}

void DeviceConstants::upload(int i, Done done) {
  Constant& constant = constants_[static_cast<std::size_t>(i)];
  {
    std::unique_lock lock(mutex_);
    if (constant.state == State::kThere) {
      lock.unlock();
      return done(nullptr);
    }
    constant.waiting.push_back(std::move(done));
    if (constant.state == State::kOnItsWay) return;
    constant.state = State::kOnItsWay;
  }
  try {
    start_transfer(constant.value, constant.place,
                   [this, i](const std::exception_ptr& error) { arrived(i, error); });
  } catch (...) {
    arrived(i, std::current_exception());
  }
}

// Who waits may be the last to need this object: it is not touched once they know.
void DeviceConstants::arrived(int i, const std::exception_ptr& error) {
  Constant& constant = constants_[static_cast<std::size_t>(i)];
  std::vector<Done> waiting;
  {
    std::lock_guard lock(mutex_);
    constant.state = error ? State::kMissing : State::kThere;
    waiting.swap(constant.waiting);
    if (!error) missing_.fetch_sub(1, std::memory_order_release);
  }
  const std::exception_ptr reported =
      error ? with_line(error, cat("in uploading ", constant.node->describe())) : nullptr;
  for (const Done& done : waiting) done(reported);
}

}  // namespace tandem
