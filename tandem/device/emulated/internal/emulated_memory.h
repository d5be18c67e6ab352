#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "tandem/device/block_allocator.h"
#include "tandem/device/emulated/internal/emulated_physical.h"
#include "tandem/device/internal/double_mapping.h"
#include "tandem/device/memory_space.h"

namespace tandem {

/// Errors that belong to no piece of work, reported to the next caller that asks. Thread-safe.
class EmulatedReports {
 public:
  void add(std::exception_ptr error) noexcept;
  /// Throws the oldest that was not reported yet.
  void raise();

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

/// The memory of one logical device. One that computes lays guards behind blocks, checks them when
/// the block is freed, and overwrites what was freed.
class EmulatedMemory final : public RegionSource {
 public:
  /// Throws ResourceExhaustedError if the host has no room for `capacity` bytes of addresses.
  EmulatedMemory(std::shared_ptr<EmulatedPhysical> physical, std::size_t capacity,
                 std::string device, std::shared_ptr<EmulatedReports> reports);
  ~EmulatedMemory() override;
  EmulatedMemory(const EmulatedMemory&) = delete;
  EmulatedMemory& operator=(const EmulatedMemory&) = delete;

  MemorySpace& space() { return space_; }

  std::optional<MemoryRegion> grow(std::size_t least, std::size_t wanted) override;
  bool contiguous() const override { return true; }
  bool takes_back() const override { return true; }
  void take_back(const MemoryRegion& region) noexcept override;
  bool ask_others() override { return physical_->ask_for_memory(this); }
  std::string shortage() const override;
  std::string way_to_more(std::size_t limit, std::size_t needed) const override;
  void on_allocate(std::byte* at, std::size_t bytes, std::size_t gap) override;
  void on_free(std::byte* at, std::size_t bytes, std::size_t gap,
               std::string_view holder) noexcept override;

 private:
  std::byte* kernel_side(std::byte* at) const { return at + space_.kernel_offset; }

  const std::shared_ptr<EmulatedPhysical> physical_;
  const std::string device_;
  const std::shared_ptr<EmulatedReports> reports_;
  const bool guarded_;
  const DoubleMapping views_;
  MemorySpace space_;
  std::size_t extent_ = 0;  // of the view, handed out so far
  std::size_t taken_ = 0;   // of the hardware's memory
};

}  // namespace tandem
