#include "tandem/data/dataset.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "tandem/core/never_destroyed.h"
#include "tandem/data/dataset_base.h"
#include "tandem/data/fusion/row_stage.h"

namespace tandem::data {

IteratorBase::~IteratorBase() = default;
Origin IteratorBase::origin() const { return {}; }

std::size_t IteratorBase::next_rows(std::span<std::int64_t>) {
  throw InternalError("next_rows was called on an iterator without rows");
}
void IteratorBase::visit_state(StateArchive&) {
  throw UnimplementedError(
      "A stage of this pipeline cannot be saved: its iterator does not override visit_state.");
}
DatasetBase::~DatasetBase() = default;
void DatasetBase::visit_lasting_state(StateArchive& state, const IterationContext& context) const {
  state.stage(cat(name(), ", ended"));
  for (const DatasetBase* input : inputs()) input->visit_lasting_state(state, context);
}
const Names& DatasetBase::names() const {
  static const NeverDestroyed<Names> none;
  return *none;
}
bool DatasetBase::reads_files() const {
  const auto all = inputs();
  return !all.empty() && std::all_of(all.begin(), all.end(),
                                     [](const DatasetBase* input) { return input->reads_files(); });
}
bool DatasetBase::can_shard_sources() const {
  const auto all = inputs();
  return !all.empty() && std::all_of(all.begin(), all.end(), [](const DatasetBase* input) {
    return input->can_shard_sources();
  });
}

Dataset::Dataset(std::shared_ptr<const DatasetBase> base) : base_(std::move(base)) {
  if (!base_) return;
  constexpr int kMaxStages = 2'000;
  int depth = 0;
  for (const DatasetBase* input : base_->inputs()) {
    if (input) depth = std::max(depth, input->depth_.load(std::memory_order_relaxed));
  }
  if (depth >= kMaxStages) {
    throw InvalidArgumentError(cat(
        "A pipeline can have ", kMaxStages, " nested stages, and this ", base_->name(),
        " would be one more. To join many datasets, make them in the function of an interleave or "
        "flat_map."));
  }
  base_->depth_.store(depth + 1, std::memory_order_relaxed);
}

std::int64_t Dataset::cardinality() const { return base_of(*this)->cardinality(); }
const ElementSpec& Dataset::element_spec() const { return base_of(*this)->element_spec(); }

Dataset::ElementIterator::ElementIterator(Iterator iterator)
    : current_(std::make_shared<Current>(Current{std::move(iterator), {}})) {
  ++*this;
}

Dataset::ElementIterator& Dataset::ElementIterator::operator++() {
  if (!current_->iterator.next(current_->element)) current_ = nullptr;
  return *this;
}

Dataset::ElementIterator Dataset::begin() const { return ElementIterator(iterator()); }
Dataset::ElementIterator Dataset::end() const { return {}; }

std::ostream& operator<<(std::ostream& out, const TensorSpec& spec) {
  if (spec.dtype == DType::kInvalid) {
    out << '?';
  } else {
    out << spec.dtype;
  }
  return out << spec.shape;
}

std::ostream& operator<<(std::ostream& out, const ElementSpec& spec) {
  return out << to_string(spec);
}

std::ostream& operator<<(std::ostream& out, const Dataset& dataset) {
  if (!dataset.defined()) return out << "<no dataset>";
  const DatasetBase* stage = dataset.base().get();
  while (stage->name() == "Named") stage = stage->inputs()[0];  // only gives names to another's
  out << '<' << stage->name() << " element_spec=";
  try {
    const ElementSpec& spec = dataset.element_spec();
    const Names& names = dataset.names();
    if (names.empty()) return out << spec << '>';
    for (std::size_t i = 0; i < spec.size(); ++i) {
      out << (i == 0 ? "{" : ", ") << names[i] << ": " << spec[i];
    }
    return out << "}>";
  } catch (const Error&) {  // only iterating would show
    return out << "unknown>";
  }
}

std::string to_string(const ElementSpec& spec) {
  std::ostringstream out;
  out << '(';
  for (std::size_t i = 0; i < spec.size(); ++i) {
    out << (i == 0 ? "" : ", ");
    out << spec[i];
  }
  out << ')';
  return std::move(out).str();
}

namespace internal {

void throw_no_component(std::size_t index, std::size_t size) {
  throw OutOfRangeError(cat("There is no component ", static_cast<std::int64_t>(index),
                            " in an element of ", size, size == 1 ? " component" : " components",
                            "; they are counted from 0."));
}

void throw_arity(std::size_t wanted, std::size_t given) {
  throw InvalidArgumentError(cat("A function on elements takes ", wanted,
                                 wanted == 1 ? " tensor" : " tensors", ", but the elements have ",
                                 given, given == 1 ? " component." : " components.",
                                 " Give it one parameter for each component, or one "
                                 "`const td::data::Element&`."));
}

void throw_undefined(std::size_t component) {
  throw InvalidArgumentError(
      cat("The function returned an undefined tensor (component ", component, ")."));
}

void throw_tuple_size(std::size_t wanted, std::size_t given) {
  throw InvalidArgumentError(cat("tuples<", wanted, ">() was asked for, but the elements have ",
                                 given, given == 1 ? " component" : " components", ": use tuples<",
                                 given, ">()."));
}

bool truth(const Tensor& result) {
  if (result.dtype() != DType::kBool || result.rank() != 0) {
    throw InvalidArgumentError(
        cat("Invalid `predicate`. `predicate` must return a bool scalar tensor, but its result is ",
            result.dtype(), result.partial_shape(), "."));
  }
  return result.item<bool>();
}

}  // namespace internal
Dataset Dataset::from_tensor_slices(std::vector<Tensor> components) {
  return data::from_tensor_slices(std::move(components));
}
Dataset Dataset::from_tensor_slices(Tensor tensor) {
  return data::from_tensor_slices(std::move(tensor));
}
Dataset Dataset::from_tensor_slices(std::initializer_list<TensorMap::value_type> components) {
  return data::from_tensor_slices(components);
}
Dataset Dataset::from_tensors(std::vector<Tensor> components) {
  return data::from_tensors(std::move(components));
}
Dataset Dataset::from_tensors(Tensor tensor) { return data::from_tensors(std::move(tensor)); }
Dataset Dataset::from_tensors(std::initializer_list<TensorMap::value_type> components) {
  return data::from_tensors(components);
}
Dataset Dataset::range(std::int64_t stop) { return data::range(stop); }
Dataset Dataset::range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  return data::range(start, stop, step);
}
Dataset Dataset::from_generator(std::function<Generator()> make, ElementSpec spec) {
  return data::from_generator(std::move(make), std::move(spec));
}
Dataset Dataset::list_files(FileNames patterns, ListFilesOptions options) {
  return data::list_files(std::move(patterns), std::move(options));
}
Dataset Dataset::choose_from_datasets(std::vector<Dataset> datasets, const Dataset& choices,
                                      bool stop_on_empty_dataset) {
  return data::choose_from_datasets(std::move(datasets), choices, stop_on_empty_dataset);
}
Dataset Dataset::sample_from_datasets(std::vector<Dataset> datasets, SampleOptions options) {
  return data::sample_from_datasets(std::move(datasets), std::move(options));
}
Dataset Dataset::zip(std::vector<Dataset> datasets) { return data::zip(std::move(datasets)); }
Dataset Dataset::zip(std::initializer_list<std::pair<const std::string, Dataset>> datasets) {
  return data::zip(datasets);
}

}  // namespace tandem::data
