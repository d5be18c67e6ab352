#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "tandem/core/array.h"

namespace tandem {

class Device;
class Node;

/// A plan's constants that are wanted in the memory of devices: each is copied once, by the first
/// call that asks for it. Memory is taken when they are added. Nothing waits in here, so a device
/// whose link is slow holds up only those who read its constants. `upload` is thread-safe.
class DeviceConstants {
 public:
  /// The constant as the device's kernels will see it. Throws where there is no memory for it.
  Array add(const Node& node, const Array& value, Device& device);
  int size() const { return static_cast<int>(constants_.size()); }
  /// They need no more copying, any of them.
  bool all_there() const { return missing_.load(std::memory_order_acquire) == 0; }

  const Node& node(int i) const { return *at(i).node; }
  const Array& value(int i) const { return at(i).value; }
  const Array& place(int i) const { return at(i).place; }

  /// `done` is called once, with null when constant `i` is there, else with what went wrong; now or
  /// later, on a thread of a backend's. The next one to ask after a failure tries again.
  using Done = std::function<void(std::exception_ptr)>;
  void upload(int i, Done done);

 private:
  enum class State { kMissing, kOnItsWay, kThere };
  struct Constant {
    const Node* node;
    Array value;
    Array place;
    State state = State::kMissing;
    std::vector<Done> waiting;
  };
  const Constant& at(int i) const { return constants_[static_cast<std::size_t>(i)]; }
  void arrived(int i, const std::exception_ptr& error);

  std::vector<Constant> constants_;
  std::atomic<int> missing_{0};
  std::mutex mutex_;  // guards states and who waits
};

}  // namespace tandem
