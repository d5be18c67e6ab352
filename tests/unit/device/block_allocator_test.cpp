#include "tandem/device/block_allocator.h"

#include <algorithm>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

// Addresses without memory; growth ends at `total`.
class Addresses final : public RegionSource {
 public:
  Addresses(std::size_t total, bool joined, std::size_t padding = 0)
      : total_(total), joined_(joined), padding_(padding) {}

  std::optional<MemoryRegion> grow(std::size_t least, std::size_t wanted) override {
    EXPECT_EQ(least % 256, 0u);
    EXPECT_LE(least, wanted);
    const std::size_t left = (total_ - given_) / 256 * 256;
    if (least > left) return {};
    MemoryRegion region{.begin = next_,
                        .bytes = std::min(wanted, left),
                        .padding = padding_,
                        .continues = joined_ && given_ != 0};
    given_ += region.bytes;
    next_ += region.bytes + region.padding + (joined_ ? 0 : 4096);
    ++grown;
    return region;
  }
  bool contiguous() const override { return joined_; }
  void release(const MemoryRegion& region) noexcept override { released += region.bytes; }
  void on_allocate(std::byte*, std::size_t, std::size_t gap) override {
    if (gap >= 256) ++guarded;
  }

  int grown = 0;
  int guarded = 0;
  std::size_t released = 0;

 private:
  const std::size_t total_;
  const bool joined_;
  const std::size_t padding_;
  std::size_t given_ = 0;
  std::byte* next_ = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 32);
};

struct Fixture {
  explicit Fixture(std::size_t limit, bool growth = false, bool joined = true,
                   std::size_t padding = 0)
      : source(std::make_shared<Addresses>(limit, joined, padding)),
        allocator(source, {.device = "/device:GPU:0", .limit = limit, .growth = growth}) {}
  std::shared_ptr<Addresses> source;
  BlockAllocator allocator;
};

std::string error_of(BlockAllocator& allocator, std::size_t bytes) {
  try {
    allocator.allocate(bytes);
  } catch (const ResourceExhaustedError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BlockAllocator, AlignsAndCountsWhatRoundingAdds) {
  Fixture f(kMiB);
  const Ref<Buffer> a = f.allocator.allocate(1);
  const Ref<Buffer> b = f.allocator.allocate(257);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a->data()) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->data()) % 256, 0u);
  EXPECT_EQ(b->size(), 257u);
  EXPECT_EQ(f.allocator.stats().current, 3 * 256u);
}

TEST(BlockAllocator, TheLimitHoldsExactly) {
  Fixture f(kMiB);
  {
    std::vector<Ref<Buffer>> held;
    for (int i = 0; i < 4; ++i) held.push_back(f.allocator.allocate(kMiB / 4));
    EXPECT_EQ(f.allocator.stats().current, kMiB);
    EXPECT_THROW(f.allocator.allocate(1), ResourceExhaustedError);
    EXPECT_EQ(f.allocator.allocate(0)->size(), 0u);
    held.pop_back();
    held.push_back(f.allocator.allocate(kMiB / 8));
    held.push_back(f.allocator.allocate(kMiB / 8 - 255));
    EXPECT_THROW(f.allocator.allocate(1), ResourceExhaustedError);
  }
  EXPECT_EQ(f.allocator.stats().current, 0u);
  EXPECT_EQ(f.allocator.stats().peak, kMiB);
  EXPECT_EQ(f.allocator.allocate(kMiB)->size(), kMiB);
  EXPECT_THROW(f.allocator.allocate(kMiB + 1), ResourceExhaustedError);
  EXPECT_THROW(f.allocator.allocate(SIZE_MAX), ResourceExhaustedError);
  EXPECT_THROW(f.allocator.allocate(SIZE_MAX - 255), ResourceExhaustedError);
  f.allocator.reset_peak();
  EXPECT_EQ(f.allocator.stats().peak, 0u);
}

TEST(BlockAllocator, ALimitThatIsNoMultipleIsNotExceeded) {
  Fixture f(1000);
  std::vector<Ref<Buffer>> held;
  for (int i = 0; i < 3; ++i) held.push_back(f.allocator.allocate(256));
  EXPECT_THROW(f.allocator.allocate(1), ResourceExhaustedError);
  EXPECT_EQ(f.allocator.stats().limit, 1000u);
}

