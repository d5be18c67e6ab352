// A BlockAllocator whose regions continue one another: it grows, cuts, joins, and releases what is
// unused. Every block's address is known beforehand from a plain model, in which free memory is
// what lies between the blocks in use.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/block_allocator.h"

namespace tandem {
namespace {

constexpr std::size_t kUnit = BlockAllocator::kAlignment;
constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

std::size_t rounded(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

// Addresses without memory. Each region begins where the one before ends, and the newest can be
// taken back.
class ContinuedAddresses final : public RegionSource {
 public:
  explicit ContinuedAddresses(std::size_t total, std::size_t padding = 0)
      : total_(total), padding_(padding) {}

  std::optional<MemoryRegion> grow(std::size_t least, std::size_t wanted) override {
    const std::size_t left = (total_ - bytes()) / kUnit * kUnit;
    if (least > left) return std::nullopt;
    regions_.push_back({.begin = end(),
                        .bytes = std::min(wanted, left),
                        .padding = padding_,
                        .continues = !regions_.empty()});
    return regions_.back();
  }
  bool contiguous() const override { return true; }
  bool takes_back() const override { return true; }
  void take_back(const MemoryRegion& region) noexcept override {
    EXPECT_EQ(region.begin, regions_.back().begin) << "not the newest region";
    EXPECT_EQ(region.bytes, regions_.back().bytes);
    regions_.pop_back();
  }

  const std::vector<MemoryRegion>& regions() const { return regions_; }
  std::size_t bytes() const {
    std::size_t all = 0;
    for (const MemoryRegion& region : regions_) all += region.bytes;
    return all;
  }
  std::byte* begin() const { return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 32); }
  std::byte* end() const {
    return regions_.empty()
               ? begin()
               : regions_.back().begin + regions_.back().bytes + regions_.back().padding;
  }

 private:
  const std::size_t total_, padding_;
  std::vector<MemoryRegion> regions_;
};

struct Growing {
  explicit Growing(std::size_t limit, std::size_t padding = 0)
      : source(std::make_shared<ContinuedAddresses>(limit, padding)),
        allocator(source, {.device = "/device:GPU:0", .limit = limit, .growth = true}) {}
  std::shared_ptr<ContinuedAddresses> source;
  BlockAllocator allocator;
};

std::byte* address(const Ref<Buffer>& buffer) { return static_cast<std::byte*>(buffer->data()); }

// What a BlockAllocator does with one chain of regions, by searching all of it each time.
class Model {
 public:
  explicit Model(const ContinuedAddresses& source) : source_(source) {}

  struct Hole {
    std::byte* at;
    std::size_t bytes;
  };
  std::vector<Hole> holes() const {
    std::vector<Hole> found;
    std::byte* at = source_.begin();
    const auto add = [&](std::byte* until) {
      if (at != until) found.push_back({at, static_cast<std::size_t>(until - at)});
    };
    for (const auto& [block, bytes] : used_) {
      add(block);
      at = block + bytes;
    }
    add(source_.end());
    return found;
  }
  // The smallest hole that is large enough, of several the first.
  std::optional<Hole> best_fit(std::size_t bytes) const {
    std::optional<Hole> best;
    for (const Hole& hole : holes()) {
      if (hole.bytes >= bytes && (!best || hole.bytes < best->bytes)) best = hole;
    }
    return best;
  }
  std::size_t largest_hole() const {
    std::size_t largest = 0;
    for (const Hole& hole : holes()) largest = std::max(largest, hole.bytes);
    return largest;
  }
  // At the end of the regions.
  std::size_t last_hole() const {
    const std::vector<Hole> all = holes();
    return !all.empty() && all.back().at + all.back().bytes == source_.end() ? all.back().bytes : 0;
  }
  // In newest regions that nothing lies in.
  std::size_t releasable() const {
    std::size_t bytes = 0;
    const auto& regions = source_.regions();
    for (auto region = regions.rbegin(); region != regions.rend(); ++region) {
      if (!used_.empty() && used_.rbegin()->first + used_.rbegin()->second > region->begin) break;
      bytes += region->bytes;
    }
    return bytes;
  }

  void use(std::byte* at, std::size_t bytes) {
    used_[at] = bytes;
    current_ += bytes;
    peak_ = std::max(peak_, current_);
  }
  void free(std::byte* at) {
    current_ -= used_.at(at);
    used_.erase(at);
  }
  std::size_t current() const { return current_; }
  std::size_t peak() const { return peak_; }

