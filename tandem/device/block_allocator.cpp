#include "tandem/device/block_allocator.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tandem/core/cached_object.h"
#include "tandem/core/error.h"
#include "tandem/core/memory_listener.h"
#include "tandem/device/internal/byte_size.h"
#include "tandem/device/reclaimable.h"

namespace tandem {

RegionSource::~RegionSource() = default;

std::string RegionSource::way_to_more(std::size_t limit, std::size_t) const {
  if (limit == 0) return {};
  return "a larger limit (td::config::set_memory_limit or TANDEM_MEMORY_LIMIT_MB; where it was cut "
         "into logical devices set_logical_device_configuration or TANDEM_LOGICAL_DEVICES), if the "
         "hardware has more";
}

namespace {

constexpr std::size_t kUnit = BlockAllocator::kAlignment;
constexpr std::size_t kFirstGrowth = std::size_t{1} << 20;
constexpr std::size_t kHoldersShown = 8;

std::size_t rounded_down(std::size_t bytes) { return bytes / kUnit * kUnit; }
std::size_t rounded_up(std::size_t bytes) { return rounded_down(bytes + kUnit - 1); }

struct Block;

struct BySize {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const;
  bool operator()(const Block* a, std::size_t bytes) const;
};

using FreeBlocks = std::set<Block*, BySize>;

// A block, in use or free: `bytes` that count and `gap` bytes behind them. Objects are used again,
// each with the node of the set that points to it, so that cutting and joining blocks takes no
// memory in the long run.
struct Block {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  std::size_t gap = 0;
  std::size_t asked = 0;
  bool free = true;
  Block* before = nullptr;  // neighbours in the same or a continued region
  Block* after = nullptr;
  std::string holder;
  FreeBlocks::node_type node;  // unless free
};

bool BySize::operator()(const Block* a, const Block* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->at < b->at;
}
bool BySize::operator()(const Block* a, std::size_t bytes) const { return a->bytes < bytes; }

// The part of a free block's gap that goes with `bytes` of it: its share, but enough for a guard.
std::size_t gap_share(const Block& block, std::size_t bytes) {
  if (bytes == block.bytes) return block.gap;
  const double share = static_cast<double>(block.gap) * static_cast<double>(bytes) /
                       static_cast<double>(block.bytes);
  return std::min(block.gap, std::max(kUnit, rounded_down(static_cast<std::size_t>(share))));
}

struct Holding {
  std::size_t bytes = 0;
  std::size_t blocks = 0;
};

// Names that have quotes of their own say what they name: variable 'w'.
std::string quoted(std::string_view name) {
  return name.find('\'') == std::string_view::npos ? cat('\'', name, '\'') : std::string(name);
}

std::string holding_text(std::string_view name, const Holding& holding) {
  const std::string shown = name.empty() ? "(not named)" : quoted(name);
  return cat(shown, ' ', byte_text(holding.bytes), " in ", holding.blocks,
             holding.blocks == 1 ? " block" : " blocks");
}

}  // namespace

class BlockAllocator::State {
 public:
  State(std::shared_ptr<RegionSource> source, BlockAllocatorOptions options)
      : source_(std::move(source)), options_(std::move(options)) {}

  ~State() {
    for (Block* block : firsts_) {
      while (block) delete std::exchange(block, block->after);
    }
    while (spare_) delete std::exchange(spare_, spare_->after);
    for (const MemoryRegion& region : regions_) source_->release(region);
  }

  // Memory of others does not help.
  bool beyond_limit(std::size_t bytes) const {
    std::lock_guard lock(mutex_);
    return bytes > SIZE_MAX - kUnit || over_limit(rounded_up(bytes));
  }

  // With the lock held.
  void report(const Block& block, bool released) const noexcept {
    report(block, released, current_);
  }
  void report(const Block& block, bool released, std::size_t in_use) const noexcept {
    report_memory({.device = options_.device,
                   .block = block.at,
                   .bytes = block.bytes,
                   .released = released,
                   .in_use = in_use,
                   .limit = options_.limit});
  }

  // Null if there is no room.
  Block* take(std::size_t bytes) {
    if (bytes > SIZE_MAX - kUnit) return nullptr;
    const std::size_t needed = rounded_up(bytes);
    const std::string_view holder = AllocationScope::current();
    std::lock_guard lock(mutex_);
    if (over_limit(needed)) return nullptr;
    auto found = free_.lower_bound(needed);
    if (found == free_.end()) {
      if (!grow(needed)) return nullptr;
      found = free_.lower_bound(needed);
      if (found == free_.end()) return nullptr;
    }
    Block* const block = (*found)->bytes == needed ? take_whole(found) : cut(found, needed);
    block->free = false;
    block->asked = bytes;
    current_ += needed;
    peak_ = std::max(peak_, current_);
    note_room();
    try {
      block->holder = holder;
    } catch (...) {
      join_free(block);
      throw;
    }
    report(*block, false);
    return block;
  }