TEST(BlockAllocator, TakesAllAtFirstUseOrGrows) {
  Fixture at_once(64 * kMiB);
  EXPECT_EQ(at_once.allocator.stats().reserved, 0u);
  at_once.allocator.allocate(256);
  EXPECT_EQ(at_once.allocator.stats().reserved, 64 * kMiB);
  EXPECT_EQ(at_once.allocator.stats().largest_free, 64 * kMiB);

  Fixture growing(64 * kMiB, /*growth=*/true);
  const Ref<Buffer> small = growing.allocator.allocate(256);
  EXPECT_EQ(growing.allocator.stats().reserved, kMiB);
  const Ref<Buffer> large = growing.allocator.allocate(20 * kMiB);
  EXPECT_LE(growing.allocator.stats().reserved, 21 * kMiB);
  const Ref<Buffer> rest = growing.allocator.allocate(44 * kMiB - 256);
  EXPECT_EQ(growing.allocator.stats().reserved, 64 * kMiB);
  EXPECT_THROW(growing.allocator.allocate(1), ResourceExhaustedError);
}

TEST(BlockAllocator, GrowingInPiecesNeverReservesMoreThanTheLimit) {
  Fixture f(8 * kMiB, /*growth=*/true, /*joined=*/false);
  std::vector<Ref<Buffer>> held;
  try {
    for (;;) held.push_back(f.allocator.allocate(700 * kKiB));
  } catch (const ResourceExhaustedError&) {
  }
  EXPECT_GE(held.size(), 8u);
  EXPECT_LE(f.allocator.stats().reserved, 8 * kMiB);
  EXPECT_GT(f.source->grown, 1);
}

TEST(BlockAllocator, FreedNeighboursBecomeOne) {
  Fixture f(kMiB);
  std::vector<Ref<Buffer>> held;
  for (int i = 0; i < 16; ++i) held.push_back(f.allocator.allocate(64 * kKiB));
  for (int i : {1, 3, 2}) held[static_cast<std::size_t>(i)] = nullptr;
  EXPECT_EQ(f.allocator.stats().largest_free, 192 * kKiB);
  held[9] = nullptr;
  // The best fit for one piece is the single hole, not a part of the larger one.
  const Ref<Buffer> one = f.allocator.allocate(60 * kKiB);
  EXPECT_EQ(f.allocator.stats().largest_free, 192 * kKiB);
  EXPECT_EQ(f.allocator.allocate(192 * kKiB)->size(), 192 * kKiB);
  EXPECT_THROW(f.allocator.allocate(193 * kKiB), ResourceExhaustedError);
}

TEST(BlockAllocator, PaddingChangesNeitherLimitNorFragmentation) {
  Fixture f(kMiB, false, true, 128 * kKiB);
  std::vector<Ref<Buffer>> held;
  for (int i = 0; i < 4; ++i) held.push_back(f.allocator.allocate(256 * kKiB));
  EXPECT_EQ(f.source->guarded, 4);
  EXPECT_EQ(f.allocator.stats().current, kMiB);
  EXPECT_THROW(f.allocator.allocate(1), ResourceExhaustedError);
  held[1] = nullptr;
  EXPECT_EQ(f.allocator.stats().largest_free, 256 * kKiB);
  for (int i = 0; i < 4; ++i) held.push_back(f.allocator.allocate(64 * kKiB));
  EXPECT_EQ(f.allocator.stats().current, kMiB);
  EXPECT_EQ(f.source->guarded, 8);
  held[0] = held[2] = nullptr;
  EXPECT_THROW(f.allocator.allocate(257 * kKiB), ResourceExhaustedError);
  held.clear();
  EXPECT_EQ(f.allocator.allocate(kMiB)->size(), kMiB);
}

TEST(BlockAllocator, GivesItsRegionsBackAfterTheLastBuffer) {
  auto source = std::make_shared<Addresses>(kMiB, true);
  auto allocator =
      std::make_unique<BlockAllocator>(source, BlockAllocatorOptions{.device = "d", .limit = kMiB});
  Ref<Buffer> last = allocator->allocate(100);
  allocator.reset();
  EXPECT_EQ(source->released, 0u);
  last = nullptr;
  EXPECT_EQ(source->released, kMiB);
}

TEST(BlockAllocator, TheErrorNamesRequestLimitHoldersFragmentationAndHelp) {
  Fixture f(16 * kMiB);
  std::vector<Ref<Buffer>> held;
  {
    AllocationScope scope("dense/MatMul");
    for (int i = 0; i < 3; ++i) held.push_back(f.allocator.allocate(2 * kMiB));
  }
  held.push_back(f.allocator.allocate(9 * kMiB));
  held.back()->set_holder("variable 'kernel'");
  held[1] = nullptr;
  AllocationScope scope("conv/Conv2D");
  const std::string text = error_of(f.allocator, 3 * kMiB);
  EXPECT_THAT(text, HasSubstr("/device:GPU:0"));
  EXPECT_THAT(text, HasSubstr("3 MiB (3145728 bytes) were asked for by 'conv/Conv2D'"));
  EXPECT_THAT(text, HasSubstr("13 MiB (13631488 bytes) of the limit of 16 MiB"));
  const std::size_t variable = text.find("variable 'kernel' 9 MiB in 1 block");
  const std::size_t matmul = text.find("'dense/MatMul' 4 MiB in 2 blocks");
  EXPECT_NE(matmul, std::string::npos) << text;
  EXPECT_LT(variable, matmul) << text;
  EXPECT_THAT(text, HasSubstr("3 MiB are free in 2 pieces, the largest 2 MiB"));
  EXPECT_THAT(text, HasSubstr("would be enough if it were in one piece"));
  for (const char* help : {"smaller batch", "td::config::set_memory_limit",
                           "TANDEM_MEMORY_LIMIT_MB", "device scope"}) {
    EXPECT_THAT(text, HasSubstr(help));
  }
  EXPECT_THAT(error_of(f.allocator, 4 * kMiB), Not(HasSubstr("would be enough")));
}

