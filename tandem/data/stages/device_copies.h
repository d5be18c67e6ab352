#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "tandem/data/dataset_base.h"
#include "tandem/device/device.h"

namespace tandem::data {

/// Copies elements to a device, on its copy stream: begun by one thread, awaited by another.
/// Strings, variants and handles stay where they are.
class DeviceCopies {
 public:
  /// The copies of one element.
  struct Flight;

  /// Finds the device among those of the thread's runtime; throws InvalidArgumentError without one.
  DeviceCopies(const std::string& device, IterationContext context);
  ~DeviceCopies();

  const Device& device() const { return *device_; }
  /// Replaces the tensors by those of the device, whose values are there once `wait` returns.
  std::shared_ptr<Flight> begin(Element& element);
  /// Throws what went wrong on the way; CancelledError if the iteration is stopped meanwhile. A
  /// copy that never ends does not keep anybody from leaving.
  void wait(const Flight& flight);

 private:
  struct Shared;  // outlives this while copies are under way
  const std::shared_ptr<Device> device_;
  IterationContext context_;
  const std::shared_ptr<Shared> shared_;
  StopSignal::Waker waker_;
};

/// Throws InvalidArgumentError unless this is the name of a device, such as "GPU:0".
void check_device_name(const std::string& device);
/// Throws InvalidArgumentError, in the name of `stage`, unless the thread's runtime has it.
void require_device(const std::string& device, const char* stage);

}  // namespace tandem::data