  void release(Block* block) noexcept {
    std::lock_guard lock(mutex_);
    report(*block, true, current_ - block->bytes);
    join_free(block);
  }

  bool may_release() const { return options_.growth && source_->takes_back(); }
  std::size_t release_unused() {
    std::lock_guard lock(mutex_);
    if (!may_release()) return 0;
    std::size_t released = 0;
    while (!regions_.empty() && drop(regions_.back())) {
      released += regions_.back().bytes;
      reserved_ -= regions_.back().bytes;
      source_->take_back(regions_.back());
      regions_.pop_back();
    }
    note_room();
    return released;
  }

  void rename(Block* block, std::string_view holder) {
    std::lock_guard lock(mutex_);
    block->holder = holder;
  }

  std::string holder(const Block* block) const {
    std::lock_guard lock(mutex_);
    return block->holder;
  }

  MemoryStats stats() const {
    std::lock_guard lock(mutex_);
    return {.current = current_,
            .peak = peak_,
            .limit = options_.limit,
            .reserved = reserved_,
            .largest_free = largest_free()};
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    peak_ = current_;
  }

  // What an empty buffer points to.
  std::byte* anchor() {
    std::lock_guard lock(mutex_);
    if (regions_.empty()) grow(kUnit);
    return regions_.empty() ? reinterpret_cast<std::byte*>(kUnit) : regions_.front().begin;
  }

  std::string report(std::size_t bytes) const;
  std::string use_report(std::size_t bytes) const;

  Reclaimables& reclaimables() { return reclaimables_; }
  RegionSource& source() const { return *source_; }
  const MemorySpace* space() const { return options_.space; }

 private:
  bool over_limit(std::size_t needed) const {
    return options_.limit != 0 && needed > options_.limit - current_;
  }
  std::size_t largest_free() const { return free_.empty() ? 0 : (*free_.rbegin())->bytes; }

  // What RoomRequest looks at before it asks.
  void note_room() noexcept {
    reclaimables_.set_room(
        options_.limit == 0 ? SIZE_MAX : std::max(largest_free(), options_.limit - reserved_));
  }

  // The block, in use so far, becomes free, with what is free beside it.
  void join_free(Block* block) noexcept {
    current_ -= block->bytes;
    block->free = true;
    block->holder.clear();
    if (block->after && block->after->free) {
      block->after->node = free_.extract(block->after);
      absorb_next(block);
    }
    if (block->before && block->before->free) {
      block = block->before;
      block->node = free_.extract(block);
      absorb_next(block);
    }
    free_.insert(std::move(block->node));
    note_room();
  }

  // A block of none, which is in no list.
  std::unique_ptr<Block> new_block() {
    if (spare_) {
      std::unique_ptr<Block> block(spare_);
      spare_ = std::exchange(block->after, nullptr);
      --num_spare_;
      return block;
    }
    auto block = std::make_unique<Block>();
    FreeBlocks alone;
    alone.insert(block.get());
    block->node = alone.extract(alone.begin());
    return block;
  }

  // A block that never was in the set, such as a region that continues a free one, has no node.
  void put_aside(Block* block) noexcept {
    if (num_spare_ == kMaxSpare || block->node.empty()) {
      delete block;
      return;
    }
    block->after = std::exchange(spare_, block);
    ++num_spare_;
  }

  Block* take_whole(FreeBlocks::iterator found) noexcept {
    Block* const block = *found;
    block->node = free_.extract(found);
    return block;
  }

  // The first `needed` bytes of a free block become a block of their own; the rest stays free.
  Block* cut(FreeBlocks::iterator found, std::size_t needed) {
    std::unique_ptr<Block> made = new_block();
    Block* const rest = *found;
    Block* const block = made.release();
    // It may stay where it is in the set as long as it is larger than what comes before it there.
    const bool moves = found != free_.begin() && (*std::prev(found))->bytes >= rest->bytes - needed;
    if (moves) rest->node = free_.extract(found);
    const std::size_t gap = gap_share(*rest, needed);
    block->at = rest->at;
    block->bytes = needed;
    block->gap = gap;
    block->before = rest->before;
    block->after = rest;
    if (block->before) {
      block->before->after = block;
    } else {
      std::replace(firsts_.begin(), firsts_.end(), rest, block);
    }
    rest->before = block;
    rest->at += needed + gap;
    rest->bytes -= needed;
    rest->gap -= gap;
    if (moves) free_.insert(std::move(rest->node));
    return block;
  }

