#include "tandem/device/plugin/internal/guarded_memory.h"

#if TANDEM_ADDRESS_SANITIZER

#include <dlfcn.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sanitizer/asan_interface.h>

namespace tandem {
namespace {

constexpr std::size_t kUnit = BlockAllocator::kAlignment;
constexpr std::size_t kShare = 8;  // one byte of guards for so many that count

std::size_t rounded_down(std::size_t bytes) { return bytes / kUnit * kUnit; }

std::size_t with_guards(std::size_t bytes) {
  return rounded_down(bytes + bytes / kShare + kUnit - 1);
}

class GuardedMemory final : public RegionSource {
 public:
  GuardedMemory(std::shared_ptr<RegionSource> memory, std::ptrdiff_t offset, Guards guards)
      : memory_(std::move(memory)), offset_(offset), guards_(guards) {}

  std::optional<MemoryRegion> grow(std::size_t least, std::size_t wanted) override {
    std::optional<MemoryRegion> region;
    if (guards_ == Guards::kBetweenBlocks) {
      region = memory_->grow(with_guards(least), with_guards(wanted));
      if (region) lay_guards(*region, least, wanted);
    }
    if (!region) region = memory_->grow(least, wanted);
    if (region) poison(region->begin, region->bytes + region->padding);
    return region;
  }
  bool contiguous() const override { return memory_->contiguous(); }
  bool takes_back() const override { return memory_->takes_back(); }
  void take_back(const MemoryRegion& region) noexcept override {
    memory_->take_back(without_guards(region));
  }
  bool ask_others() override { return memory_->ask_others(); }
  std::string shortage() const override { return memory_->shortage(); }
  std::string way_to_more(std::size_t limit, std::size_t needed) const override {
    return memory_->way_to_more(limit, needed);
  }
  void release(const MemoryRegion& region) noexcept override {
    memory_->release(without_guards(region));
  }
  void on_allocate(std::byte* at, std::size_t bytes, std::size_t gap) override {
    __asan_unpoison_memory_region(at + offset_, bytes);
    memory_->on_allocate(at, bytes, gap);
  }
  void on_free(std::byte* at, std::size_t bytes, std::size_t gap,
               std::string_view holder) noexcept override {
    memory_->on_free(at, bytes, gap, holder);
    poison(at, bytes + gap);
  }

 private:
  static void lay_guards(MemoryRegion& region, std::size_t least, std::size_t wanted) {
    const std::size_t all = region.bytes;
    const std::size_t guards = (all + kShare) / (kShare + 1);
    region.bytes = std::clamp(rounded_down(all - guards), least, std::min(wanted, all));
    region.padding = all - region.bytes;
  }
  // The region as it came from below. Other memory of the process may come to lie there.
  MemoryRegion without_guards(MemoryRegion region) const noexcept {
    region.bytes += std::exchange(region.padding, 0);
    __asan_unpoison_memory_region(region.begin + offset_, region.bytes);
    return region;
  }
  void poison(std::byte* at, std::size_t bytes) const noexcept {
    __asan_poison_memory_region(at + offset_, bytes);
  }

  const std::shared_ptr<RegionSource> memory_;
  const std::ptrdiff_t offset_;
  const Guards guards_;
};

bool has_host_memory(const PluginLibrary& library) {
  void* const opened = dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!opened) return false;
  const bool says_so = dlsym(opened, "tandem_plugin_memory_is_host") != nullptr;
  dlclose(opened);
  return says_so;
}

}  // namespace

std::shared_ptr<RegionSource> guarded(std::shared_ptr<RegionSource> memory,
                                      const PluginLibrary& library, std::ptrdiff_t offset,
                                      Guards guards) {
  if (!has_host_memory(library)) return memory;
  return std::make_shared<GuardedMemory>(std::move(memory), offset, guards);
}

std::size_t with_guards(std::size_t bytes, const PluginLibrary& library) {
  return has_host_memory(library) ? with_guards(bytes) : bytes;
}

}  // namespace tandem

#endif
