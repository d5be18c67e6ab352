#include <cstdint>
#include <utility>

#include "tandem/data/autotune/host_scope.h"
#include "tandem/data/autotune/trial_context.h"
#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/sources/draws.h"

namespace tandem::data {
namespace {

class ScanIterator final : public UnaryIterator {
 public:
  ScanIterator(std::unique_ptr<IteratorBase> input, const Element& initial, const ScanFn& fn,
               DrawPass draws)
      : UnaryIterator(std::move(input)), state_(initial), fn_(fn), draws_(std::move(draws)) {}

  bool next(Element& out) override {
    if (!input().next(out)) return false;
    const std::int64_t number = number_++;
    try {
      const DrawScope scope(draws_, number);
      Element state = state_;
      fn_.apply(state, out);
      check(state);
      state_ = std::move(state);
    } catch (...) {
      Element names;
      note_names(out, names);
      throw_stage_error("scan", number, origin_text(names, input().origin()));
    }
    return true;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Scan");
    Element carried = state_;
    state.value(carried);
    if (state.restoring()) {
      check(carried);
      state_ = std::move(carried);
    }
    state.value(number_);
    draws_.visit_state(state);
    input().visit_state(state);
  }

 private:
  void check(const Element& state) const {
    if (state.size() != state_.size()) {
      throw InvalidArgumentError(cat("Invalid `scan_func`. The new state has ", state.size(),
                                     " components, the initial state ", state_.size(), "."));
    }
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (state[i].dtype() == state_[i].dtype()) continue;
      throw InvalidArgumentError(
          cat("Invalid `scan_func`. The element types for the new state must match the initial "
              "state. Expected ",
              state_[i].dtype(), ", got ", state[i].dtype(), " in component ", i, "."));
    }
  }

  Element state_;
  const ScanFn& fn_;
  DrawPass draws_;
  std::int64_t number_ = 0;
};

class ScanDataset final : public UnaryDataset {
 public:
  ScanDataset(DatasetRef input, Element initial, ScanFn fn)
      : UnaryDataset(std::move(input)), initial_(std::move(initial)), fn_(std::move(fn)) {}
  std::string name() const override { return "Scan"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    DrawPass draws(&draws_, context);
    return std::make_unique<ScanIterator>(input().iterator(context), initial_, fn_,
                                          std::move(draws));
  }
  const Names& names() const override { return DatasetBase::names(); }
  int num_components() const override { return -1; }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      const HostScope host;
      const IterationContext context = trial_context();
      ScanIterator first(input().iterator(context), initial_, fn_, DrawPass::trial());
      Element element;
      if (!first.next(element)) {
        throw FailedPreconditionError(
            "The dtypes and shapes of a scan's elements cannot be determined: its input has no "
            "element "
            "to call its function on.");
      }
      ElementSpec spec;
      for (const Tensor& t : element) {
        spec.push_back({t.dtype(), PartialShape::unknown_of_rank(t.rank())});
      }
      return spec;
    });
  }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    UnaryDataset::visit_lasting_state(state, context);
    draws_.visit_state(state, context);
  }

 private:
  const Element initial_;
  const ScanFn fn_;
  const FunctionRng draws_;
  LazySpec spec_;
};

class TakeWhileIterator final : public UnaryIterator {
 public:
  TakeWhileIterator(std::unique_ptr<IteratorBase> input, const ElementPredicate& predicate,
                    DrawPass draws, IterationContext context)
      : UnaryIterator(std::move(input)),
        predicate_(predicate),
        draws_(std::move(draws)),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    if (ended_ || !input().next(out)) return false;
    const std::int64_t number = number_++;
    try {
      const DrawScope scope(draws_, number);
      if (predicate_.test(out)) return true;
    } catch (...) {
      Element names;
      note_names(out, names);
      throw_stage_error("take_while", number, origin_text(names, input().origin()));
    }
    ended_ = true;
    context_.leave_open();
    return false;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("TakeWhile");
    state.value(ended_);
    state.value(number_);
    draws_.visit_state(state);
    input().visit_state(state);
  }

 private:
  const ElementPredicate& predicate_;
  DrawPass draws_;
  bool ended_ = false;
  std::int64_t number_ = 0;
  IterationContext context_;
};

class TakeWhileDataset final : public UnaryDataset {
 public:
  TakeWhileDataset(DatasetRef input, ElementPredicate predicate)
      : UnaryDataset(std::move(input)), predicate_(std::move(predicate)) {}
  std::string name() const override { return "TakeWhile"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    DrawPass draws(&draws_, context);
    return std::make_unique<TakeWhileIterator>(input().iterator(context), predicate_,
                                               std::move(draws), context);
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    UnaryDataset::visit_lasting_state(state, context);
    draws_.visit_state(state, context);
  }

 private:
  const ElementPredicate predicate_;
  const FunctionRng draws_;
};

}  // namespace

Dataset Dataset::scan(Element initial_state, ScanFn fn) const {
  if (initial_state.empty()) throw InvalidArgumentError("scan needs an initial state.");
  return make_dataset<ScanDataset>(base_of(*this), std::move(initial_state), std::move(fn));
}

Dataset Dataset::take_while(ElementPredicate predicate) const {
  const int given = base_of(*this)->num_components(), arity = predicate.arity();
  if (arity >= 0 && given >= 0 && arity != given) {
    internal::throw_arity(static_cast<std::size_t>(arity), static_cast<std::size_t>(given));
  }
  return make_dataset<TakeWhileDataset>(base_, std::move(predicate));
}

}  // namespace tandem::data
