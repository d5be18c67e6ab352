#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/stages/call_list.h"
#include "tandem/data/stages/parallel_map.h"
#include "tandem/device/serial_kernel_scope.h"

namespace tandem::data {
namespace {

// What a map makes of elements and, as their last component, what a condition says of that: a bool
// or, where it threw, code and message of the error. As a component it may wait in a queue, and be
// saved there, until its turn comes.
class Judge {
 public:
  Judge(const MapStage& map, const Condition& condition)
      : map_(by_program(map.function(), map.program())),
        condition_(condition),
        both_(join(*map.program(), *condition.program())),
        cannot_fail_(cannot_fail(*both_)) {}

  // Throws what the map throws.
  void apply(Element& element) const {
    if (both_->worth_running(element)) {
      CallList<Tensor> kept(cannot_fail_ ? 0 : element.size());
      std::copy_n(element.begin(), kept.items().size(), kept.items().begin());
      try {
        return both_->apply(element);
      } catch (...) {
        // Which of the two was it?
        if (cannot_fail_ && element.size() != both_->input_spec().size()) throw;
        if (!cannot_fail_) element.assign(kept.items().begin(), kept.items().end());
      }
    }
    map_.apply(element);
    element.push_back(verdict(element));
  }

  // Takes the last component off.
  static bool take_verdict(Element& element) {
    StateArchive::require(!element.empty(), "an element has no verdict");
    const Array verdict = element.back().array();
    element.pop_back();
    if (verdict.dtype() == DType::kBool && verdict.rank() == 0) return *verdict.data<bool>();
    StateArchive::require(verdict.dtype() == DType::kString && verdict.num_elements() == 2,
                          "an element has no verdict");
    const std::string* error = verdict.data<std::string>();
    const int code = error[0].size() == 1 ? error[0].front() : 0;
    StateArchive::require(code > 0 && code <= static_cast<int>(Code::kUnauthenticated),
                          "an error has no known code");
    throw_error(static_cast<Code>(code), error[1]);
  }

 private:
  static std::shared_ptr<const ElementProgram> join(const ElementProgram& map,
                                                    const ElementProgram& condition) {
    const ElementFn both([&](const Element& args) {
      Element results = emit(map, args);
      Element verdict = emit(condition, results);
      results.push_back(std::move(verdict.front()));
      return results;
    });
    return std::make_shared<const ElementProgram>(both, map.input_spec());
  }

  Tensor verdict(const Element& element) const {
    try {
      return Tensor(condition_.test(element));
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      Array text(DType::kString, Shape{2});
      text.data<std::string>()[0] = std::string(1, static_cast<char>(code_of(error)));
      text.data<std::string>()[1] = message_of(error);
      return Tensor(std::move(text));
    }
  }

  const ElementFn map_;
  const Condition& condition_;
  const std::shared_ptr<const ElementProgram> both_;
  const bool cannot_fail_;
};

class MapFilterIterator final : public UnaryIterator {
 public:
  MapFilterIterator(std::unique_ptr<IteratorBase> judged, IterationContext context)
      : UnaryIterator(std::move(judged)), context_(std::move(context)) {}

  bool next(Element& out) override {
    while (input().next(out)) {
      context_.check();
      const std::int64_t number = number_++;
      try {
        if (Judge::take_verdict(out)) return true;
      } catch (...) {
        throw_stage_error("filter", number, origin_text(input().origin()));
      }
    }
    return false;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Map+Filter");
    state.value(number_);
    input().visit_state(state);
  }

 private:
  std::int64_t number_ = 0;
  IterationContext context_;
};

class MapFilterDataset final : public UnaryDataset {
 public:
  MapFilterDataset(DatasetRef written, const MapStage& map, std::string name,
                   const Condition& condition)
      : UnaryDataset(map.mapped()),
        written_(std::move(written)),
        map_(map),
        name_(std::move(name)),
        judge_(map, condition),
        fn_(map.function().with_implementation(
            [this](Element& element) { judge_.apply(element); })),
        side_by_side_(map.function().with_implementation([this](Element& element) {
          const SerialKernelScope alone;
          judge_.apply(element);
        })) {}

  std::string name() const override { return name_; }
  const ElementSpec& element_spec() const override { return written_->element_spec(); }
  const Names& names() const override { return written_->names(); }
  int num_components() const override { return written_->num_components(); }
  std::int64_t cardinality() const override { return written_->cardinality() == 0 ? 0 : kUnknown; }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<MapFilterIterator>(judged(context), context);
  }

 private:
  std::unique_ptr<IteratorBase> judged(const IterationContext& context) const {
    const MapOptions& options = map_.map_options();
    const std::int64_t calls = context.threads(options.num_parallel_calls);
    if (calls == 0) return make_map(input().iterator(context), fn_);
    const bool ordered =
        options.deterministic.value_or(context.options().deterministic.value_or(true));
    return make_parallel_map(input(), calls == 1 ? fn_ : side_by_side_, calls, ordered, context);
  }

  const DatasetRef written_;  // the map before the filter
  const MapStage& map_;       // kept by it
  const std::string name_;
  const Judge judge_;
  const ElementFn fn_;
  const ElementFn side_by_side_;
};

}  // namespace

DatasetRef fuse_map_and_filter(const DatasetRef& input, const Condition& condition) {
  const auto* written = dynamic_cast<const MapStage*>(input.get());
  if (!written || !written->program() || !condition.program()) return nullptr;
  const MapStage& map = written->composed();
  if (!map.program()->stateless() || !condition.program()->stateless()) return nullptr;
  std::string name = dynamic_cast<const DatasetBase&>(map).name() + "+Filter";
  return std::make_shared<const MapFilterDataset>(input, map, std::move(name), condition);
}

}  // namespace tandem::data
