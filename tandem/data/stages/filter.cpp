#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/stages/dataset_op.h"

namespace tandem::data {
namespace {

class FilterIterator final : public RowStage {
 public:
  FilterIterator(std::unique_ptr<IteratorBase> input, const Condition& condition, DrawPass draws,
                 IterationContext context)
      : RowStage(std::move(input)),
        condition_(condition),
        draws_(std::move(draws)),
        context_(std::move(context)) {}

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Filter");
    state.value(number_);
    draws_.visit_state(state);
    visit_kept(state);
    input().visit_state(state);
  }

 protected:
  void draw_rows(std::span<std::int64_t> out, std::size_t& given) override {
    std::int64_t row = 0;
    while (given < out.size() && input().next_rows({&row, 1}) == 1) {
      rows()->element(row, element_);
      if (passes(element_)) out[given++] = row;
    }
    element_.clear();
  }

  bool next_element(Element& out) override {
    while (input().next(out)) {
      if (passes(out)) return true;
    }
    return false;
  }

 private:
  bool passes(const Element& element) {
    context_.check();
    const std::int64_t number = number_++;
    try {
      const DrawScope scope(draws_, number);
      return condition_.test(element);
    } catch (...) {
      Element names;
      note_names(element, names);
      throw_stage_error("filter", number, origin_text(names, input().origin()));
    }
  }

  const Condition& condition_;
  DrawPass draws_;
  Element element_;
  std::int64_t number_ = 0;
  IterationContext context_;
};

class FilterDataset final : public UnaryDataset, public FilterStage, public FusedStage {
 public:
  FilterDataset(DatasetRef input, ElementPredicate predicate)
      : UnaryDataset(std::move(input)), condition_(std::move(predicate), this->input()) {}

  std::string name() const override { return "Filter"; }
  Tensor as_op() const override {
    if (!condition_.predicate().function()) {
      throw UnimplementedError(
          "The predicate of a filter cannot be traced: it has to return a tensor of dtype bool.");
    }
    const auto traced =
        trace_for_op(*condition_.predicate().function(), condition_.program(), input(), "filter");
    return dataset_op("FilterDataset", input().as_op(), "predicate", *traced, {}, element_spec());
  }
  const DatasetRef& filtered() const override { return input_ref(); }
  const Condition& condition() const override { return condition_; }
  const FunctionRng* draws() const override { return condition_.may_draw() ? &draws_ : nullptr; }
  const DatasetBase* runs_as() const override {
    std::call_once(fusing_, [this] { fused_ = fuse_map_and_filter(input_ref(), condition_); });
    return fused_.get();
  }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    if (context.options().fusion.value_or(true)) {
      if (const DatasetBase* fused = runs_as()) return fused->iterator(context);
    }
    DrawPass pass(draws(), context);
    return std::make_unique<FilterIterator>(input().iterator(context), condition_, std::move(pass),
                                            context);
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    UnaryDataset::visit_lasting_state(state, context);
    draws_.visit_state(state, context);
  }

 private:
  const Condition condition_;
  const FunctionRng draws_;
  mutable std::once_flag fusing_;
  mutable DatasetRef fused_;  // null: runs as it is
};

void check_arity(const DatasetBase& input, int arity) {
  const int given = input.num_components();
  if (arity >= 0 && given >= 0 && arity != given) {
    internal::throw_arity(static_cast<std::size_t>(arity), static_cast<std::size_t>(given));
  }
}

}  // namespace

Dataset Dataset::filter(ElementPredicate predicate) const {
  check_arity(*base_of(*this), predicate.arity());
  return make_dataset<FilterDataset>(base_, std::move(predicate));
}

}  // namespace tandem::data
