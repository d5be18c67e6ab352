#include <cstdint>
#include <string>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"

namespace tandem::data {
namespace {

std::string elements_text(std::int64_t count) {
  if (count == kInfinite) return "an infinite number of elements";
  return cat(count, count == 1 ? " element" : " elements");
}

class AssertCardinalityIterator final : public UnaryIterator {
 public:
  AssertCardinalityIterator(std::unique_ptr<IteratorBase> input, std::int64_t expected)
      : UnaryIterator(std::move(input)), expected_(expected) {}

  bool next(Element& out) override {
    if (ended_) return false;
    if (input().next(out)) {
      if (++count_ <= expected_ || expected_ == kInfinite) return true;
      ended_ = true;
      fail("at least ", expected_);
    }
    ended_ = true;
    if (count_ != expected_) fail("only ", count_);
    return false;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("AssertCardinality");
    state.value(count_);
    state.value(ended_);
    input().visit_state(state);
  }

 private:
  // `number` is that of the element that is missing, or too many.
  [[noreturn]] void fail(const char* how_many, std::int64_t number) const {
    throw FailedPreconditionError(
        cat("Input dataset was expected to contain ", elements_text(expected_), " but contained ",
            how_many, elements_text(count_), ".\n\tin assert_cardinality, element ", number));
  }

  const std::int64_t expected_;
  std::int64_t count_ = 0;
  bool ended_ = false;
};

class AssertCardinalityDataset final : public UnaryDataset {
 public:
  AssertCardinalityDataset(DatasetRef input, std::int64_t expected)
      : UnaryDataset(std::move(input)), expected_(expected) {}
  std::string name() const override { return "AssertCardinality"; }
  std::string parameters() const override { return cat("expected=", expected_); }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<AssertCardinalityIterator>(input().iterator(context), expected_);
  }
  std::int64_t cardinality() const override { return expected_; }

 private:
  const std::int64_t expected_;
};

}  // namespace

Dataset Dataset::assert_cardinality(std::int64_t expected) const {
  if (expected < kInfinite) {
    throw InvalidArgumentError(
        cat("`expected_cardinality` must be >= 0, or kInfinite, got ", expected, "."));
  }
  return make_dataset<AssertCardinalityDataset>(base_of(*this), expected);
}

}  // namespace tandem::data
