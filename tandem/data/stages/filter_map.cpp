#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"

namespace tandem::data {
namespace {

class FilterMapIterator final : public UnaryIterator {
 public:
  FilterMapIterator(std::unique_ptr<IteratorBase> input, const Condition& condition,
                    const ElementFn& fn, DrawPass filter_draws, DrawPass map_draws,
                    IterationContext context)
      : UnaryIterator(std::move(input)),
        condition_(condition),
        fn_(fn),
        filter_draws_(std::move(filter_draws)),
        map_draws_(std::move(map_draws)),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    while (next_counted(input(), out, mapped_)) {
      context_.check();
      note_names(out, names_);
      if (!passes(out)) continue;
      const std::int64_t number = mapped_++;
      try {
        const DrawScope scope(map_draws_, number);
        fn_.apply(out);
      } catch (...) {
        throw_stage_error("map", number, origin_text(names_, input().origin()));
      }
      return true;
    }
    return false;
  }

  Origin origin() const override { return joined(names_, input().origin()); }

  void visit_state(StateArchive& state) override {
    state.stage("Filter+Map");
    state.value(tested_);
    state.value(mapped_);
    filter_draws_.visit_state(state);
    map_draws_.visit_state(state);
    input().visit_state(state);
  }

 private:
  bool passes(const Element& element) {
    const std::int64_t number = tested_++;
    try {
      const DrawScope scope(filter_draws_, number);
      return condition_.test(element);
    } catch (...) {
      ++mapped_;
      throw_stage_error("filter", number, origin_text(names_, input().origin()));
    }
  }

  const Condition& condition_;
  const ElementFn& fn_;
  DrawPass filter_draws_;
  DrawPass map_draws_;
  Element names_;  // in the element tested last
  std::int64_t tested_ = 0;
  std::int64_t mapped_ = 0;
  IterationContext context_;
};

class FilterMapDataset final : public UnaryDataset {
 public:
  FilterMapDataset(const FilterStage& filter, const DatasetBase& map, const ElementFn& fn,
                   const FunctionRng* draws)
      : UnaryDataset(filter.filtered()), filter_(filter), map_(map), fn_(fn), draws_(draws) {}

  std::string name() const override { return "Filter+" + map_.name(); }
  const ElementSpec& element_spec() const override { return map_.element_spec(); }
  const Names& names() const override { return map_.names(); }
  int num_components() const override { return map_.num_components(); }
  std::int64_t cardinality() const override { return map_.cardinality(); }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    DrawPass map_draws(draws_, context);  // in the order of the stages as written
    DrawPass filter_draws(filter_.draws(), context);
    return std::make_unique<FilterMapIterator>(input().iterator(context), filter_.condition(), fn_,
                                               std::move(filter_draws), std::move(map_draws),
                                               context);
  }

 private:
  const FilterStage& filter_;  // kept by the map
  const DatasetBase& map_;     // keeps this
  const ElementFn& fn_;        // the map's
  const FunctionRng* const draws_;
};

}  // namespace

DatasetRef fuse_filter_and_map(const DatasetRef& input, const DatasetBase& map,
                               const ElementFn& function, const FunctionRng* draws) {
  const auto* filter = dynamic_cast<const FilterStage*>(input.get());
  if (!filter) return nullptr;
  const auto* fused = dynamic_cast<const FusedStage*>(input.get());
  if (fused && fused->runs_as()) return nullptr;
  return std::make_shared<const FilterMapDataset>(*filter, map, function, draws);
}

}  // namespace tandem::data
