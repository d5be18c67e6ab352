#include "tandem/data/stages/device_copies.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem::data {

struct DeviceCopies::Shared {
  std::mutex mutex;
  std::condition_variable over;
};

struct DeviceCopies::Flight {
  int pending = 0;           // guarded by the mutex of Shared, like
  std::exception_ptr error;  // the first one
};

namespace {

std::shared_ptr<Device> find_device(const std::string& name) {
  const DeviceSpec wanted = DeviceSpec::parse(name);
  std::string all;
  for (const std::shared_ptr<Device>& device : Runtime::current().devices()) {
    if (wanted.matches(device->spec())) return device;
    all += (all.empty() ? "" : ", ") + device->name();
  }
  throw InvalidArgumentError(
      cat("There is no device ", name, " to copy elements to. The devices are: ", all, "."));
}

Tensor tensor_on(const std::shared_ptr<Device>& device, Array value) {
  Tensor tensor(new TensorImpl(token_view(std::move(value))));
  tensor.impl()->device = device;
  return tensor;
}

}  // namespace

void check_device_name(const std::string& device) {
  if (DeviceSpec::parse(device).type) return;
  throw InvalidArgumentError(
      cat("'", device,
          "' names no device to copy elements to: write \"GPU:0\", or \"GPU\" for the first one."));
}

void require_device(const std::string& device, const char* stage) {
  try {
    find_device(device);
  } catch (...) {
    std::rethrow_exception(with_line(std::current_exception(), cat("in ", stage)));
  }
}

DeviceCopies::DeviceCopies(const std::string& device, IterationContext context)
    : device_(find_device(device)),
      context_(std::move(context)),
      shared_(std::make_shared<Shared>()),
      waker_(context_.stop_signal(), [shared = shared_] {
        std::lock_guard lock(shared->mutex);
        shared->over.notify_all();
      }) {}

DeviceCopies::~DeviceCopies() = default;

std::shared_ptr<DeviceCopies::Flight> DeviceCopies::begin(Element& element) {
  auto flight = std::make_shared<Flight>();
  if (device_->memory_space() == nullptr) return flight;
  const AllocationScope holder("prefetch_to_device");
  for (Tensor& tensor : element) {
    tensor.synchronize();
    const Array value = tensor.impl()->array;
    if (is_object(value.dtype()) || device_of(value) == device_.get()) continue;
    if (!value.on_host() || value.num_bytes() == 0) {
      tensor = tensor_on(device_, copy_to_device(value, *device_));
      continue;
    }
    const Array target = allocate_on(*device_, value.dtype(), value.shape());
    Copy copy = transfer(value, target);
    copy.done = [shared = shared_, flight](std::exception_ptr error) {
      std::lock_guard lock(shared->mutex);
      --flight->pending;
      if (error && !flight->error) flight->error = std::move(error);
      shared->over.notify_all();
    };
    {
      std::lock_guard lock(shared_->mutex);
      ++flight->pending;
    }
    copy_stream(nullptr, device_.get()).enqueue(std::move(copy));
    tensor = tensor_on(device_, target);
  }
  return flight;
}

void DeviceCopies::wait(const Flight& flight) {
  std::unique_lock lock(shared_->mutex);
  shared_->over.wait(lock,
                     [&] { return flight.pending == 0 || context_.stop_signal()->stopped(); });
  context_.check();
  if (flight.error) std::rethrow_exception(flight.error);
}

}  // namespace tandem::data
