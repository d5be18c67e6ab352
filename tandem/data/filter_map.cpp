#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tandem/data/internal/fuse.h"
#include "tandem/data/internal/row_stage.h"
#include "tandem/data/internal/stage_error.h"

namespace tandem::data {
namespace {

class FilterMapIterator final : public UnaryIterator {
 public:
  FilterMapIterator(std::unique_ptr<IteratorBase> input, const Condition& condition,
                    const ElementFn& fn, IterationContext context)
      : UnaryIterator(std::move(input)),
        condition_(condition),
        fn_(fn),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    while (input().next(out)) {
      context_.check();
      if (!passes(out)) continue;
      const std::int64_t number = mapped_++;
      try {
        fn_.apply(out);
      } catch (...) {
        throw_stage_error("map", number);
      }
      return true;
    }
    return false;
  }

  void visit_state(StateArchive& state) override {
    state.stage("Filter+Map");
    state.value(tested_);
    state.value(mapped_);
    input().visit_state(state);
  }

 private:
  bool passes(const Element& element) {
    const std::int64_t number = tested_++;
    try {
      return condition_.test(element);
    } catch (...) {
      throw_stage_error("filter", number);
    }
  }

  const Condition& condition_;
  const ElementFn& fn_;
  std::int64_t tested_ = 0;
  std::int64_t mapped_ = 0;
  IterationContext context_;
};

class FilterMapDataset final : public UnaryDataset {
 public:
  FilterMapDataset(const FilterStage& filter, const DatasetBase& map, const ElementFn& fn)
      : UnaryDataset(filter.filtered()), filter_(filter), map_(map), fn_(fn) {}

  std::string name() const override { return "Filter+" + map_.name(); }
  const ElementSpec& element_spec() const override { return map_.element_spec(); }
  const Names& names() const override { return map_.names(); }
  int num_components() const override { return map_.num_components(); }
  std::int64_t cardinality() const override { return map_.cardinality(); }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    filter_.condition().program();
    return std::make_unique<FilterMapIterator>(input().iterator(context), filter_.condition(), fn_,
                                               context);
  }

 private:
  const FilterStage& filter_;  // kept by the map
  const DatasetBase& map_;     // keeps this
  const ElementFn& fn_;        // the map's
};

}  // namespace

DatasetRef fuse_filter_and_map(const DatasetRef& input, const DatasetBase& map,
                               const ElementFn& function) {
  const auto* filter = dynamic_cast<const FilterStage*>(input.get());
  if (!filter) return nullptr;
  const auto* fused = dynamic_cast<const FusedStage*>(input.get());
  if (fused && fused->runs_as()) return nullptr;
  return std::make_shared<const FilterMapDataset>(*filter, map, function);
}

}  // namespace tandem::data
