#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/device/block_allocator.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/device/emulated/internal/emulated_memory.h"
#include "tandem/device/emulated/internal/emulated_physical.h"
#include "tandem/device/emulated/internal/emulated_stream.h"

namespace tandem {

/// What is behind an EmulatedDevice, and stays until the last of its threads is done.
class EmulatedCore final : public Allocator, public std::enable_shared_from_this<EmulatedCore> {
 public:
  EmulatedCore(std::shared_ptr<EmulatedPhysical> physical, std::string name,
               const LogicalDeviceOptions& options);
  ~EmulatedCore() override;

  const std::string& name() const { return name_; }
  const EmulatedSpec& spec() const { return physical_->spec(); }
  const std::shared_ptr<EmulatedPhysical>& physical() const { return physical_; }
  const std::shared_ptr<EmulatedReports>& reports() const { return reports_; }
  MemorySpace& space() { return memory_->space(); }
  bool has(const EmulatedMemory* memory) const { return memory_.get() == memory; }
  /// For other logical devices of its hardware: bytes released.
  std::size_t release_unused() { return blocks_->release_unused(); }
  std::size_t memory_limit() const { return limit_; }

  EmulatedStream& stream(StreamKind kind, int index);
  int num_streams(StreamKind kind) const;
  template <class Body>
  void for_each_stream(Body body) {
    for (const auto& stream : compute_) body(*stream);
    body(*in_);
    body(*out_);
  }

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  bool closing() const { return closing_.load(std::memory_order_acquire); }
  bool stopped() const { return lost() || closing(); }
  std::string why_lost() const;
  std::exception_ptr lost_error() const;
  std::exception_ptr closed_error() const;
  /// Throws if lost; else counts the enqueue and says whether it loses the device.
  bool count_enqueue();
  void lose(const std::string& why);
  /// All streams finish what they have, without taking time; nothing new is taken.
  void close();

  Ref<Buffer> allocate(std::size_t bytes) override;
  MemoryStats stats() const override { return blocks_->stats(); }
  std::size_t counted_bytes(std::size_t bytes) const override {
    return blocks_->counted_bytes(bytes);
  }
  void reset_peak() override { blocks_->reset_peak(); }
  Reclaimables* reclaimables() override { return blocks_->reclaimables(); }

  void keep_records(bool on);
  std::vector<StreamRecord> take_records();
  void record(const StreamRecord& record);

 private:
  const std::shared_ptr<EmulatedPhysical> physical_;
  const std::string name_;
  const std::size_t limit_;
  const std::shared_ptr<EmulatedReports> reports_;
  std::shared_ptr<EmulatedMemory> memory_;
  std::unique_ptr<BlockAllocator> blocks_;
  std::vector<std::unique_ptr<EmulatedStream>> compute_;
  std::unique_ptr<EmulatedStream> in_, out_;

  std::atomic<bool> lost_{false};
  std::atomic<bool> closing_{false};
  std::atomic<bool> recording_{false};
  mutable std::mutex mutex_;  // of what follows
  std::string why_lost_;
  std::vector<StreamRecord> records_;
};

}  // namespace tandem
