#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/data/autotune/host_scope.h"
#include "tandem/data/autotune/trial_context.h"
#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/stages/dataset_op.h"
#include "tandem/data/stages/parallel_map.h"
#include "tandem/device/serial_kernel_scope.h"

namespace tandem::data {
namespace {

class MapIterator final : public UnaryIterator {
 public:
  MapIterator(std::unique_ptr<IteratorBase> input, const ElementFn& fn, DrawPass draws)
      : UnaryIterator(std::move(input)), fn_(fn), draws_(std::move(draws)) {}

  bool next(Element& out) override {
    if (!next_counted(input(), out, number_)) return false;
    const std::int64_t number = number_++;
    note_names(out, names_);
    try {
      const DrawScope scope(draws_, number);
      fn_.apply(out);
    } catch (...) {
      throw_stage_error("map", number, origin_text(names_, input().origin()));
    }
    return true;
  }

  Origin origin() const override { return joined(names_, input().origin()); }

  void visit_state(StateArchive& state) override {
    state.stage("Map");
    state.value(number_);
    draws_.visit_state(state);
    input().visit_state(state);
  }

 private:
  const ElementFn& fn_;
  DrawPass draws_;
  Element names_;  // in what the function took last
  std::int64_t number_ = 0;
};

class MapDataset final : public UnaryDataset, public MapStage, public FusedStage {
 public:
  MapDataset(DatasetRef input, ElementFn fn, MapOptions options,
             std::shared_ptr<const ElementProgram> program = nullptr, int maps = 1,
             std::shared_ptr<const FunctionRng> draws = std::make_shared<const FunctionRng>(),
             std::shared_ptr<internal::ResultNames> names = nullptr)
      : UnaryDataset(std::move(input)),
        fn_(std::move(fn)),
        options_(options),
        maps_(maps),
        draws_(std::move(draws)),
        names_(std::move(names)) {
    if (program) std::call_once(tracing_, [&] { trace(std::move(program)); });
  }

  std::string name() const override {
    std::string name = options_.num_parallel_calls == 0 ? "Map" : "ParallelMap";
    for (int i = 1; i < maps_; ++i) name += "+Map";
    return name;
  }
  Tensor as_op() const override {
    const auto traced = trace_for_op(fn_, program(), input(), "map");
    const Tensor from = input().as_op();
    if (options_.num_parallel_calls == 0)
      return dataset_op("MapDataset", from, "f", *traced, {}, traced->spec());
    return dataset_op("ParallelMapDatasetV2", from, "f", *traced,
                      {Tensor(options_.num_parallel_calls)}, traced->spec(),
                      {{"deterministic", deterministic_attr(options_.deterministic)}});
  }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    if (context.options().fusion.value_or(true)) {
      if (const DatasetBase* fused = runs_as()) return fused->iterator(context);
    }
    const Traced& traced = this->traced();
    const std::int64_t calls = context.threads(options_.num_parallel_calls);
    DrawPass pass(draws(), context);
    if (calls == 0) return make_map(input().iterator(context), traced.fn, std::move(pass));
    const bool ordered =
        options_.deterministic.value_or(context.options().deterministic.value_or(true));
    const ElementFn& fn = calls == 1 ? traced.fn : traced.side_by_side;
    return make_parallel_map(input(), fn, calls, ordered, context, std::move(pass));
  }

