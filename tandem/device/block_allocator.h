#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tandem/core/buffer.h"
#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// What a BlockAllocator throws where there is no room now: later there may be, as against an
/// allocation that fails for another reason.
class TANDEM_EXPORT NoRoomError : public ResourceExhaustedError {
 public:
  using ResourceExhaustedError::ResourceExhaustedError;
};

/// Addresses that a BlockAllocator may cut into blocks: `bytes` that count, and behind them
/// `padding` bytes that don't. Padding is spread as gaps behind the blocks, where a source may lay
/// guards; limits, statistics and fragmentation are what they would be without it.
struct MemoryRegion {
  std::byte* begin = nullptr;  ///< a multiple of 256
  std::size_t bytes = 0;       ///< a multiple of 256, as is padding
  std::size_t padding = 0;
  bool continues = false;  ///< begins where the last region ended; a block may lie across
};

/// Where a BlockAllocator's memory comes from. It never follows the addresses itself.
class TANDEM_EXPORT RegionSource {
 public:
  virtual ~RegionSource();
  /// Between `least` and `wanted` bytes more, both multiples of 256; nothing if there is not even
  /// the least. One call at a time.
  virtual std::optional<MemoryRegion> grow(std::size_t least, std::size_t wanted) = 0;
  /// True if every region continues the last one.
  virtual bool contiguous() const { return false; }
  /// True if `take_back` may be called: the newest region can be released while others are used.
  virtual bool takes_back() const { return false; }
  /// The newest region is not used any more; the next one begins where it did. Never called
  /// together with `grow`.
  virtual void take_back(const MemoryRegion& /*region*/) noexcept {}
  /// Asks others with the same hardware for what they hold and don't use. True if growing is worth
  /// another try. Called on any thread, by several at a time.
  virtual bool ask_others() { return false; }
  /// What stands in the way of growing, as a sentence for error texts; empty if nothing does.
  virtual std::string shortage() const { return {}; }
  /// What would give `needed` bytes, more than `limit` or in one piece, for error texts; empty if
  /// nothing would.
  virtual std::string way_to_more(std::size_t limit, std::size_t needed) const;
  /// The region is not needed any more: its allocator and all of its buffers are gone.
  virtual void release(const MemoryRegion& /*region*/) noexcept {}

  /// `bytes` at `at` become a block, and the `gap` bytes behind it stay unused.
  /// Called on any thread, by several at a time.
  virtual void on_allocate(std::byte* /*at*/, std::size_t /*bytes*/, std::size_t /*gap*/) {}
  /// The block is not used any more. As on_allocate, with the same figures.
  virtual void on_free(std::byte* /*at*/, std::size_t /*bytes*/, std::size_t /*gap*/,
                       std::string_view /*holder*/) noexcept {}
};

struct BlockAllocatorOptions {
  std::string device = {};             ///< its name, for error texts
  std::size_t limit = 0;               ///< bytes that may be in use; 0: as much as the source gives
  bool growth = false;                 ///< take memory as it is needed, not all at first use
  const MemorySpace* space = nullptr;  ///< of the buffers; outlives them
};

/// Cuts regions of addresses into blocks: the smallest free block that fits is used, and freed
/// neighbours become one.
///
/// Blocks are aligned to 256 bytes and take a multiple of that; what rounding adds counts as in
/// use. Neither what is in use nor what is reserved ever exceeds the limit. Buffers may outlive the
/// allocator. Thread-safe.
class TANDEM_EXPORT BlockAllocator final : public Allocator {
 public:
  static constexpr std::size_t kAlignment = 256;

  BlockAllocator(std::shared_ptr<RegionSource> source, BlockAllocatorOptions options);
  ~BlockAllocator() override;

  /// The block's holder is AllocationScope::current() until Buffer::set_holder says otherwise.
  /// An empty buffer takes no block; its pointer is not null.
  Ref<Buffer> allocate(std::size_t bytes) override;
  MemoryStats stats() const override;
  std::size_t counted_bytes(std::size_t bytes) const override;
  void reset_peak() override;
  Reclaimables* reclaimables() override;
  /// Has its keepers give up what they can, and gives the newest regions back to the source as far
  /// as nothing in them is used: bytes released. An allocator that took all at first use keeps
  /// it.
  std::size_t release_unused();

  /// The text of the error for a request that can't be met: the request, the limit, what is in
  /// use, the largest holders, the fragmentation, and what would help.
  std::string report(std::size_t bytes) const;

  /// Its first part: what was asked for, what is in use, and the largest holders.
  std::string use_report(std::size_t bytes) const;

 private:
  class State;

 public:
  /// An allocator of the blocks of `state`, with which buffers allocate their like.
  explicit BlockAllocator(std::shared_ptr<State> state);

 private:
  std::shared_ptr<State> state_;
};

}  // namespace tandem
