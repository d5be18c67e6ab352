#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/stages/dataset_op.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::data {
namespace {

// The elements of a complete pass; for inputs with rows their numbers, and the table, which the
// input owns.
struct Cached {
  std::vector<Element> elements;
  Origins origins;  // of these
  std::vector<std::int64_t> numbers;
  const RowTable* table = nullptr;

  void visit_state(StateArchive& state) {
    state.value(elements);
    origins.visit_state(state);
    state.value(numbers);
    for (const std::int64_t row : numbers) {
      state.require(table && row >= 0 && row < table->num_rows(),
                    "it holds numbers of rows that do not exist");
    }
  }
};

class CacheMemory {
 public:
  std::shared_ptr<const Cached> get() {
    std::lock_guard lock(mutex_);
    return cached_;
  }
  /// If several iterations complete a pass, the first one counts.
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

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("MemoryCache");
    state.value(complete_);
    std::vector<Element> none;
    Origins no_origins;
    auto& elements = complete_ ? collected_->elements : none;
    state.value(elements);
    (complete_ ? collected_->origins : no_origins).visit_state(state);
    state.value(collected_->numbers);
    for (const std::int64_t row : collected_->numbers) require_row(row);
    visit_kept(state);
    input().visit_state(state);
  }

 protected:
  void draw_rows(std::span<std::int64_t> out, std::size_t& given) override {
    const std::span<std::int64_t> wanted = out.subspan(given);
    std::size_t got = 0;
    try {
      got = input().next_rows(wanted);
    } catch (...) {
      complete_ = false;
      throw;
    }
    given += got;
    collected_->numbers.insert(collected_->numbers.end(), wanted.begin(),
                               wanted.begin() + static_cast<std::ptrdiff_t>(got));
    if (got < wanted.size()) publish();
  }

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
    if (complete_) {
      collected_->origins.add(collected_->elements.size(), input().origin());
      collected_->elements.push_back(out);
    }
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
  const std::shared_ptr<const Cached>& cached() const { return cached_; }

  const RowTable* rows() const override { return cached_->table; }
  Origin origin() const override { return at_ == 0 ? Origin() : cached_->origins.at(at_ - 1); }

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

  void visit_state(StateArchive& state) override {
    state.value(at_);
    state.require(at_ <= (cached_->table ? cached_->numbers.size() : cached_->elements.size()),
                  "its place is beyond the end of a cache");
  }

 private:
  std::shared_ptr<const Cached> cached_;
  std::size_t at_ = 0;
};

// Collects the elements, or gives those collected before.
class CacheIterator final : public IteratorBase {
 public:
  CacheIterator(const DatasetBase& input, std::shared_ptr<CacheMemory> memory,
                const IterationContext& context)
      : input_(input), memory_(std::move(memory)), context_(context) {
    if (auto cached = memory_->get()) {
      read(std::move(cached));
    } else {
      write();
    }
  }

  bool next(Element& out) override { return reader_ ? reader_->next(out) : writer_->next(out); }
  const RowTable* rows() const override { return reader_ ? reader_->rows() : writer_->rows(); }
  Origin origin() const override { return reader_ ? reader_->origin() : writer_->origin(); }
  std::size_t next_rows(std::span<std::int64_t> out) override {
    return reader_ ? reader_->next_rows(out) : writer_->next_rows(out);
  }

  void visit_state(StateArchive& state) override {
    state.stage("Cache");
    bool reads = reader_ != nullptr;
    state.value(reads);
    if (!reads) {
      if (!writer_) write();
      return writer_->visit_state(state);
    }
    auto cached = reader_ ? reader_->cached() : std::make_shared<const Cached>();
    auto copy = std::make_shared<Cached>(*cached);
    if (state.restoring()) copy->table = rows();
    copy->visit_state(state);
    if (state.restoring()) {
      memory_->set(copy);
      read(std::move(copy));
    }
    reader_->visit_state(state);
  }

 private:
  void read(std::shared_ptr<const Cached> cached) {
    reader_ = std::make_unique<CacheReader>(std::move(cached));
    writer_ = nullptr;
  }
  void write() {
    writer_ = std::make_unique<CacheWriter>(input_.iterator(context_), memory_);
    reader_ = nullptr;
  }

  const DatasetBase& input_;
  std::shared_ptr<CacheMemory> memory_;
  IterationContext context_;
  std::unique_ptr<CacheReader> reader_;  // of these one
  std::unique_ptr<CacheWriter> writer_;
};

class CacheDataset final : public UnaryDataset {
 public:
  using UnaryDataset::UnaryDataset;
  std::string name() const override { return "MemoryCache"; }
  Tensor as_op() const override {
    return dataset_op("CacheDatasetV2",
                      {input().as_op(), Tensor(""),
                       raw_op("DummyMemoryCache", std::initializer_list<Tensor>{}).at(0)},
                      element_spec());
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<CacheIterator>(input(), memory_, context);
  }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    const auto cached = memory_->get();
    bool filled = cached != nullptr;
    state.value(filled);
    if (filled) {
      auto copy = cached ? std::make_shared<Cached>(*cached) : std::make_shared<Cached>();
      // What beginning a pass changes in the inputs, they take back below.
      if (state.restoring()) copy->table = input().iterator(context)->rows();
      copy->visit_state(state);
      if (state.restoring()) memory_->set(std::move(copy));
    }
    UnaryDataset::visit_lasting_state(state, context);
  }

 private:
  std::shared_ptr<CacheMemory> memory_ = std::make_shared<CacheMemory>();
};

}  // namespace

Dataset Dataset::cache() const { return make_dataset<CacheDataset>(base_of(*this)); }

}  // namespace tandem::data
