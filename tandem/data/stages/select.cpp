#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/sources/seekable.h"
#include "tandem/data/stages/dataset_op.h"

namespace tandem::data {
namespace {

class TakeIterator final : public RowStage, public Seekable {
 public:
  TakeIterator(std::unique_ptr<IteratorBase> input, std::int64_t count, IterationContext context)
      : RowStage(std::move(input)),
        known_(known_places(this->input())),
        left_(count),
        context_(std::move(context)) {}

  bool knows_places() const override { return known_ != nullptr; }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t passed = known_->skip(std::min(count, left_));
    count_down(passed);
    return passed;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Take");
    state.value(left_);
    state.require(left_ >= 0, "a number of elements is negative");
    visit_kept(state);
    input().visit_state(state);
  }

 protected:
  void draw_rows(std::span<std::int64_t> out, std::size_t& given) override {
    const auto wanted = std::min(out.size() - given, static_cast<std::size_t>(left_));
    const std::size_t got = wanted == 0 ? 0 : input().next_rows(out.subspan(given, wanted));
    given += got;
    count_down(static_cast<std::int64_t>(got));
  }

  bool next_element(Element& out) override {
    if (left_ == 0 || !input().next(out)) return false;
    count_down(1);
    return true;
  }

 private:
  void count_down(std::int64_t given) {
    left_ -= given;
    if (given > 0 && left_ == 0) context_.leave_open();
  }

  Seekable* const known_;  // the input's, or null
  std::int64_t left_;
  IterationContext context_;
};

class TakeDataset final : public UnaryDataset {
 public:
  TakeDataset(DatasetRef input, std::int64_t count)
      : UnaryDataset(std::move(input)), count_(count) {}
  std::string name() const override { return "Take"; }
  Tensor as_op() const override {
    return dataset_op("TakeDataset", {input().as_op(), Tensor(count_)}, element_spec());
  }
  std::string parameters() const override { return cat("count=", count_); }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<TakeIterator>(input().iterator(context), count_, context);
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (count_ == 0) return 0;
    if (n == kInfinite) return count_;
    return n == kUnknown ? kUnknown : std::min(n, count_);
  }

 private:
  const std::int64_t count_;
};

class SkipIterator final : public RowStage, public Seekable {
 public:
  SkipIterator(std::unique_ptr<IteratorBase> input, std::int64_t count, IterationContext context)
      : RowStage(std::move(input)),
        known_(known_places(this->input())),
        left_(count),
        context_(std::move(context)) {}

  bool knows_places() const override { return known_ != nullptr; }
  std::int64_t skip(std::int64_t count) override {
    jump();
    return known_->skip(count);
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Skip");
    state.value(left_);
    visit_kept(state);
    input().visit_state(state);
  }

 protected:
  void draw_rows(std::span<std::int64_t> out, std::size_t& given) override {
    jump();
    std::array<std::int64_t, 256> passed;
    while (left_ > 0) {
      const auto wanted = std::min(passed.size(), static_cast<std::size_t>(left_));
      const std::size_t got = input().next_rows(std::span(passed).first(wanted));
      left_ = got < wanted ? 0 : left_ - static_cast<std::int64_t>(got);
      context_.check();
    }
    given += input().next_rows(out.subspan(given));
  }

  bool next_element(Element& out) override {
    jump();
    for (; left_ > 0; --left_) {
      if (!input().next(out)) return false;
      context_.check();
    }
    return input().next(out);
  }

 private:
  // To the first element that is wanted, where that takes no time.
  void jump() {
    if (known_ && left_ > 0) known_->skip(std::exchange(left_, 0));
  }

  Seekable* const known_;  // the input's, or null
  std::int64_t left_;
  IterationContext context_;
};

class SkipDataset final : public UnaryDataset {
 public:
  SkipDataset(DatasetRef input, std::int64_t count)
      : UnaryDataset(std::move(input)), count_(count) {}
  std::string name() const override { return "Skip"; }
  Tensor as_op() const override {
    return dataset_op("SkipDataset", {input().as_op(), Tensor(count_)}, element_spec());
  }
  std::string parameters() const override { return cat("count=", count_); }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<SkipIterator>(input().iterator(context), count_, context);
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n < 0 ? n : std::max<std::int64_t>(0, n - count_);
  }

 private:
  const std::int64_t count_;
};

