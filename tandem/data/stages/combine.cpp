#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/stages/dataset_op.h"

namespace tandem::data {
namespace {

class ZipIterator final : public IteratorBase {
 public:
  ZipIterator(std::vector<std::unique_ptr<IteratorBase>> inputs, IterationContext context)
      : inputs_(std::move(inputs)), context_(std::move(context)) {}

  bool next(Element& out) override {
    if (ended_) return false;
    out.clear();
    for (const auto& input : inputs_) {
      if (!input->next(part_)) {
        ended_ = true;
        context_.leave_open();
        return false;
      }
      for (Tensor& tensor : part_) out.push_back(std::move(tensor));
    }
    return true;
  }

  Origin origin() const override {
    Origin all;
    for (const auto& input : inputs_) all = nested(std::move(all), input->origin());
    return all;
  }

  void visit_state(StateArchive& state) override {
    state.stage("Zip");
    state.value(ended_);
    for (const auto& input : inputs_) input->visit_state(state);
  }

 private:
  std::vector<std::unique_ptr<IteratorBase>> inputs_;
  Element part_;
  bool ended_ = false;
  IterationContext context_;
};

class ZipDataset final : public DatasetBase {
 public:
  explicit ZipDataset(std::vector<DatasetRef> inputs) : inputs_(std::move(inputs)) {}
  std::string name() const override { return "Zip"; }
  Tensor as_op() const override {
    std::vector<Tensor> datasets;
    for (const DatasetRef& input : inputs_) datasets.push_back(input->as_op());
    return dataset_op("ZipDataset", datasets, element_spec());
  }

  std::vector<const DatasetBase*> inputs() const override {
    std::vector<const DatasetBase*> all;
    for (const DatasetRef& input : inputs_) all.push_back(input.get());
    return all;
  }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    std::vector<std::unique_ptr<IteratorBase>> iterators;
    for (const DatasetRef& input : inputs_) iterators.push_back(input->iterator(context));
    return std::make_unique<ZipIterator>(std::move(iterators), context);
  }

  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      ElementSpec all;
      for (const DatasetRef& input : inputs_) {
        const ElementSpec& spec = input->element_spec();
        all.insert(all.end(), spec.begin(), spec.end());
      }
      return all;
    });
  }

  const Names& names() const override {
    return names_.get([this] { return zipped_names(inputs_); });
  }

  int num_components() const override {
    int sum = 0;
    for (const DatasetRef& input : inputs_) {
      const int n = input->num_components();
      if (n < 0) return -1;
      sum += n;
    }
    return sum;
  }

  std::int64_t cardinality() const override {
    std::int64_t shortest = kInfinite;
    for (const DatasetRef& input : inputs_) {
      const std::int64_t n = input->cardinality();
      if (n == kUnknown) return kUnknown;
      if (n != kInfinite) shortest = shortest == kInfinite ? n : std::min(shortest, n);
    }
    return shortest;
  }

 private:
  const std::vector<DatasetRef> inputs_;
  LazySpec spec_;
  Lazy<Names> names_;
};

bool alike(const ElementSpec& a, const ElementSpec& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TensorSpec& x, const TensorSpec& y) { return x.dtype == y.dtype; });
}

[[noreturn]] void throw_unlike(const ElementSpec& first, const ElementSpec& second) {
  throw InvalidArgumentError(cat("Incompatible dataset elements: ", first, " vs. ", second,
                                 ". Their components must agree in number and dtypes."));
}

// Throws InvalidArgumentError if the element, of the second dataset, is unlike the first's; what
// the first's are like may not be known.
void check_alike(const DatasetBase& first, const Element& element) {
  ElementSpec found;
  for (const Tensor& tensor : element) found.push_back({tensor.dtype(), tensor.partial_shape()});
  ElementSpec wanted;
  try {
    wanted = first.element_spec();
  } catch (const Error&) {
    return;  // it has no elements to call a function on
  }
  if (!alike(wanted, found)) throw_unlike(wanted, found);
}

class ConcatenateIterator final : public IteratorBase {
 public:
  ConcatenateIterator(std::unique_ptr<IteratorBase> first, std::unique_ptr<IteratorBase> second,
                      const DatasetBase& dataset, bool unsure, IterationContext context)
      : first_(std::move(first)),
        second_(std::move(second)),
        dataset_(dataset),
        unsure_(unsure),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    if (first_) {
      if (first_->next(out)) return true;
      first_ = nullptr;
    }
    if (!second_->next(out)) return false;
    if (unsure_) {
      try {
        unsure_ = false;
        check_alike(dataset_, out);
      } catch (...) {
        throw_stage_error("concatenate, the second dataset", 0);
      }
    }
    return true;
  }

  Origin origin() const override { return (first_ ? first_ : second_)->origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Concatenate");
    bool in_second = !first_;
    state.value(in_second);
    if (in_second) {
      first_ = nullptr;
      dataset_.visit_lasting_state(state, context_);
    } else {
      first_->visit_state(state);
    }
    second_->visit_state(state);
  }

 private:
  std::unique_ptr<IteratorBase> first_;  // null: it has ended
  std::unique_ptr<IteratorBase> second_;
  const DatasetBase& dataset_;  // the first one
  bool unsure_;                 // the elements are still to be compared
  IterationContext context_;
};