  // The block after it, in no list any more, becomes part of this one.
  void absorb_next(Block* block) noexcept {
    Block* next = block->after;
    block->bytes += next->bytes;
    block->gap += next->gap;
    block->after = next->after;
    if (block->after) block->after->before = block;
    if (last_ == next) last_ = block;
    put_aside(next);
  }

  bool grow(std::size_t needed) {
    const std::size_t most =
        options_.limit == 0 ? SIZE_MAX / 4 : rounded_down(options_.limit) - reserved_;
    std::size_t least = needed;
    if (source_->contiguous() && last_ && last_->free) least -= std::min(last_->bytes, least);
    least = std::max(least, kUnit);
    if (least > most) return false;
    const std::size_t step =
        options_.growth ? std::max(kFirstGrowth, rounded_down(reserved_)) : most;
    const auto region = source_->grow(least, std::clamp(step, least, most));
    if (!region) return false;
    regions_.push_back(*region);
    reserved_ += region->bytes;
    add(*region);
    return true;
  }

  // The newest region leaves the free block that it is, or is the end of. False if there is no such
  // block, or too much of the region's padding has gone to the blocks before it.
  bool drop(const MemoryRegion& region) {
    Block* const block = last_;
    if (!block || !block->free || std::less<>()(region.begin, block->at)) return false;
    const bool whole = block->at == region.begin;
    if (whole ? block->bytes != region.bytes
              : block->bytes <= region.bytes || block->gap < region.padding)
      return false;
    block->node = free_.extract(block);
    if (!whole) {
      block->bytes -= region.bytes;
      block->gap -= region.padding;
      free_.insert(std::move(block->node));
      return true;
    }
    last_ = block->before;
    if (last_) {
      last_->after = nullptr;
    } else {
      std::erase(firsts_, block);
    }
    delete block;
    return true;
  }

  void add(const MemoryRegion& region) {
    auto added = std::make_unique<Block>();
    added->at = region.begin;
    added->bytes = region.bytes;
    added->gap = region.padding;
    if (!region.continues || !last_) {
      firsts_.push_back(added.get());
      last_ = added.get();
      free_.insert(added.release());
      return;
    }
    Block* before = last_;
    last_ = before->after = added.release();
    last_->before = before;
    if (before->free) {
      before->node = free_.extract(before);
      absorb_next(before);
      free_.insert(std::move(before->node));
    } else {
      free_.insert(last_);
    }
  }

  const std::shared_ptr<RegionSource> source_;
  const BlockAllocatorOptions options_;
  Reclaimables reclaimables_;
  mutable std::mutex mutex_;
  std::vector<MemoryRegion> regions_;
  std::vector<Block*> firsts_;  // of each chain of neighbours
  Block* last_ = nullptr;       // at the end of the newest region
  FreeBlocks free_;
  static constexpr std::size_t kMaxSpare = 1024;
  Block* spare_ = nullptr;  // blocks of none, by `after`
  std::size_t num_spare_ = 0;
  std::size_t current_ = 0;
  std::size_t peak_ = 0;
  std::size_t reserved_ = 0;

  // With mutex_ held.
  std::string use_text(std::size_t bytes) const;
  std::string advice_text(std::size_t bytes) const;
};

std::string BlockAllocator::State::report(std::size_t bytes) const {
  std::lock_guard lock(mutex_);
  return use_text(bytes) + advice_text(bytes);
}

std::string BlockAllocator::State::use_report(std::size_t bytes) const {
  std::lock_guard lock(mutex_);
  return use_text(bytes);
}

std::string BlockAllocator::State::use_text(std::size_t bytes) const {
  const std::string_view asker = AllocationScope::current();
  std::map<std::string_view, Holding> by_name;
  for (const Block* first : firsts_) {
    for (const Block* block = first; block; block = block->after) {
      if (block->free) continue;
      Holding& holding = by_name[block->holder];
      holding.bytes += block->bytes;
      ++holding.blocks;
    }
  }
  std::vector<std::pair<std::string_view, Holding>> holders(by_name.begin(), by_name.end());
  std::stable_sort(holders.begin(), holders.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });

