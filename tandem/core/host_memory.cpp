#include "tandem/core/host_memory.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/internal/sanitizers.h"
#include "tandem/core/machine.h"
#include "tandem/core/memory_listener.h"

#define TANDEM_PLAIN_HEAP (TANDEM_ADDRESS_SANITIZER || TANDEM_THREAD_SANITIZER)

namespace tandem {
namespace {

constexpr std::size_t kAlignment = 64;

std::atomic<std::size_t> g_current{0};
std::atomic<std::size_t> g_peak{0};

#if TANDEM_PLAIN_HEAP
constexpr std::size_t kLargest = std::size_t{1}
                                 << 39;  // sanitizers end the process where more is asked for
#else
constexpr std::size_t kLargest = SIZE_MAX - kAlignment;
#endif

// Large blocks are read and written from end to end: in large pages, where the system has them,
// that takes fewer faults at first and fewer walks through the page tables ever after.
void ask_for_large_pages([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE) && !TANDEM_PLAIN_HEAP
  constexpr std::size_t kPage = std::size_t{2} << 20, kMin = 4 * kPage;
  if (bytes < kMin) return;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t begin = (address + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (address + bytes) / kPage * kPage;
  // A refusal costs nothing but speed.
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

void* system_allocate(std::size_t bytes) {
  if (bytes > kLargest) return nullptr;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* block = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (block) ask_for_large_pages(block, rounded);
  return block;
}

[[noreturn]] void throw_exhausted(std::size_t bytes) {
  throw ResourceExhaustedError(
      cat("Out of host memory: a block of ", bytes, " bytes was asked for while ", g_current.load(),
          " bytes are in use by tensors and the machine, or its container, has ",
          machine_limits().memory >> 20,
          " MiB. Use smaller batches or free tensors that are no longer needed."));
}

#if !TANDEM_PLAIN_HEAP

constexpr std::size_t kSmallLimit = 1024;
constexpr std::size_t kSmallClasses = kSmallLimit / kAlignment;
constexpr std::size_t kSmallKept = 256;  // blocks a class and thread
constexpr std::size_t kLargeKeptBytes = std::size_t{256} << 20;

struct FreeBlock {
  FreeBlock* next;
  FreeBlock* next_batch;  // of the first block of a batch of SharedBlocks
};
static_assert(sizeof(FreeBlock) <= kAlignment);

// Small blocks on their way from threads that free more of them than they take to threads that take
// more, such as those of a device and their callers. Whole lists change hands, so that the lock is
// taken once for many blocks.
class SharedBlocks {
 public:
  static constexpr std::size_t kBatch = kSmallKept / 2;  // blocks

  // A list of kBatch blocks; null if there is none.
  FreeBlock* take(std::size_t index) noexcept {
    Class& c = classes_[index];
    if (c.count.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard lock(c.mutex);
    FreeBlock* const batch = c.first;
    if (!batch) return nullptr;
    c.first = batch->next_batch;
    c.count.store(c.count.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    return batch;
  }

  // False if enough are kept already.
  bool keep(std::size_t index, FreeBlock* batch) noexcept {
    Class& c = classes_[index];
    std::lock_guard lock(c.mutex);
    const std::size_t count = c.count.load(std::memory_order_relaxed);
    if (count == kMaxBatches) return false;
    batch->next_batch = c.first;
    c.first = batch;
    c.count.store(count + 1, std::memory_order_relaxed);
    return true;
  }

  void trim() noexcept {
    for (std::size_t index = 0; index < kSmallClasses; ++index) {
      while (FreeBlock* block = take(index)) {
        while (block) std::free(std::exchange(block, block->next));
      }
    }
  }

 private:
  static constexpr std::size_t kMaxBatches = 16;  // of a class: 2 MiB of the largest blocks
  struct Class {
    std::mutex mutex;
    FreeBlock* first = nullptr;
    std::atomic<std::size_t> count{0};
  };
  std::array<Class, kSmallClasses> classes_;
};

// Never destroyed, as large_cache() below.
SharedBlocks& shared_blocks() {
  static SharedBlocks* blocks = new SharedBlocks;
  return *blocks;
}

struct SmallCache {
  std::array<FreeBlock*, kSmallClasses> head{};
  std::array<std::size_t, kSmallClasses> kept{};
  ~SmallCache();
};

enum class CacheState : char { kUnborn, kAlive, kDead };
// One object, as each look-up of a thread's object costs a call.
struct ThreadCache {
  SmallCache* cache = nullptr;
  CacheState state = CacheState::kUnborn;
};
constinit thread_local ThreadCache t_cache;

SmallCache::~SmallCache() {
  t_cache = {nullptr, CacheState::kDead};
  for (FreeBlock* block : head) {
    while (block) std::free(std::exchange(block, block->next));
  }
}

// Null once the thread is past destroying its thread-local objects: static objects may still free
// blocks then.
SmallCache* small_cache() {
  ThreadCache& own = t_cache;
  if (own.state == CacheState::kUnborn) [[unlikely]] {
    thread_local SmallCache cache;
    own = {&cache, CacheState::kAlive};
  }
  return own.cache;
}

// Where the thread's list is empty: blocks that other threads have freed, or new memory.
[[gnu::noinline]] void* take_small(SmallCache* cache, std::size_t index, std::size_t bytes) {
  FreeBlock* const batch = cache ? shared_blocks().take(index) : nullptr;
  if (batch) {
    cache->head[index] = batch->next;
    cache->kept[index] = SharedBlocks::kBatch - 1;
    return batch;
  }
  void* block = system_allocate((index + 1) * kAlignment);
  if (!block) throw_exhausted(bytes);
  return block;
}

// Where the thread's list is full: half of it becomes a batch for others.
[[gnu::noinline]] void hand_over_small(SmallCache& cache, std::size_t index) noexcept {
  FreeBlock* batch = cache.head[index];
  FreeBlock* last = batch;
  for (std::size_t i = 1; i < SharedBlocks::kBatch; ++i) last = last->next;
  cache.head[index] = std::exchange(last->next, nullptr);
  cache.kept[index] -= SharedBlocks::kBatch;
  if (shared_blocks().keep(index, batch)) return;
  while (batch) std::free(std::exchange(batch, batch->next));
}

// Four classes to each doubling keep the waste of a block below a fifth; huge blocks, which are
// few, are not rounded so far.
std::size_t large_class_size(std::size_t bytes) {
  constexpr std::size_t kHuge = std::size_t{64} << 20, kHugeStep = std::size_t{1} << 20;
  if (bytes > kHuge) return (bytes + kHugeStep - 1) / kHugeStep * kHugeStep;
  const std::size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

class LargeCache {
 public:
  void* take(std::size_t size) {
    std::lock_guard lock(mutex_);
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      if (blocks_[i].size == size) {
        void* block = blocks_[i].block;
        blocks_[i] = blocks_.back();
        blocks_.pop_back();
        kept_ -= size;
        return block;
      }
    }
    return nullptr;
  }

  bool keep(void* block, std::size_t size) noexcept {
    std::lock_guard lock(mutex_);
    if (kept_ + size > kLargeKeptBytes || blocks_.size() >= 512) return false;
    try {
      blocks_.push_back({block, size});
    } catch (...) {
      return false;
    }
    kept_ += size;
    return true;
  }

  void trim() noexcept {
    std::lock_guard lock(mutex_);
    for (const Entry& e : blocks_) std::free(e.block);
    blocks_.clear();
    kept_ = 0;
  }

  std::size_t kept() {
    std::lock_guard lock(mutex_);
    return kept_;
  }

 private:
  struct Entry {
    void* block;
    std::size_t size;
  };
  std::mutex mutex_;
  std::vector<Entry> blocks_;
  std::size_t kept_ = 0;
};

// Never destroyed: buffers of static lifetime are freed after every destructor has run.
LargeCache& large_cache() {
  static LargeCache* cache = new LargeCache;
  return *cache;
}
#endif

void count_up(const void* block, std::size_t bytes) {
  const std::size_t now = g_current.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  report_memory({.block = block, .bytes = bytes, .in_use = now});
  std::size_t peak = g_peak.load(std::memory_order_relaxed);
  while (now > peak && !g_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void count_down(const void* block, std::size_t bytes) {
  const std::size_t before = g_current.fetch_sub(bytes, std::memory_order_relaxed);
  report_memory({.block = block, .bytes = bytes, .released = true, .in_use = before - bytes});
}

}  // namespace

void host_reset_peak() noexcept { g_peak.store(g_current.load()); }

#if TANDEM_PLAIN_HEAP

void* host_allocate(std::size_t bytes) {
  void* block = system_allocate(bytes);
  if (!block) throw_exhausted(bytes);
  count_up(block, bytes);
  return block;
}

void host_free(void* block, std::size_t bytes) noexcept {
  count_down(block, bytes);
  std::free(block);
}

void host_trim() noexcept {}

std::size_t host_counted_bytes(std::size_t bytes) noexcept { return bytes; }

HostMemoryStats host_memory_stats() noexcept { return {g_current.load(), g_peak.load(), 0}; }

#else

void* host_allocate(std::size_t bytes) {
  if (bytes <= kSmallLimit) {
    const std::size_t index = bytes == 0 ? 0 : (bytes - 1) / kAlignment;
    SmallCache* cache = small_cache();
    if (cache && cache->head[index]) {
      FreeBlock* block = cache->head[index];
      cache->head[index] = block->next;
      --cache->kept[index];
      return block;
    }
    return take_small(cache, index, bytes);
  }
  if (bytes > (SIZE_MAX >> 2)) throw_exhausted(bytes);
  const std::size_t size = large_class_size(bytes);
  void* block = large_cache().take(size);
  if (!block) block = system_allocate(size);
  if (!block) {
    host_trim();
    block = system_allocate(size);
  }
  if (!block) throw_exhausted(bytes);
  count_up(block, size);
  return block;
}

void host_free(void* block, std::size_t bytes) noexcept {
  if (bytes <= kSmallLimit) {
    const std::size_t index = bytes == 0 ? 0 : (bytes - 1) / kAlignment;
    SmallCache* cache = small_cache();
    if (!cache) return std::free(block);
    if (cache->kept[index] == kSmallKept) hand_over_small(*cache, index);
    auto* free_block = static_cast<FreeBlock*>(block);
    free_block->next = cache->head[index];
    cache->head[index] = free_block;
    ++cache->kept[index];
    return;
  }
  const std::size_t size = large_class_size(bytes);
  count_down(block, size);
  if (!large_cache().keep(block, size)) std::free(block);
}

void host_trim() noexcept {
  large_cache().trim();
  shared_blocks().trim();
}

std::size_t host_counted_bytes(std::size_t bytes) noexcept {
  return bytes <= kSmallLimit ? 0 : large_class_size(bytes);
}

HostMemoryStats host_memory_stats() noexcept {
  return {g_current.load(), g_peak.load(), large_cache().kept()};
}

#endif

}  // namespace tandem