class ConcatenateDataset final : public DatasetBase {
 public:
  ConcatenateDataset(DatasetRef first, DatasetRef second)
      : first_(std::move(first)), second_(std::move(second)) {}
  std::string name() const override { return "Concatenate"; }
  Tensor as_op() const override {
    return dataset_op("ConcatenateDataset", {first_->as_op(), second_->as_op()}, element_spec());
  }
  std::vector<const DatasetBase*> inputs() const override { return {first_.get(), second_.get()}; }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    auto first = first_->iterator(context);
    const bool unsure = first_->num_components() < 0 || second_->num_components() < 0;
    return std::make_unique<ConcatenateIterator>(std::move(first), second_->iterator(context),
                                                 *first_, unsure, context);
  }

  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      ElementSpec spec = first_->element_spec();
      const ElementSpec& other = second_->element_spec();
      if (!alike(spec, other)) throw_unlike(spec, other);
      for (std::size_t i = 0; i < std::min(spec.size(), other.size()); ++i) {
        spec[i].shape = spec[i].shape.relax(other[i].shape);
      }
      return spec;
    });
  }
  const Names& names() const override { return first_->names(); }
  int num_components() const override {
    return std::min(first_->num_components(), second_->num_components());
  }

  std::int64_t cardinality() const override {
    const std::int64_t a = first_->cardinality(), b = second_->cardinality();
    if (a == kInfinite || b == kInfinite) return kInfinite;
    return a == kUnknown || b == kUnknown ? kUnknown : a + b;
  }

 private:
  const DatasetRef first_;
  const DatasetRef second_;
  LazySpec spec_;
};

class EnumerateIterator final : public UnaryIterator {
 public:
  EnumerateIterator(std::unique_ptr<IteratorBase> input, std::int64_t start)
      : UnaryIterator(std::move(input)), number_(start) {}

  bool next(Element& out) override {
    if (!input().next(out)) return false;
    out.insert(out.begin(), Tensor(number_++));
    return true;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Enumerate");
    state.value(number_);
    input().visit_state(state);
  }

 private:
  std::int64_t number_;
};

class EnumerateDataset final : public UnaryDataset {
 public:
  EnumerateDataset(DatasetRef input, std::int64_t start)
      : UnaryDataset(std::move(input)), start_(start) {}
  std::string name() const override { return "Enumerate"; }
  Tensor as_op() const override {
    const ElementSpec number{{DType::kInt64, PartialShape::scalar()}};
    const Tensor numbers = dataset_op(
        "RangeDataset", {Tensor(start_), Tensor(INT64_MAX), Tensor(std::int64_t{1})}, number);
    return dataset_op("ZipDataset", {numbers, input().as_op()}, element_spec());
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<EnumerateIterator>(input().iterator(context), start_);
  }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      ElementSpec spec = input().element_spec();
      spec.insert(spec.begin(), {DType::kInt64, PartialShape::scalar()});
      return spec;
    });
  }
  const Names& names() const override {
    return names_.get([this] {
      Names all;
      for (const std::string& name : input().names()) all.push_back("1/" + name);
      if (!all.empty()) all.insert(all.begin(), "0");
      return all;
    });
  }
  int num_components() const override {
    const int n = input().num_components();
    return n < 0 ? n : n + 1;
  }

 private:
  const std::int64_t start_;
  LazySpec spec_;
  Lazy<Names> names_;
};

}  // namespace

Dataset zip(std::vector<Dataset> datasets) {
  if (datasets.empty()) throw InvalidArgumentError("zip needs at least one dataset.");
  std::vector<DatasetRef> inputs;
  for (const Dataset& dataset : datasets) inputs.push_back(base_of(dataset));
  return make_dataset<ZipDataset>(std::move(inputs));
}

Dataset Dataset::concatenate(const Dataset& other) const {
  const DatasetRef &first = base_of(*this), &second = base_of(other);
  // Specs that only iterating would show are compared where the elements are joined.
  if (first->num_components() >= 0 && second->num_components() >= 0 &&
      !alike(first->element_spec(), second->element_spec())) {
    throw_unlike(first->element_spec(), second->element_spec());
  }
  return make_dataset<ConcatenateDataset>(first, second);
}

Dataset Dataset::enumerate(std::int64_t start) const {
  return make_dataset<EnumerateDataset>(base_of(*this), start);
}

}  // namespace tandem::data
