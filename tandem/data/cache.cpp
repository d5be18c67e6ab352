#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/internal/row_stage.h"

namespace tandem::data {
namespace {

// The elements of a complete pass; for inputs with rows their numbers, and the table, which the
// input owns.
struct Cached {
  std::vector<Element> elements;
  std::vector<std::int64_t> numbers;
  const RowTable* table = nullptr;
};

class CacheMemory {
 public:
  std::shared_ptr<const Cached> get() {
    std::lock_guard lock(mutex_);
    return cached_;
  }
  /// Of several iterations that complete a pass the first one counts.
  void set(std::shared_ptr<const Cached> cached) {
    std::lock_guard lock(mutex_);
    if (!cached_) cached_ = std::move(cached);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const Cached> cached_;
};

class CacheWriter final : public RowStage {
 public:
  CacheWriter(std::unique_ptr<IteratorBase> input, std::shared_ptr<CacheMemory> memory)
      : RowStage(std::move(input)), memory_(std::move(memory)) {
    collected_->table = rows();
  }

  std::size_t next_rows(std::span<std::int64_t> out) override {
    std::size_t got = 0;
    try {
      got = input().next_rows(out);
    } catch (...) {
      complete_ = false;
      throw;
    }
    collected_->numbers.insert(collected_->numbers.end(), out.begin(),
                               out.begin() + static_cast<std::ptrdiff_t>(got));
    if (got < out.size()) publish();
    return got;
  }

 protected:
  bool next_element(Element& out) override {
    try {
      if (!input().next(out)) {
        publish();
        return false;
      }
    } catch (...) {
      complete_ = false;
      throw;
    }
    if (complete_) collected_->elements.push_back(out);
    return true;
  }

 private:
  void publish() {
    if (complete_) memory_->set(collected_);
    complete_ = false;
  }

  std::shared_ptr<CacheMemory> memory_;
  std::shared_ptr<Cached> collected_ = std::make_shared<Cached>();
  bool complete_ = true;  // so far without an error, and not yet published
};

class CacheReader final : public IteratorBase {
 public:
  explicit CacheReader(std::shared_ptr<const Cached> cached) : cached_(std::move(cached)) {}

  const RowTable* rows() const override { return cached_->table; }

  bool next(Element& out) override {
    if (cached_->table) {
      if (at_ == cached_->numbers.size()) return false;
      cached_->table->element(cached_->numbers[at_++], out);
    } else {
      if (at_ == cached_->elements.size()) return false;
      out = cached_->elements[at_++];
    }
    return true;
  }

  std::size_t next_rows(std::span<std::int64_t> out) override {
    const std::size_t count = std::min(out.size(), cached_->numbers.size() - at_);
    std::copy_n(cached_->numbers.begin() + static_cast<std::ptrdiff_t>(at_), count, out.begin());
    at_ += count;
    return count;
  }

 private:
  std::shared_ptr<const Cached> cached_;
  std::size_t at_ = 0;
};

class CacheDataset final : public UnaryDataset {
 public:
  using UnaryDataset::UnaryDataset;
  std::string name() const override { return "MemoryCache"; }
  std::unique_ptr<IteratorBase> iterator(const IterationContext& context) const override {
    if (auto cached = memory_->get()) return std::make_unique<CacheReader>(std::move(cached));
    return std::make_unique<CacheWriter>(input().iterator(context), memory_);
  }

 private:
  std::shared_ptr<CacheMemory> memory_ = std::make_shared<CacheMemory>();
};

}  // namespace

Dataset Dataset::cache() const { return make_dataset<CacheDataset>(base_of(*this)); }

}  // namespace tandem::data