TEST(BlockAllocator, TheErrorSumsUpTheSmallerHolders) {
  Fixture f(kMiB);
  std::vector<Ref<Buffer>> held;
  for (int i = 0; i < 20; ++i) {
    const std::string name = cat("node_", i);
    AllocationScope scope(name);
    held.push_back(f.allocator.allocate(static_cast<std::size_t>(i + 1) * kKiB));
  }
  const std::string text = error_of(f.allocator, 2 * kMiB);
  EXPECT_THAT(text, HasSubstr("'node_19' 20 KiB in 1 block, 'node_18' 19 KiB"));
  EXPECT_THAT(text, HasSubstr("12 more 78 KiB"));
  EXPECT_THAT(text, Not(HasSubstr("node_11'")));
}

// Random sequences against a plain model: blocks never overlap, and a request fails only if the
// limit or the largest hole says so.
void stress(unsigned seed, bool growth, std::size_t padding) {
  constexpr std::size_t kLimit = 256 * kKiB;
  Fixture f(kLimit, growth, true, growth ? 0 : padding);
  std::mt19937 random(seed);
  std::vector<Ref<Buffer>> held;
  std::map<std::byte*, std::size_t> used;
  std::size_t current = 0, peak = 0;
  for (int step = 0; step < 4000; ++step) {
    if (random() % 5 < 3 || held.empty()) {
      const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 64 * kKiB : 2 * kKiB);
      const std::size_t rounded = (bytes + 255) / 256 * 256;
      const MemoryStats before = f.allocator.stats();
      Ref<Buffer> buffer;
      try {
        buffer = f.allocator.allocate(bytes);
      } catch (const ResourceExhaustedError&) {
        EXPECT_TRUE(rounded > kLimit - current ||
                    (before.largest_free < rounded && before.reserved + rounded > kLimit));
        continue;
      }
      ASSERT_LE(rounded, kLimit - current);
      auto* at = static_cast<std::byte*>(buffer->data());
      const auto next = used.lower_bound(at);
      if (next != used.end()) {
        ASSERT_LE(at + rounded, next->first);
      }
      if (next != used.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, at);
      }
      used[at] = rounded;
      held.push_back(std::move(buffer));
      current += rounded;
      peak = std::max(peak, current);
    } else {
      const std::size_t i = random() % held.size();
      current -= (held[i]->size() + 255) / 256 * 256;
      used.erase(static_cast<std::byte*>(held[i]->data()));
      held[i] = std::move(held.back());
      held.pop_back();
    }
    const MemoryStats stats = f.allocator.stats();
    ASSERT_EQ(stats.current, current);
    ASSERT_EQ(stats.peak, peak);
    ASSERT_LE(stats.reserved, kLimit);
  }
  held.clear();
  EXPECT_EQ(f.allocator.stats().largest_free, f.allocator.stats().reserved);
  EXPECT_EQ(f.allocator.allocate(kLimit)->size(), kLimit);
}

TEST(BlockAllocator, HoldsItsPromisesInRandomUse) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    stress(seed, false, 0);
    stress(seed, true, 0);
    stress(seed, false, 32 * kKiB);
  }
}

TEST(BlockAllocator, ServesThreadsAtTheSameTime) {
  Fixture f(kMiB, /*growth=*/true);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&f, t] {
      std::mt19937 random(t);
      std::vector<Ref<Buffer>> held(16);
      for (int i = 0; i < 1000; ++i) {
        Ref<Buffer>& slot = held[random() % held.size()];
        slot = nullptr;
        try {
          slot = f.allocator.allocate(1 + random() % (32 * kKiB));
          slot->set_holder("a name that takes memory of its own");
        } catch (const ResourceExhaustedError&) {
        }
        EXPECT_LE(f.allocator.stats().current, kMiB);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(f.allocator.stats().current, 0u);
}

}  // namespace
}  // namespace tandem
