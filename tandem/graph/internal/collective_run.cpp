#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/device/communicator.h"
#include "tandem/device/memory_space.h"
#include "tandem/graph/internal/collective_work.h"

namespace tandem {
namespace {

using Members = std::vector<CollectiveMember>;

void fail_all(Members& members, const std::exception_ptr& error) {
  for (CollectiveMember& member : members) member.input = Array();
  for (CollectiveMember& member : members) member.done(error, Array());
}

DType dtype_of(const Members& members) {
  for (const CollectiveMember& member : members) {
    if (member.input.valid()) return member.input.dtype();
  }
  return DType::kInvalid;
}

// False if an input has no value, as on a device that only takes time.
bool all_computed(const Members& members) {
  for (const CollectiveMember& member : members) {
    if (!member.input.valid()) continue;
    const Device* const device = device_of(member.input);
    if (!is_computed(member.input) || (device && !device->properties().computes)) return false;
  }
  return true;
}

Array in_memory_of(const CollectiveMember& member, DType dtype, const Shape& shape) {
  return kernel_view(allocate_on(*member.memory, dtype, shape));
}

// ---- On the devices ----

DeviceCollective on_devices(const CollectiveWork& work, const Members& members) {
  DeviceCollective what;
  switch (work.kind) {
    case CollectiveWork::kReduce: what.kind = DeviceCollective::kAllReduce; break;
    case CollectiveWork::kScatter: what.kind = DeviceCollective::kReduceScatter; break;
    case CollectiveWork::kGather: what.kind = DeviceCollective::kAllGather; break;
    case CollectiveWork::kBroadcast:
      what.kind = DeviceCollective::kBroadcast;
      what.root = source_of(members);
      break;
  }
  switch (work.reduction) {
    case Collectives::Reduction::kSum: what.reduction = DeviceCollective::kSum; break;
    case Collectives::Reduction::kMean: what.reduction = DeviceCollective::kMean; break;
    case Collectives::Reduction::kMax: what.reduction = DeviceCollective::kMax; break;
    case Collectives::Reduction::kMin: what.reduction = DeviceCollective::kMin; break;
    case Collectives::Reduction::kProduct: what.reduction = DeviceCollective::kProduct; break;
  }
  return what;
}

// Null if values have to meet in host memory. Whether they do follows from the members alone.
std::shared_ptr<Communicator> communicator_for(const Members& members, const Shape& shape) {
  if (members.size() < 2 || shape.num_elements() == 0 || !all_computed(members)) return nullptr;
  std::vector<Device*> devices;
  std::int64_t elements = -1;
  for (const CollectiveMember& member : members) {
    if (!member.memory) return nullptr;
    devices.push_back(member.memory);
    if (!member.input.valid()) continue;
    if (device_of(member.input) != member.memory) return nullptr;
    if (elements >= 0 && member.input.num_elements() != elements) return nullptr;
    elements = member.input.num_elements();
  }
  if (std::set<Device*>(devices.begin(), devices.end()).size() != devices.size()) return nullptr;
  return communicator_of(devices);
}

// False if nothing has begun.
bool run_on_devices(const CollectiveWork& work, Members& members, const Shape& shape) {
  const std::shared_ptr<Communicator> communicator = communicator_for(members, shape);
  const DType dtype = dtype_of(members);
  const DeviceCollective what = on_devices(work, members);
  if (!communicator || !communicator->supports(what, dtype)) return false;
  std::vector<Communicator::Member> parts;
  for (const CollectiveMember& member : members) {
    const Array output = in_memory_of(member, dtype, shape);
    parts.push_back({.input = member.input,
                     .output = output,
                     .done = [done = member.done, output](std::exception_ptr error) {
                       done(error, error ? Array() : output);
                     }});
  }
  communicator->enqueue(what, std::move(parts));
  return true;
}

// ---- By way of host memory ----

class HostRun : public std::enable_shared_from_this<HostRun> {
 public:
  HostRun(const CollectiveWork& work, Members members, const Shape& shape)
      : work_(work),
        shape_(shape),
        dtype_(dtype_of(members)),
        computed_(all_computed(members)),
        members_(std::move(members)),
        inputs_(members_.size()),
        coming_(static_cast<int>(members_.size())) {}

  void start() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      try {
        fetch(i);
      } catch (...) {
        arrived(std::current_exception());
      }
    }
  }

 private:
  void fetch(std::size_t i) {
    const Array& input = members_[i].input;
    Device* const device = input.valid() ? device_of(input) : nullptr;
    if (!device) {
      inputs_[i] = input;
      return arrived(nullptr);
    }
    inputs_[i] = allocate_staging(*device, input.dtype(), input.shape());
    if (input.num_bytes() == 0) return arrived(nullptr);
    Copy copy = transfer(input, inputs_[i]);
    copy.done = [self = shared_from_this()](const std::exception_ptr& error) {
      self->arrived(error);
    };
    copy_stream(device, nullptr).enqueue(std::move(copy));
  }

  // A copy that is over, well or not: no member is called while others are on their way.
  void arrived(const std::exception_ptr& error) {
    if (error) {
      const MutexLock lock(mutex_);
      if (!error_) error_ = error;
    }
    if (coming_.fetch_sub(1, std::memory_order_acq_rel) == 1) compute();
  }

  void compute() {
    std::exception_ptr error = [&] {
      const MutexLock lock(mutex_);
      return error_;
    }();
    std::vector<Array> results;
    try {
      if (!error) results = compute_collective(work_, inputs_, shape_);
    } catch (...) {
      error = std::current_exception();
    }
    inputs_.clear();
    if (error) return fail_all(members_, error);
    for (CollectiveMember& member : members_) member.input = Array();
    for (std::size_t i = 0; i < members_.size(); ++i) deliver(members_[i], results[i]);
  }

  void deliver(CollectiveMember& member, const Array& result) {
    if (!computed_ && result.buffer()) result.buffer()->mark_unmaterialized();
    if (!member.memory) return member.done(nullptr, result);
    try {
      const Array there = in_memory_of(member, dtype_, shape_);
      if (!computed_ && there.buffer()) there.buffer()->mark_unmaterialized();
      if (result.num_bytes() == 0) return member.done(nullptr, there);
      Copy copy = transfer(result, there);
      copy.done = [done = member.done, there](std::exception_ptr error) {
        done(error, error ? Array() : there);
      };
      copy_stream(nullptr, member.memory).enqueue(std::move(copy));
    } catch (...) {
      member.done(std::current_exception(), Array());
    }
  }

  const CollectiveWork work_;
  const Shape shape_;
  const DType dtype_;
  const bool computed_;
  Members members_;
  std::vector<Array> inputs_;
  std::atomic<int> coming_;  // inputs that are not in host memory yet
  Mutex mutex_;
  std::exception_ptr error_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace

void run_collective(const CollectiveWork& work, Members members) noexcept {
  try {
    const Shape shape = check_collective(work, members);
    if (run_on_devices(work, members, shape)) return;
    const auto run = std::make_shared<HostRun>(work, members, shape);
    members.clear();  // nothing holds an input when its member is called
    run->start();
  } catch (...) {
    fail_all(members, std::current_exception());
  }
}

}  // namespace tandem
