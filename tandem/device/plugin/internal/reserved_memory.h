#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/device/block_allocator.h"
#include "tandem/device/plugin.h"

namespace tandem {

class PluginHandle;

/// Regions in one reserved range of a plugin's addresses: each continues the last one, so that
/// memory that grows stays in one piece, and the newest ones go back when they are not used.
/// Logical devices of the same hardware are asked for what they hold and don't use.
class ReservedMemory final : public RegionSource {
 public:
  /// A source with room for `most` bytes. Null if the plugin or the device reserves no addresses.
  static std::shared_ptr<ReservedMemory> make(std::shared_ptr<PluginHandle> handle,
                                              std::size_t most);
  ~ReservedMemory() override;

  /// The allocator that cuts the regions, which others may ask.
  void share(const std::shared_ptr<BlockAllocator>& blocks);

  std::optional<MemoryRegion> grow(std::size_t least, std::size_t wanted) override;
  bool contiguous() const override { return true; }
  bool takes_back() const override { return true; }
  void take_back(const MemoryRegion& region) noexcept override;
  bool ask_others() override;
  std::string shortage() const override { return shortage_; }
  std::string way_to_more(std::size_t limit, std::size_t needed) const override;

 private:
  ReservedMemory(std::shared_ptr<PluginHandle> handle, std::byte* begin, std::size_t reserved,
                 std::size_t granularity);
  bool commit(std::size_t end);
  void decommit(std::size_t end) noexcept;
  std::size_t rounded_up(std::size_t bytes) const;

  const std::shared_ptr<PluginHandle> handle_;
  std::byte* const begin_;
  const std::size_t reserved_, granularity_;
  std::size_t given_ = 0;               // in regions
  std::vector<std::size_t> committed_;  // where the parts end that were committed by one call each
  std::string shortage_;
  bool hardware_full_ = false;  // when it was last asked
  std::weak_ptr<BlockAllocator> blocks_;
};

/// Has all allocators of the hardware behind a device release what they keep for later: bytes.
/// What pieces of work use that are on their way is not among it. On any thread.
std::size_t release_unused_memory(TandemDevice* device);

}  // namespace tandem
