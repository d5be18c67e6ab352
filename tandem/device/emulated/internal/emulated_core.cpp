#include "tandem/device/emulated/internal/emulated_core.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/lost_device.h"

namespace tandem {

EmulatedCore::EmulatedCore(std::shared_ptr<EmulatedPhysical> physical, std::string name,
                           const LogicalDeviceOptions& options)
    : physical_(std::move(physical)),
      name_(std::move(name)),
      limit_(options.memory_limit.value_or(physical_->spec().memory)),
      reports_(std::make_shared<EmulatedReports>()),
      memory_(std::make_shared<EmulatedMemory>(physical_, limit_, name_, reports_)),
      blocks_(std::make_unique<BlockAllocator>(
          memory_, BlockAllocatorOptions{.device = name_,
                                         .limit = limit_,
                                         .growth = options.memory_growth,
                                         .space = &memory_->space()})) {
  for (int i = 0; i < spec().streams; ++i) {
    compute_.push_back(std::make_unique<EmulatedStream>(*this, StreamKind::kCompute, i));
  }
  in_ = std::make_unique<EmulatedStream>(*this, StreamKind::kCopyIn, 0);
  out_ = std::make_unique<EmulatedStream>(*this, StreamKind::kCopyOut, 0);
}

EmulatedCore::~EmulatedCore() = default;

int EmulatedCore::num_streams(StreamKind kind) const {
  return kind == StreamKind::kCompute ? static_cast<int>(compute_.size()) : 1;
}

EmulatedStream& EmulatedCore::stream(StreamKind kind, int index) {
  if (index < 0 || index >= num_streams(kind)) {
    throw InvalidArgumentError(
        cat(name_, " has ", num_streams(kind), " streams of that kind, not a stream ", index, '.'));
  }
  switch (kind) {
    case StreamKind::kCopyIn: return *in_;
    case StreamKind::kCopyOut: return *out_;
    case StreamKind::kCompute: break;
  }
  return *compute_[static_cast<std::size_t>(index)];
}

std::string EmulatedCore::why_lost() const {
  if (!lost()) return {};
  std::lock_guard lock(mutex_);
  return why_lost_;
}

std::exception_ptr EmulatedCore::lost_error() const {
  return std::make_exception_ptr(UnavailableError(lost_text(name_, why_lost())));
}

std::exception_ptr EmulatedCore::closed_error() const {
  return std::make_exception_ptr(
      CancelledError(cat("Device ", name_, " was destroyed before this work could run.")));
}

bool EmulatedCore::count_enqueue() {
  if (lost()) std::rethrow_exception(lost_error());
  return physical_->loses_this_enqueue();
}

void EmulatedCore::lose(const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    if (lost()) return;
    why_lost_ = why.empty() ? "no reason given" : why;
    lost_.store(true, std::memory_order_release);
  }
  for_each_stream([](EmulatedStream& stream) { stream.wake(); });
}

void EmulatedCore::close() {
  closing_.store(true, std::memory_order_release);
  bool own_thread = false;
  for_each_stream([&](EmulatedStream& stream) {
    stream.wake();
    own_thread |= stream.is_this_thread();
  });
  // The last reference may go with a piece of work, on one of the device's own threads: then the
  // threads, which hold this object, end by themselves.
  for_each_stream([&](EmulatedStream& stream) { stream.finish(!own_thread); });
}

Ref<Buffer> EmulatedCore::allocate(std::size_t bytes) {
  if (lost()) std::rethrow_exception(lost_error());
  reports_->raise();
  if (physical_->fails_this_allocation()) {
    // How much is free, and how to get more, would be beside the point.
    throw ResourceExhaustedError(cat(blocks_->use_report(bytes),
                                     "\nThis allocation failed on request (fault=oom), whatever "
                                     "memory was free; the next one works."));
  }
  return blocks_->allocate(bytes);
}

void EmulatedCore::keep_records(bool on) { recording_.store(on); }

std::vector<StreamRecord> EmulatedCore::take_records() {
  std::lock_guard lock(mutex_);
  return std::exchange(records_, {});
}

void EmulatedCore::record(const StreamRecord& record) {
  if (!recording_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  records_.push_back(record);
}

}  // namespace tandem