  std::string text = cat("Out of memory on ", options_.device, ": ", byte_text(bytes), " (", bytes,
                         " bytes) were asked for");
  if (!asker.empty()) text += cat(" by ", quoted(asker));
  text += cat(" while ", byte_text(current_), " (", current_, " bytes) ");
  text += options_.limit == 0 ? std::string("are in use.")
                              : cat("of the limit of ", byte_text(options_.limit), " (",
                                    options_.limit, " bytes) are in use.");
  if (!holders.empty()) {
    text += "\nLargest holders: ";
    const std::size_t shown = std::min(holders.size(), kHoldersShown);
    for (std::size_t i = 0; i < shown; ++i) {
      text += (i == 0 ? "" : ", ") + holding_text(holders[i].first, holders[i].second);
    }
    if (shown < holders.size()) {
      std::size_t rest = 0;
      for (std::size_t i = shown; i < holders.size(); ++i) rest += holders[i].second.bytes;
      text += cat(", ", holders.size() - shown, " more ", byte_text(rest));
    }
    text += '.';
  }
  return text;
}

std::string BlockAllocator::State::advice_text(std::size_t bytes) const {
  const std::size_t unused = reserved_ - current_;
  std::string text =
      cat("\nFragmentation: of ", byte_text(reserved_), " reserved ", byte_text(unused),
          " are free in ", free_.size(), free_.size() == 1 ? " piece" : " pieces", ", the largest ",
          byte_text(largest_free()), '.');
  if (bytes <= unused) text += " That would be enough if it were in one piece.";
  const std::string shortage = source_->shortage();
  if (!shortage.empty()) text += ' ' + shortage;
  text +=
      "\nWhat would help: a smaller batch or model, or a part of it on another device with a "
      "device scope";
  const std::string more = source_->way_to_more(options_.limit, current_ + bytes);
  if (!more.empty()) text += "; " + more;
  if (!shortage.empty() && !options_.growth) {
    text +=
        "; memory growth (td::config::set_memory_growth), if other logical devices of the same "
        "hardware hold memory that they don't use";
  }
  text += '.';
  return text;
}

namespace {

template <class State>
class BlockBuffer final : public Buffer, public CachedObject {
 public:
  BlockBuffer(std::shared_ptr<State> state, Block* block, std::size_t bytes)
      : Buffer(block->at, bytes, /*owned=*/true, state->space()),
        state_(std::move(state)),
        block_(block) {
    state_->source().on_allocate(block->at, block->asked, block_gap());
  }
  ~BlockBuffer() override {
    state_->source().on_free(block_->at, block_->asked, block_gap(), state_->holder(block_));
    state_->release(block_);
  }
  void set_holder(std::string_view holder) override { state_->rename(block_, holder); }
  Ref<Buffer> allocate_like(std::size_t bytes) const override {
    return BlockAllocator(state_).allocate(bytes);
  }

 private:
  // Rounding leaves something behind the block too.
  std::size_t block_gap() const { return block_->bytes - block_->asked + block_->gap; }

  const std::shared_ptr<State> state_;
  Block* const block_;
};

class EmptyBuffer final : public Buffer {
 public:
  EmptyBuffer(void* data, const MemorySpace* space) : Buffer(data, 0, /*owned=*/true, space) {}
  Ref<Buffer> allocate_like(std::size_t) const override {
    return make_ref<EmptyBuffer>(data_, space_);  // an array like an empty one is empty
  }
};

}  // namespace

BlockAllocator::BlockAllocator(std::shared_ptr<RegionSource> source, BlockAllocatorOptions options)
    : state_(std::make_shared<State>(std::move(source), std::move(options))) {}

BlockAllocator::BlockAllocator(std::shared_ptr<State> state) : state_(std::move(state)) {}
BlockAllocator::~BlockAllocator() = default;

Ref<Buffer> BlockAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return make_ref<EmptyBuffer>(state_->anchor(), state_->space());
  Block* block = state_->take(bytes);
  if (!block) {
    state_->reclaimables().reclaim();
    block = state_->take(bytes);
  }
  if (!block && !state_->beyond_limit(bytes) && state_->source().ask_others())
    block = state_->take(bytes);
  if (!block) throw NoRoomError(report(bytes));
  try {
    return make_ref<BlockBuffer<State>>(state_, block, bytes);
  } catch (...) {
    state_->release(block);
    throw;
  }
}

MemoryStats BlockAllocator::stats() const { return state_->stats(); }
std::size_t BlockAllocator::counted_bytes(std::size_t bytes) const { return rounded_up(bytes); }
void BlockAllocator::reset_peak() { state_->reset_peak(); }
Reclaimables* BlockAllocator::reclaimables() { return &state_->reclaimables(); }
std::size_t BlockAllocator::release_unused() {
  if (!state_->may_release()) return 0;
  state_->reclaimables().reclaim();
  return state_->release_unused();
}
std::string BlockAllocator::report(std::size_t bytes) const { return state_->report(bytes); }
std::string BlockAllocator::use_report(std::size_t bytes) const {
  return state_->use_report(bytes);
}

}  // namespace tandem
