#include "tandem/device/plugin/internal/plugin_memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tandem/core/cached_object.h"
#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"
#include "tandem/device/block_allocator.h"
#include "tandem/device/plugin/internal/guarded_memory.h"
#include "tandem/device/plugin/internal/plugin_device.h"
#include "tandem/device/plugin/internal/reserved_memory.h"
#include "tandem/device/plugin/internal/retired_blocks.h"

namespace tandem {
namespace {

constexpr std::size_t kUnit = BlockAllocator::kAlignment;

// Regions by one of the plugin's pairs of functions.
class PluginSource final : public RegionSource {
 public:
  using Allocate = void* (*)(TandemDevice*, std::uint64_t, TandemStatus*);
  using Free = void (*)(TandemDevice*, void*, std::uint64_t);

  PluginSource(std::shared_ptr<PluginHandle> handle, Allocate allocate, Free free, std::size_t most)
      : handle_(std::move(handle)), allocate_(allocate), free_(free), most_(most / kUnit * kUnit) {}

  std::optional<MemoryRegion> grow(std::size_t least, std::size_t wanted) override {
    std::size_t bytes = most_ == 0 ? wanted : std::max(least, std::min(wanted, most_));
    for (;;) {
      TandemStatus status = no_error();
      void* begin = allocate_(handle_->get(), bytes, &status);
      if (status.code == TANDEM_OK && begin) {
        shortage_.clear();
        return MemoryRegion{.begin = static_cast<std::byte*>(begin), .bytes = bytes};
      }
      if (status.code != TANDEM_OK && status.code != TANDEM_RESOURCE_EXHAUSTED) {
        check(status, "The plugin cannot allocate memory");
      }
      shortage_ = cat("The hardware has no more: ", text_of_status(status));
      if (bytes <= least) return std::nullopt;
      bytes = std::max(least, (bytes - bytes / 8) / kUnit * kUnit);
    }
  }
  std::string shortage() const override { return shortage_; }
  std::string way_to_more(std::size_t limit, std::size_t needed) const override {
    const std::string way = RegionSource::way_to_more(limit, needed);
    return shortage_.empty() ? way : with_less_use_by_others(way);
  }
  void release(const MemoryRegion& region) noexcept override {
    free_(handle_->get(), region.begin, region.bytes);
  }

 private:
  const std::shared_ptr<PluginHandle> handle_;
  const Allocate allocate_;
  const Free free_;
  const std::size_t most_;
  std::string shortage_;
};

// A block that keeps its device.
class DeviceBuffer final : public Buffer, public CachedObject {
 public:
  DeviceBuffer(Ref<Buffer> block, std::size_t bytes, std::shared_ptr<PluginDevice> device)
      : Buffer(block->data(), bytes, /*owned=*/true, device->memory_space()),
        device_(std::move(device)),
        block_(std::move(block)) {}
  ~DeviceBuffer() override {
    if (size_ == 0) return;
    if (RetiredBlocks* retired = RetiredBlocks::launching_on(device_.get()))
      retired->add(std::move(block_));
  }
  void set_holder(std::string_view holder) override { block_->set_holder(holder); }
  Ref<Buffer> allocate_like(std::size_t bytes) const override {
    return make_ref<DeviceBuffer>(block_->allocate_like(bytes), bytes, device_);
  }

 private:
  const std::shared_ptr<PluginDevice> device_;  // goes after the block
  Ref<Buffer> block_;
};

// Not owned, so that no kernel takes it for its result.
class HostReadableBuffer final : public Buffer {
 public:
  HostReadableBuffer(Ref<Buffer> staging, std::shared_ptr<PluginDevice> device)
      : Buffer(staging->data(), staging->size(), /*owned=*/false, device->memory_space()),
        device_(std::move(device)),
        staging_(std::move(staging)) {}
  Ref<Buffer> allocate_like(std::size_t bytes) const override {
    return device_->allocator().allocate(bytes);
  }