 private:
  const ContinuedAddresses& source_;
  std::map<std::byte*, std::size_t> used_;
  std::size_t current_ = 0, peak_ = 0;
};

void expect_like(const Growing& real, const Model& model) {
  const MemoryStats stats = real.allocator.stats();
  EXPECT_EQ(stats.current, model.current());
  EXPECT_EQ(stats.peak, model.peak());
  EXPECT_EQ(stats.reserved, real.source->bytes());
  EXPECT_EQ(stats.largest_free, model.largest_hole());
}

TEST(GrowingBlockAllocator, JoinsARegionToTheFreeBlockBeforeIt) {
  Growing f(16 * kMiB);
  const Ref<Buffer> first = f.allocator.allocate(256 * kKiB);
  EXPECT_EQ(f.allocator.stats().reserved, kMiB);
  EXPECT_EQ(f.allocator.stats().largest_free, 768 * kKiB);
  // Begins in the first region and ends in the second.
  const Ref<Buffer> across = f.allocator.allocate(1536 * kKiB);
  EXPECT_EQ(address(across), address(first) + 256 * kKiB);
  EXPECT_EQ(f.source->regions().size(), 2u);
  EXPECT_EQ(f.allocator.stats().reserved, 2 * kMiB);
  EXPECT_EQ(f.allocator.stats().largest_free, 256 * kKiB);
}

// The block of the second region is absorbed when the region is added, and its object may be used
// again for a block that is cut later: freed, that one must be found again.
TEST(GrowingBlockAllocator, LosesNothingWhenBlocksOfAJoinedRegionAreCutAndFreed) {
  Growing f(16 * kMiB);
  Ref<Buffer> first = f.allocator.allocate(512 * kKiB);
  Ref<Buffer> across = f.allocator.allocate(kMiB);
  Ref<Buffer> third = f.allocator.allocate(64 * kKiB);
  const std::size_t reserved = f.allocator.stats().reserved;
  std::byte* const at_first = address(first);
  std::byte* const at_across = address(across);
  across = nullptr;
  EXPECT_EQ(f.allocator.stats().largest_free, kMiB);
  across = f.allocator.allocate(kMiB);
  EXPECT_EQ(address(across), at_across);
  third = nullptr;
  across = nullptr;
  EXPECT_EQ(f.allocator.stats().largest_free, reserved - 512 * kKiB);
  first = nullptr;
  EXPECT_EQ(f.allocator.stats().current, 0u);
  EXPECT_EQ(f.allocator.stats().largest_free, reserved);
  const Ref<Buffer> all = f.allocator.allocate(reserved);
  EXPECT_EQ(address(all), at_first);
  EXPECT_EQ(f.allocator.stats().reserved, reserved) << "it grew though all of it was free";
}

TEST(GrowingBlockAllocator, JoinsInEveryOrderOfFreeing) {
  std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  do {
    Growing f(16 * kMiB);
    std::vector<Ref<Buffer>> held;
    for (int i = 0; i < 5; ++i) held.push_back(f.allocator.allocate(700 * kKiB));
    const std::size_t reserved = f.allocator.stats().reserved;
    for (const std::size_t i : order) held[i] = nullptr;
    ASSERT_EQ(f.allocator.stats().largest_free, reserved);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(GrowingBlockAllocator, ReleasesTheNewestRegionsThatNothingLiesIn) {
  Growing f(16 * kMiB);
  Ref<Buffer> first = f.allocator.allocate(kMiB);
  Ref<Buffer> second = f.allocator.allocate(2 * kMiB);
  Ref<Buffer> third = f.allocator.allocate(3 * kMiB);
  const std::size_t reserved = f.allocator.stats().reserved;
  EXPECT_EQ(f.allocator.release_unused(), 0u);
  second = nullptr;  // behind it lies the third
  EXPECT_EQ(f.allocator.release_unused(), 0u);
  third = nullptr;
  const std::size_t released = f.allocator.release_unused();
  EXPECT_EQ(released, reserved - kMiB);
  EXPECT_EQ(f.allocator.stats().reserved, kMiB);
  EXPECT_EQ(f.source->bytes(), kMiB);
  first = nullptr;
  EXPECT_EQ(f.allocator.release_unused(), kMiB);
  EXPECT_EQ(f.allocator.stats().reserved, 0u);
  EXPECT_EQ(f.allocator.allocate(16 * kMiB)->size(), 16 * kMiB);
}

TEST(GrowingBlockAllocator, KeepsRegionsThatABlockLiesAcross) {
  Growing f(16 * kMiB);
  Ref<Buffer> first = f.allocator.allocate(512 * kKiB);
  Ref<Buffer> across = f.allocator.allocate(kMiB);
  first = nullptr;
  EXPECT_EQ(f.allocator.release_unused(), 0u);
  EXPECT_EQ(f.allocator.stats().reserved, f.source->bytes());
  across = nullptr;
  EXPECT_GT(f.allocator.release_unused(), 0u);
  EXPECT_EQ(f.source->bytes(), 0u);
}

// One random sequence, compared with the model after each step.
void compare(unsigned seed) {
  constexpr std::size_t kLimit = 12 * kMiB;
  Growing real(kLimit);
  Model model(*real.source);
  std::mt19937 random(seed);
  std::vector<Ref<Buffer>> held;
  const auto allocate = [&] {
    const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 2 * kMiB : 64 * kKiB);
    const std::size_t needed = rounded(bytes);
    const std::optional<Model::Hole> fit = model.best_fit(needed);
    std::byte* const end = real.source->end();
    const std::size_t last = model.last_hole(), before = real.source->bytes();
    Ref<Buffer> made;
    try {
      made = real.allocator.allocate(bytes);
    } catch (const NoRoomError&) {
      EXPECT_FALSE(fit && needed <= kLimit - model.current()) << "there was room";
      EXPECT_TRUE(needed > kLimit - model.current() || needed - last > kLimit - before)
          << "it could have grown";
      return;
    }
    EXPECT_EQ(made->size(), bytes);
    // Without a hole it grows, and what was free at the end begins the block.
    EXPECT_EQ(address(made), fit ? fit->at : end - last);
    EXPECT_EQ(real.source->bytes() == before, fit.has_value());
    model.use(address(made), needed);
    held.push_back(std::move(made));
  };
  const auto free = [&] {
    std::swap(held[random() % held.size()], held.back());
    model.free(address(held.back()));
    held.pop_back();
  };
  for (int step = 0; step < 3000 && !testing::Test::HasFailure(); ++step) {
    // Phases in which more comes and in which more goes, so that regions go free altogether.
    const bool fills = step / 100 % 2 == 0;
    if (random() % 50 == 0) {
      const std::size_t expected = model.releasable();
      EXPECT_EQ(real.allocator.release_unused(), expected);
    } else if (held.empty() || random() % 8 < (fills ? 6u : 2u)) {
      allocate();
    } else {
      free();
    }
    expect_like(real, model);
  }
  while (!held.empty()) free();
  expect_like(real, model);
  const std::size_t reserved = real.allocator.stats().reserved;
  EXPECT_EQ(real.allocator.stats().largest_free, reserved);
  EXPECT_EQ(real.allocator.release_unused(), reserved);
  EXPECT_EQ(real.allocator.allocate(kLimit)->size(), kLimit);
}

TEST(GrowingBlockAllocator, DoesWhatAPlainModelDoes) {
  for (unsigned seed = 0; seed < 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    compare(seed);
  }
}

// With padding the addresses depend on how it is spread: blocks and their gaps lie apart, the
// figures are those without, and all of it comes back.
TEST(GrowingBlockAllocator, KeepsGuardedBlocksApartAsItGrowsAndReleases) {
  constexpr std::size_t kLimit = 8 * kMiB;
  Growing f(kLimit, /*padding=*/64 * kKiB);
  std::mt19937 random(7);
  std::vector<Ref<Buffer>> held;
  std::map<std::byte*, std::size_t> used;
  std::size_t current = 0;
  for (int step = 0; step < 4000; ++step) {
    const bool fills = step / 100 % 2 == 0;
    if (random() % 50 == 0) {
      f.allocator.release_unused();
    } else if (held.empty() || random() % 8 < (fills ? 6u : 2u)) {
      const std::size_t bytes = 1 + random() % (256 * kKiB);
      Ref<Buffer> made;
      try {
        made = f.allocator.allocate(bytes);
      } catch (const NoRoomError&) {
        continue;
      }
      const auto at = used.emplace(address(made), rounded(bytes)).first;
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at->first) % kUnit, 0u);
      if (at != used.begin()) {
        ASSERT_LE(std::prev(at)->first + std::prev(at)->second, at->first);
      }
      ASSERT_LE(at->first + at->second,
                std::next(at) == used.end() ? f.source->end() : std::next(at)->first);
      current += rounded(bytes);
      held.push_back(std::move(made));
    } else {
      std::swap(held[random() % held.size()], held.back());
      used.erase(address(held.back()));
      current -= rounded(held.back()->size());
      held.pop_back();
    }
    ASSERT_EQ(f.allocator.stats().current, current);
    ASSERT_EQ(f.allocator.stats().reserved, f.source->bytes());
  }
  held.clear();
  const std::size_t reserved = f.allocator.stats().reserved;
  EXPECT_EQ(f.allocator.stats().largest_free, reserved);
  EXPECT_EQ(f.allocator.release_unused(), reserved);
  EXPECT_EQ(f.allocator.allocate(kLimit)->size(), kLimit);
}

}  // namespace
}  // namespace tandem
