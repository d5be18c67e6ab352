#include "tandem/device/null/null_backend.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/block_allocator.h"
#include "tandem/device/internal/byte_size.h"
#include "tandem/device/internal/double_mapping.h"
#include "tandem/device/memory_space.h"

namespace tandem {

// What the logical devices of one physical share.
class NullHardware {
 public:
  NullHardware(PhysicalDevice id, DeviceProperties properties)
      : id_(std::move(id)), properties_(std::move(properties)) {}

  const PhysicalDevice& id() const { return id_; }
  const DeviceProperties& properties() const { return properties_; }

  std::size_t take(std::size_t least, std::size_t wanted) {
    std::lock_guard lock(mutex_);
    const std::size_t left = (properties_.memory_bytes - taken_) / 256 * 256;
    if (least > left) return 0;
    const std::size_t given = std::min(wanted, left);
    taken_ += given;
    return given;
  }
  void release(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    taken_ -= bytes;
  }

 private:
  const PhysicalDevice id_;
  const DeviceProperties properties_;
  std::mutex mutex_;
  std::size_t taken_ = 0;
};

namespace {

class NullMemory final : public RegionSource {
 public:
  NullMemory(std::shared_ptr<NullHardware> hardware, std::size_t bytes)
      : hardware_(std::move(hardware)), views_(bytes, bytes) {
    space.kernel_offset = views_.offset();
  }
  ~NullMemory() override { hardware_->release(extent_); }
  std::optional<MemoryRegion> grow(std::size_t least, std::size_t wanted) override {
    const std::size_t given = hardware_->take(least, wanted);
    if (given == 0) return {};
    const MemoryRegion region{.begin = views_.tokens() + extent_,
                              .bytes = given,
                              .padding = 0,
                              .continues = extent_ != 0};
    extent_ += given;
    return region;
  }
  bool contiguous() const override { return true; }

  MemorySpace space;

 private:
  const std::shared_ptr<NullHardware> hardware_;
  const DoubleMapping views_;
  std::size_t extent_ = 0;
};

class StagingAllocator final : public Allocator {
 public:
  Ref<Buffer> allocate(std::size_t bytes) override { return allocate_host_buffer(bytes); }
  std::size_t counted_bytes(std::size_t bytes) const override {
    return counted_host_buffer_bytes(bytes);
  }
  MemoryStats stats() const override {
    const HostMemoryStats stats = host_memory_stats();
    return {.current = stats.current, .peak = stats.peak};
  }
};

// What failed is reported by the event or synchronize that comes next, unless `done` got it.
class NullEvent final : public Event {
 public:
  explicit NullEvent(std::exception_ptr error) : error_(std::move(error)) {}
  bool done() const override { return true; }
  void wait() override {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::exception_ptr error_;
};

class NullStream final : public Stream {
 public:
  explicit NullStream(const MemorySpace* space) : space_(space) {}

  void enqueue(Work work) override {
    run(
        [&] {
          if (work.run) work.run();
        },
        work.done);
  }

  void enqueue(Copy copy) override {
    std::byte* const from = kernel_side(copy.from, copy.from_offset, copy.bytes);
    std::byte* const to = kernel_side(copy.to, copy.to_offset, copy.bytes);
    if (copy.from->space() != space_ && copy.to->space() != space_) {
      throw InvalidArgumentError("A copy has neither side in the memory of the stream's device.");
    }
    run(
        [&] {
          if (copy.bytes != 0) std::memmove(to, from, copy.bytes);
        },
        copy.done);
  }

  Ref<Event> record() override { return make_ref<NullEvent>(take_failure()); }
  void wait_for(Ref<Event> event) override {
    try {
      event->wait();
    } catch (...) {  // its own stream reports it
    }
  }
  void synchronize() override {
    if (const std::exception_ptr error = take_failure()) std::rethrow_exception(error);
  }

 private:
  static std::byte* kernel_side(const Ref<Buffer>& buffer, std::size_t offset, std::size_t bytes) {
    if (!buffer || offset > buffer->size() || bytes > buffer->size() - offset) {
      throw InvalidArgumentError(
          cat("A copy of ", bytes, " bytes does not lie in the memory given."));
    }
    const MemorySpace* const space = buffer->space();
    return static_cast<std::byte*>(buffer->data()) + offset + (space ? space->kernel_offset : 0);
  }

  template <class Body>
  void run(const Body& body, const std::function<void(std::exception_ptr)>& done) {
    std::exception_ptr error;
    try {
      body();
    } catch (...) {
      error = std::current_exception();
    }
    if (done) return done(error);
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
  }

  std::exception_ptr take_failure() {
    std::lock_guard lock(mutex_);
    return std::exchange(failure_, nullptr);
  }

