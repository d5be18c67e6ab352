#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/internal/element_program.h"
#include "tandem/data/internal/row_stage.h"
#include "tandem/data/internal/stage_error.h"

namespace tandem::data {
namespace {

class FilterIterator final : public RowStage {
 public:
  FilterIterator(std::unique_ptr<IteratorBase> input, const ElementPredicate& predicate,
                 const ElementProgram* program, IterationContext context)
      : RowStage(std::move(input)),
        predicate_(predicate),
        program_(program),
        context_(std::move(context)) {}

  std::size_t next_rows(std::span<std::int64_t> out) override {
    std::size_t given = std::min(kept_.size(), out.size());
    std::copy_n(kept_.begin(), given, out.begin());
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(given));
    std::int64_t row = 0;
    try {
      while (given < out.size() && input().next_rows({&row, 1}) == 1) {
        rows()->element(row, element_);
        if (passes(element_)) out[given++] = row;
      }
    } catch (...) {
      kept_.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(given));
      throw;
    }
    element_.clear();
    return given;
  }

  void visit_state(StateArchive& state) override {
    state.stage("Filter");
    state.value(number_);
    state.value(kept_);
    for (const std::int64_t row : kept_) require_row(row);
    input().visit_state(state);
  }

 protected:
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
      if (!program_ || !program_->worth_running(element)) return predicate_.test(element);
      Element args = element;
      return *program_->run(args).front().data<bool>();
    } catch (...) {
      throw_stage_error("filter", number);
    }
  }

  const ElementPredicate& predicate_;
  const ElementProgram* program_;   // of the predicate, or null
  std::vector<std::int64_t> kept_;  // rows that a failed call had found already
  Element element_;
  std::int64_t number_ = 0;
  IterationContext context_;
};

class FilterDataset final : public UnaryDataset {
 public:
  FilterDataset(DatasetRef input, ElementPredicate predicate)
      : UnaryDataset(std::move(input)), predicate_(std::move(predicate)) {}
  std::string name() const override { return "Filter"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    std::call_once(tracing_, [this] { program_ = trace(); });
    return std::make_unique<FilterIterator>(input().iterator(context), predicate_, program_.get(),
                                            context);
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }

 private:
  // Few ops are called as fast as a plan of them runs.
  static constexpr int kWorthwhile = 3;

  std::shared_ptr<const ElementProgram> trace() const {
    if (!predicate_.function()) return nullptr;
    auto program = trace_map(*predicate_.function(), input(), std::nullopt);
    if (!program) return nullptr;
    const ElementSpec condition{{DType::kBool, PartialShape::scalar()}};
    int ops = 0;
    for (const Node* node : program->function().graph().topological_order()) {
      ops += node->kind() != NodeKind::kArg && node->kind() != NodeKind::kConst ? 1 : 0;
    }
    return program->spec() == condition && ops >= kWorthwhile ? program : nullptr;
  }

  const ElementPredicate predicate_;
  mutable std::once_flag tracing_;
  mutable std::shared_ptr<const ElementProgram> program_;  // null: the predicate is called
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
