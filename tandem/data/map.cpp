#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/internal/parallel_map.h"
#include "tandem/data/internal/row_stage.h"
#include "tandem/data/internal/stage_error.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::data {
namespace {

class MapIterator final : public UnaryIterator {
 public:
  MapIterator(std::unique_ptr<IteratorBase> input, const ElementFn& fn)
      : UnaryIterator(std::move(input)), fn_(fn) {}

  bool next(Element& out) override {
    if (!input().next(out)) return false;
    const std::int64_t number = number_++;
    try {
      fn_.apply(out);
    } catch (...) {
      throw_stage_error("map", number);
    }
    return true;
  }

  void visit_state(StateArchive& state) override {
    state.stage("Map");
    state.value(number_);
    input().visit_state(state);
  }

 private:
  const ElementFn& fn_;
  std::int64_t number_ = 0;
};

bool traceable(const ElementSpec& spec) {
  for (const TensorSpec& s : spec) {
    if (s.dtype == DType::kInvalid) return false;
  }
  return true;
}

// What tracing the function says of its results; throws what the function throws.
ElementSpec traced_spec(const ElementFn& fn, const ElementSpec& input) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const TensorSpec& s : input) {
    dtypes.push_back(s.dtype);
    shapes.push_back(s.shape);
  }
  ElementSpec spec;
  trace_function("map", dtypes, shapes, [&](std::span<const Tensor> args) {
    Element element(args.begin(), args.end());
    fn.apply(element);
    for (const Tensor& t : element) spec.push_back({t.dtype(), t.partial_shape()});
    return element;
  });
  return spec;
}

class MapDataset final : public UnaryDataset {
 public:
  MapDataset(DatasetRef input, ElementFn fn, MapOptions options)
      : UnaryDataset(std::move(input)), fn_(std::move(fn)), options_(options) {}

  std::string name() const override {
    return options_.num_parallel_calls == 0 ? "Map" : "ParallelMap";
  }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    const std::int64_t calls = context.threads(options_.num_parallel_calls);
    if (calls == 0) return std::make_unique<MapIterator>(input().iterator(context), fn_);
    const bool ordered =
        options_.deterministic.value_or(context.options().deterministic.value_or(true));
    return make_parallel_map(input(), fn_, calls, ordered, context);
  }

  const Names& names() const override { return DatasetBase::names(); }
  int num_components() const override { return -1; }

  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      const ElementSpec& from = input().element_spec();
      if (traceable(from)) {
        try {
          return traced_spec(fn_, from);
        } catch (const std::exception&) {
          // The function reads values, say. Then an element tells.
        }
      }
      return first_element_spec();
    });
  }

 private:
  ElementSpec first_element_spec() const {
    const IterationContext context;
    MapIterator first(input().iterator(context), fn_);
    Element element;
    if (!first.next(element)) {
      throw FailedPreconditionError(
          "The dtypes and shapes of a map's elements cannot be told: its function cannot be "
          "traced, "
          "and its input has no element to call it on.");
    }
    ElementSpec spec;
    for (const Tensor& t : element) {
      spec.push_back({t.dtype(), PartialShape::unknown_of_rank(t.rank())});
    }
    return spec;
  }

  const ElementFn fn_;
  const MapOptions options_;
  LazySpec spec_;
};

class FilterIterator final : public RowStage {
 public:
  FilterIterator(std::unique_ptr<IteratorBase> input, const ElementPredicate& predicate,
                 IterationContext context)
      : RowStage(std::move(input)), predicate_(predicate), context_(std::move(context)) {}

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
      return predicate_.test(element);
    } catch (...) {
      throw_stage_error("filter", number);
    }
  }

  const ElementPredicate& predicate_;
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
    return std::make_unique<FilterIterator>(input().iterator(context), predicate_, context);
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }

 private:
  const ElementPredicate predicate_;
};

void check_arity(const DatasetBase& input, int arity) {
  const int given = input.num_components();
  if (arity >= 0 && given >= 0 && arity != given) {
    internal::throw_arity(static_cast<std::size_t>(arity), static_cast<std::size_t>(given));
  }
}

}  // namespace

Dataset Dataset::map(ElementFn fn, MapOptions options) const {
  if (options.num_parallel_calls < kAutotune) {
    throw InvalidArgumentError(
        cat("num_parallel_calls must be greater than zero, or kAutotune, or 0 to call the function "
            "where its elements are consumed; got ",
            options.num_parallel_calls, "."));
  }
  check_arity(*base_of(*this), fn.arity());
  return make_dataset<MapDataset>(base_, std::move(fn), options);
}

Dataset Dataset::filter(ElementPredicate predicate) const {
  check_arity(*base_of(*this), predicate.arity());
  return make_dataset<FilterDataset>(base_, std::move(predicate));
}

}  // namespace tandem::data