  const Names& names() const override {
    if (!names_) return DatasetBase::names();
    if (!names_->known()) element_spec();  // calls the function
    return names_->get();
  }
  // Known once the function has been traced, which an iteration does.
  int num_components() const override {
    const ElementProgram* program = known_program_.load(std::memory_order_acquire);
    return program ? static_cast<int>(program->spec().size()) : -1;
  }
  const std::shared_ptr<const ElementProgram>& program() const override { return traced().program; }
  const DatasetRef& mapped() const override { return input_ref(); }
  const ElementFn& function() const override { return fn_; }
  const MapOptions& map_options() const override { return options_; }
  const FunctionRng* draws() const override {
    return program() && !program()->may_draw() ? nullptr : draws_.get();
  }
  const MapStage& composed() const override {
    const MapDataset* both = with_maps_before();
    return both ? *both : *this;
  }
  const DatasetBase* runs_as() const override {
    if (const MapDataset* both = with_maps_before()) return both;
    return with_filter_before();
  }

  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      if (program()) return program()->spec();
      const ElementSpec& from = input().element_spec();
      if (dtypes_known(from)) {
        try {
          return ElementProgram(fn_, from).spec();
        } catch (const std::exception&) {
          // The function reads values, say. Then an element shows it.
        }
      }
      return first_element_spec();
    });
  }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    UnaryDataset::visit_lasting_state(state, context);
    draws_->visit_state(state, context);
  }

 private:
  struct Traced {
    std::shared_ptr<const ElementProgram> program;  // null: the function is called
    ElementFn fn;                                   // by the program
    ElementFn side_by_side;                         // for threads that call it at one time
  };

  void trace(std::shared_ptr<const ElementProgram> program) const {
    const ElementFn fn = by_program(fn_, program);
    known_program_.store(program.get(), std::memory_order_release);
    traced_.emplace(Traced{std::move(program), fn, fn.with_implementation([fn](Element& element) {
                             const SerialKernelScope alone;
                             fn.apply(element);
                           })});
  }

  const Traced& traced() const {
    std::call_once(tracing_, [this] { trace(trace_map(fn_, input(), options_.traced)); });
    return *traced_;
  }

  // Null where there are none that run alike and are traced.
  const MapDataset* with_maps_before() const {
    std::call_once(composing_, [this] {
      const auto* before = dynamic_cast<const MapDataset*>(&input());
      if (!before || !program()) return;
      const auto& first = static_cast<const MapDataset&>(before->composed());
      if (!first.program() || first.options_.num_parallel_calls != options_.num_parallel_calls ||
          first.options_.deterministic != options_.deterministic) {
        return;
      }
      if (first.draws() && draws()) return;  // from passes of their own
      const ElementFn both =
          fn_.with_implementation([one = first.fn_, two = fn_](Element& element) {
            one.apply(element);
            two.apply(element);
          });
      composed_ = std::make_shared<const MapDataset>(
          first.mapped(), both, options_, compose(*first.program(), *program()), first.maps_ + 1,
          first.draws() ? first.draws_ : draws_);
    });
    return composed_.get();
  }

  // Null where there is none. Threads would wait for each other's conditions.
  const DatasetBase* with_filter_before() const {
    if (options_.num_parallel_calls != 0) return nullptr;
    std::call_once(joining_, [this] {
      after_filter_ = fuse_filter_and_map(input_ref(), *this, traced().fn, draws());
    });
    return after_filter_.get();
  }

  ElementSpec first_element_spec() const {
    const HostScope host;
    const IterationContext context = trial_context();
    MapIterator first(input().iterator(context), fn_, DrawPass::trial());
    Element element;
    if (!first.next(element)) {
      throw FailedPreconditionError(
          "The dtypes and shapes of a map's elements cannot be determined: its function cannot be "
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
  const int maps_;  // how many it was written as
  const std::shared_ptr<const FunctionRng> draws_;
  const std::shared_ptr<internal::ResultNames> names_;  // of the results; null: they have none
  mutable std::once_flag composing_;
  mutable std::shared_ptr<const MapDataset> composed_;
  mutable std::once_flag joining_;
  mutable DatasetRef after_filter_;
  mutable std::once_flag tracing_;
  mutable std::optional<Traced> traced_;
  mutable std::atomic<const ElementProgram*> known_program_{nullptr};
  LazySpec spec_;
};

void check_arity(const DatasetBase& input, int arity) {
  const int given = input.num_components();
  if (arity >= 0 && given >= 0 && arity != given) {
    internal::throw_arity(static_cast<std::size_t>(arity), static_cast<std::size_t>(given));
  }
}

}  // namespace

std::unique_ptr<IteratorBase> make_map(std::unique_ptr<IteratorBase> input, const ElementFn& fn,
                                       DrawPass draws) {
  return std::make_unique<MapIterator>(std::move(input), fn, std::move(draws));
}

Dataset map_by(const DatasetRef& input, std::shared_ptr<const ElementProgram> program,
               MapOptions options) {
  const ElementFn fn([program](const Element& element) {
    Element results = element;
    program->apply(results);
    return results;
  });
  return make_dataset<MapDataset>(input, fn, options, program);
}

Dataset Dataset::map(ElementFn fn, MapOptions options) const {
  return map_named(std::move(fn), options, nullptr);
}

Dataset Dataset::map_named(ElementFn fn, MapOptions options,
                           std::shared_ptr<internal::ResultNames> names) const {
  if (options.num_parallel_calls < kAutotune) {
    throw InvalidArgumentError(
        cat("num_parallel_calls must be greater than zero, or kAutotune, or 0 to call the function "
            "where its elements are consumed; got ",
            options.num_parallel_calls, "."));
  }
  check_arity(*base_of(*this), fn.arity());
  return make_dataset<MapDataset>(base_, std::move(fn), options, nullptr, 1,
                                  std::make_shared<const FunctionRng>(), std::move(names));
}

}  // namespace tandem::data