  const MemorySpace* const space_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

class NullDevice final : public Device {
 public:
  NullDevice(const std::shared_ptr<NullHardware>& hardware, const LogicalDeviceOptions& options,
             DeviceSpec spec)
      : Device(std::move(spec)), properties_(hardware->properties()) {
    properties_.memory_bytes = options.memory_limit.value_or(properties_.memory_bytes);
    memory_ = std::make_shared<NullMemory>(hardware, properties_.memory_bytes);
    memory_->space.device = this;
    blocks_ = std::make_unique<BlockAllocator>(
        memory_, BlockAllocatorOptions{.device = name(),
                                       .limit = properties_.memory_bytes,
                                       .growth = options.memory_growth,
                                       .space = &memory_->space});
    const int streams = std::max(properties_.compute_streams, 1) + 2;
    for (int i = 0; i < streams; ++i) {
      streams_.push_back(std::make_unique<NullStream>(&memory_->space));
    }
  }

  // Buffers that live longer know that their device is gone.
  ~NullDevice() override { memory_->space.device = nullptr; }

  const std::string& kernel_class() const override { return kernel_class_; }
  const DeviceProperties& properties() const override { return properties_; }
  bool synchronous() const override { return true; }
  const MemorySpace* memory_space() const override { return &memory_->space; }
  Allocator& allocator() override { return *blocks_; }
  Allocator& staging_allocator() override {
    static NeverDestroyed<StagingAllocator> staging;
    return *staging;
  }
  int num_streams(StreamKind kind) const override {
    return kind == StreamKind::kCompute ? static_cast<int>(streams_.size()) - 2 : 1;
  }
  Stream& stream(StreamKind kind, int index) override {
    if (index < 0 || index >= num_streams(kind)) {
      throw InvalidArgumentError(cat(name(), " has ", num_streams(kind),
                                     " streams of that kind, not a stream ", index, '.'));
    }
    const std::size_t first = kind == StreamKind::kCopyIn    ? 0
                              : kind == StreamKind::kCopyOut ? 1
                                                             : 2;
    return *streams_[first + static_cast<std::size_t>(index)];
  }
  bool can_copy_to(const Device& other) const override {
    return other.memory_space() == nullptr || dynamic_cast<const NullDevice*>(&other) != nullptr;
  }

 private:
  const std::string kernel_class_ = "cpu";
  DeviceProperties properties_;
  std::shared_ptr<NullMemory> memory_;
  std::unique_ptr<BlockAllocator> blocks_;
  std::vector<std::unique_ptr<NullStream>> streams_;
};

}  // namespace

NullBackend::NullBackend(std::vector<NullSpec> specs) {
  std::map<std::string, int> next;
  for (NullSpec& spec : specs) {
    DeviceProperties& p = spec.properties;
    if (spec.count < 1 || p.memory_bytes == 0) {
      throw InvalidArgumentError(
          cat("A null ", spec.type, " needs a count and a size of memory (memory_bytes)."));
    }
    if (p.description.empty()) {
      p.description =
          cat("emulated ", spec.type, " that computes nothing, ", byte_text(p.memory_bytes));
    }
    p.emulated = true;
    p.computes = false;
    for (int i = 0; i < spec.count; ++i) {
      PhysicalDevice id{cat("/physical_device:", spec.type, ':', next[spec.type]++), spec.type};
      hardware_.push_back(std::make_shared<NullHardware>(std::move(id), p));
    }
  }
}

NullBackend::~NullBackend() = default;

std::vector<PhysicalDevice> NullBackend::physical_devices() const {
  std::vector<PhysicalDevice> devices;
  for (const auto& hardware : hardware_) devices.push_back(hardware->id());
  return devices;
}

const std::shared_ptr<NullHardware>& NullBackend::find(const PhysicalDevice& physical) const {
  const auto found = std::find_if(hardware_.begin(), hardware_.end(),
                                  [&](const auto& h) { return h->id() == physical; });
  if (found == hardware_.end()) {
    throw InvalidArgumentError(cat("There is no null device ", physical.name, '.'));
  }
  return *found;
}

DeviceProperties NullBackend::properties(const PhysicalDevice& physical) const {
  return find(physical)->properties();
}

std::shared_ptr<Device> NullBackend::make_device(const PhysicalDevice& physical,
                                                 const LogicalDeviceOptions& options,
                                                 DeviceSpec spec) {
  const auto& hardware = find(physical);
  const std::size_t there = hardware->properties().memory_bytes;
  if (options.memory_limit && (*options.memory_limit == 0 || *options.memory_limit > there)) {
    throw InvalidArgumentError(cat("A memory limit of ", byte_text(*options.memory_limit),
                                   " is not possible on ", physical.name, ", which has ",
                                   byte_text(there), '.'));
  }
  return std::make_shared<NullDevice>(hardware, options, std::move(spec));
}

}  // namespace tandem