class ShardIterator final : public RowStage {
 public:
  ShardIterator(std::unique_ptr<IteratorBase> input, std::int64_t num_shards, std::int64_t index,
                IterationContext context)
      : RowStage(std::move(input)),
        known_(known_places(this->input())),
        num_shards_(num_shards),
        to_pass_(index),
        context_(std::move(context)) {}

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Shard");
    state.value(to_pass_);
    visit_kept(state);
    input().visit_state(state);
  }

 protected:
  void draw_rows(std::span<std::int64_t> out, std::size_t& given) override {
    std::int64_t row = 0;
    while (given < out.size()) {
      jump();
      if (input().next_rows({&row, 1}) == 0) break;
      if (mine()) out[given++] = row;
      context_.check();
    }
  }

  bool next_element(Element& out) override {
    for (jump(); input().next(out);) {
      if (mine()) return true;
      context_.check();
    }
    return false;
  }

 private:
  // To the next element of this shard, where that takes no time.
  void jump() {
    if (known_ && to_pass_ > 0) known_->skip(std::exchange(to_pass_, 0));
  }

  bool mine() {
    if (to_pass_ > 0) {
      --to_pass_;
      return false;
    }
    to_pass_ = num_shards_ - 1;
    return true;
  }

  Seekable* const known_;  // the input's, or null
  const std::int64_t num_shards_;
  std::int64_t to_pass_;
  IterationContext context_;
};

class ShardDataset final : public UnaryDataset {
 public:
  ShardDataset(DatasetRef input, std::int64_t num_shards, std::int64_t index)
      : UnaryDataset(std::move(input)), num_shards_(num_shards), index_(index) {}
  std::string name() const override { return "Shard"; }
  Tensor as_op() const override {
    return dataset_op("ShardDataset", {input().as_op(), Tensor(num_shards_), Tensor(index_)},
                      element_spec());
  }
  std::string parameters() const override { return cat("index=", index_, " of ", num_shards_); }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<ShardIterator>(input().iterator(context), num_shards_, index_, context);
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n < 0 ? n : n / num_shards_ + (index_ < n % num_shards_ ? 1 : 0);
  }

 private:
  const std::int64_t num_shards_;
  const std::int64_t index_;
};

void check_count(const char* name, std::int64_t count, const char* all) {
  if (count < -1) {
    throw InvalidArgumentError(
        cat(name, ": count must be at least 0, or -1 for ", all, ", got ", count, "."));
  }
}

}  // namespace

std::unique_ptr<IteratorBase> make_shard_iterator(std::unique_ptr<IteratorBase> input,
                                                  std::int64_t num_shards, std::int64_t index,
                                                  const IterationContext& context) {
  return std::make_unique<ShardIterator>(std::move(input), num_shards, index, context);
}

Dataset Dataset::take(std::int64_t count) const {
  check_count("take", count, "all elements");
  base_of(*this);
  return count == -1 ? *this : make_dataset<TakeDataset>(base_, count);
}

Dataset Dataset::skip(std::int64_t count) const {
  check_count("skip", count, "all elements");
  return count == -1 ? take(0) : make_dataset<SkipDataset>(base_of(*this), count);
}

Dataset Dataset::shard(std::int64_t num_shards, std::int64_t index) const {
  if (num_shards <= 0) {
    throw InvalidArgumentError(cat(
        "Number of shards must be greater than zero (currently num_shards = ", num_shards, ")."));
  }
  if (index < 0 || index >= num_shards) {
    throw InvalidArgumentError(
        cat("Index must be between 0 and ", num_shards - 1, " (currently index = ", index, ")."));
  }
  return make_dataset<ShardDataset>(base_of(*this), num_shards, index);
}

}  // namespace tandem::data
