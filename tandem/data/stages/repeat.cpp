#include <cstdint>
#include <utility>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/stages/dataset_op.h"

namespace tandem::data {
namespace {

class RepeatIterator final : public RowStage {
 public:
  RepeatIterator(const DatasetBase& dataset, std::int64_t count, const IterationContext& context)
      : RowStage(dataset.iterator(context)), dataset_(dataset), left_(count), context_(context) {}

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Repeat");
    state.value(left_);
    state.value(given_in_pass_);
    visit_kept(state);
    input().visit_state(state);
  }

 protected:
  void draw_rows(std::span<std::int64_t> out, std::size_t& given) override {
    while (given < out.size()) {
      const std::size_t got = input().next_rows(out.subspan(given));
      given += got;
      given_in_pass_ = given_in_pass_ || got > 0;
      if (given < out.size() && !begin_again()) break;
    }
  }

  bool next_element(Element& out) override {
    while (!input().next(out)) {
      if (!begin_again()) return false;
    }
    given_in_pass_ = true;
    return true;
  }

 private:
  bool begin_again() {
    // An input without elements would be asked for ever.
    if (!given_in_pass_ || left_ == 1) return false;
    if (left_ > 0) --left_;
    context_.check();
    replace_input(dataset_.iterator(context_));
    given_in_pass_ = false;
    return true;
  }

  const DatasetBase& dataset_;
  std::int64_t left_;
  bool given_in_pass_ = false;
  IterationContext context_;
};

class RepeatDataset final : public UnaryDataset, public FusedStage {
 public:
  RepeatDataset(DatasetRef input, std::int64_t count)
      : UnaryDataset(std::move(input)),
        count_(count),
        fused_(fuse_shuffle_and_repeat(input_ref(), count)) {}

  std::string name() const override { return "Repeat"; }
  Tensor as_op() const override {
    return dataset_op("RepeatDataset", {input().as_op(), Tensor(count_)}, element_spec());
  }
  std::string parameters() const override { return cat("count=", count_); }

  const DatasetBase* runs_as() const override { return fused_.get(); }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    if (fused_ && context.options().fusion.value_or(true)) return fused_->iterator(context);
    return std::make_unique<RepeatIterator>(input(), count_, context.repeating());
  }

  std::int64_t cardinality() const override {
    return repeated_cardinality(input().cardinality(), count_);
  }

 private:
  const std::int64_t count_;
  const DatasetRef fused_;  // null: the input is no shuffle
};

}  // namespace

std::int64_t repeated_cardinality(std::int64_t elements, std::int64_t count) {
  if (elements == 0) return 0;
  if (count < 0) return kInfinite;  // an unknown number too, as TensorFlow has it
  return elements < 0 ? elements : checked_multiply(elements, count);
}

Dataset Dataset::repeat(std::int64_t count) const {
  if (count < -1) {
    throw InvalidArgumentError(
        cat("repeat: count must be at least 0, or -1 to repeat for ever, got ", count, "."));
  }
  if (count == 0) return take(0);
  return make_dataset<RepeatDataset>(base_of(*this), count);
}

}  // namespace tandem::data
