#include "tandem/data/stages/nested_source.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/autotune/host_scope.h"
#include "tandem/data/autotune/trial_context.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"

namespace tandem::data {

void NestedSource::open(const Maker& maker, Element element, std::int64_t number) {
  close();
  try {
    DatasetRef dataset;
    {
      const DrawScope drawing(maker.draws, number);
      dataset = maker.fn(element);
    }
    if (!dataset) throw InvalidArgumentError("The function returned an undefined dataset.");
    iterator_ = dataset->iterator(maker.context.whole());
    dataset_ = std::move(dataset);
  } catch (...) {
    Element names;
    note_names(element, names);
    throw_stage_error(maker.stage, number, origin_text(names, {}));
  }
  element_ = std::move(element);
  number_ = number;
  stage_ = maker.stage;
}

bool NestedSource::next(Element& out) {
  try {
    return iterator_->next(out);
  } catch (const CancelledError&) {
    throw;
  } catch (...) {
    std::rethrow_exception(
        with_line(std::current_exception(), cat("in ", stage_, ", input element ", number_)));
  }
}

Origin NestedSource::origin() const {
  Origin origin = iterator_ ? iterator_->origin() : Origin();
  if (origin.names) return origin;
  if (!made_of_) {
    Element names;
    note_names(element_, names);
    made_of_ = joined(names, {});
  }
  return *made_of_;
}

void NestedSource::close() {
  made_of_.reset();
  iterator_ = nullptr;
  dataset_ = nullptr;
  element_.clear();
}

void NestedSource::visit_state(StateArchive& state, const Maker& maker) {
  bool is_open = iterator_ != nullptr;
  state.value(is_open);
  if (!is_open) return close();
  Element element = element_;
  std::int64_t number = number_;
  state.value(element);
  state.value(number);
  if (state.restoring()) open(maker, std::move(element), number);
  iterator_->visit_state(state);
}

bool nested_reads_files(const DatasetBase& input, const DatasetFn& fn) {
  const HostScope host;
  const IterationContext context = trial_context();
  const auto first = input.iterator(context);
  Element element;
  if (!first->next(element)) return false;
  const DatasetRef dataset = fn(element);
  return dataset && dataset->reads_files();
}

ElementSpec nested_spec(const DatasetBase& input, const DatasetFn& fn, const char* stage) {
  const HostScope host;
  const IterationContext context = trial_context();
  const auto first = input.iterator(context);
  Element element;
  if (!first->next(element)) {
    throw FailedPreconditionError(cat("The dtypes and shapes of the elements of ", stage,
                                      " cannot be determined: its input has no element to call its "
                                      "function on."));
  }
  const DatasetRef dataset = fn(element);
  if (!dataset) throw InvalidArgumentError("The function returned an undefined dataset.");
  ElementSpec spec = dataset->element_spec();
  // Other elements may give other sizes.
  for (TensorSpec& s : spec) {
    if (s.shape.has_rank()) s.shape = PartialShape::unknown_of_rank(s.shape.rank());
  }
  return spec;
}

}  // namespace tandem::data