 private:
  const std::shared_ptr<PluginDevice> device_;  // goes after the memory
  const Ref<Buffer> staging_;
};

class DeviceAllocator final : public Allocator {
 public:
  DeviceAllocator(PluginDevice& device, std::shared_ptr<BlockAllocator> blocks)
      : device_(device), blocks_(std::move(blocks)) {}
  Ref<Buffer> allocate(std::size_t bytes) override {
    return make_ref<DeviceBuffer>(block(bytes), bytes, device_.shared_from_this());
  }
  MemoryStats stats() const override { return blocks_->stats(); }
  std::size_t counted_bytes(std::size_t bytes) const override {
    return blocks_->counted_bytes(bytes);
  }
  void reset_peak() override { blocks_->reset_peak(); }
  Reclaimables* reclaimables() override { return blocks_->reclaimables(); }

 private:
  Ref<Buffer> block(std::size_t bytes) {
    RetiredBlocks* const retired = RetiredBlocks::launching_on(&device_);
    if (!retired || bytes == 0) return blocks_->allocate(bytes);
    if (Ref<Buffer> again = retired->take(bytes)) {
      again->set_holder(AllocationScope::current());
      return again;
    }
    try {
      return blocks_->allocate(bytes);
    } catch (const ResourceExhaustedError&) {
      if (!retired->release()) throw;
    }
    return blocks_->allocate(bytes);
  }

  PluginDevice& device_;
  const std::shared_ptr<BlockAllocator> blocks_;
};

class PlainAllocator final : public Allocator {
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

}  // namespace

std::string with_less_use_by_others(const std::string& way) {
  return cat(way, way.empty() ? "" : "; ",
             "other processes that use the same hardware ended or held to less memory");
}

std::unique_ptr<Allocator> make_plugin_allocator(PluginDevice& device,
                                                 const std::shared_ptr<PluginHandle>& handle,
                                                 std::size_t most,
                                                 const LogicalDeviceOptions& options) {
  const TandemPluginApi& api = handle->api();
  const std::shared_ptr<ReservedMemory> reserved = ReservedMemory::make(
      handle, with_guards(options.memory_limit.value_or(most), handle->library()));
  std::shared_ptr<RegionSource> source = reserved;
  if (!source) {
    source = std::make_shared<PluginSource>(handle, api.memory_allocate, api.memory_free, most);
  }
  source = guarded(std::move(source), handle->library(), handle->traits().kernel_offset,
                   reserved ? Guards::kBetweenBlocks : Guards::kNone);
  // Without a reserved range a limit is taken as one region, as TensorFlow takes it: pieces of
  // several would not join.
  const bool grows = options.memory_growth && (reserved || !options.memory_limit);
  const auto blocks = std::make_shared<BlockAllocator>(
      std::move(source), BlockAllocatorOptions{.device = device.name(),
                                               .limit = options.memory_limit.value_or(0),
                                               .growth = grows,
                                               .space = device.memory_space()});
  if (reserved) reserved->share(blocks);
  return std::make_unique<DeviceAllocator>(device, blocks);
}

Ref<Buffer> host_readable(Ref<Buffer> staging, std::shared_ptr<PluginDevice> device) {
  return make_ref<HostReadableBuffer>(std::move(staging), std::move(device));
}

std::unique_ptr<Allocator> make_staging_allocator(const PluginDevice& device,
                                                  const std::shared_ptr<PluginHandle>& handle) {
  const TandemPluginApi& api = handle->api();
  if (!api.staging_allocate) return std::make_unique<PlainAllocator>();
  std::shared_ptr<RegionSource> source =
      guarded(std::make_shared<PluginSource>(handle, api.staging_allocate, api.staging_free, 0),
              handle->library(), 0, Guards::kNone);
  return std::make_unique<BlockAllocator>(
      std::move(source),
      BlockAllocatorOptions{.device = cat("host memory for ", device.name()), .growth = true});
}

}  // namespace tandem
