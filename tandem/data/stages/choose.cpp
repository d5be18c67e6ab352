#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/sources/draws.h"
#include "tandem/data/sources/seed_sequence.h"

namespace tandem::data {
namespace {

class ChooseIterator final : public IteratorBase {
 public:
  ChooseIterator(std::unique_ptr<IteratorBase> choices,
                 std::vector<std::unique_ptr<IteratorBase>> inputs,
                 const std::vector<DatasetRef>& datasets, bool stop_on_empty,
                 IterationContext context)
      : choices_(std::move(choices)),
        inputs_(std::move(inputs)),
        datasets_(datasets),
        left_(inputs_.size()),
        stop_on_empty_(stop_on_empty),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    while (!ended_) {
      context_.check();
      if (left_ == 0 || !choices_->next(choice_)) return end();
      const std::size_t at = chosen();
      if (!inputs_[at]) continue;
      last_ = at;
      if (inputs_[at]->next(out)) return true;
      inputs_[at] = nullptr;
      --left_;
      if (stop_on_empty_) return end();
    }
    return false;
  }

  Origin origin() const override { return inputs_[last_] ? inputs_[last_]->origin() : Origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("DirectedInterleave");
    state.value(ended_);
    state.value(number_);
    choices_->visit_state(state);
    left_ = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      bool open = inputs_[i] != nullptr;
      state.value(open);
      if (open) {
        inputs_[i]->visit_state(state);
        ++left_;
      } else {
        inputs_[i] = nullptr;
        datasets_[i]->visit_lasting_state(state, context_);
      }
    }
  }

 private:
  bool end() {
    ended_ = true;
    context_.leave_open();
    return false;
  }

  std::size_t chosen() {
    const std::int64_t number = number_++;
    try {
      const std::int64_t at = internal::whole_number(choice_.at(0), "choice_dataset");
      if (at < 0 || at >= static_cast<std::int64_t>(inputs_.size())) {
        throw InvalidArgumentError(
            cat("Selector index out of range: ", at, " >= ", inputs_.size(), "."));
      }
      return static_cast<std::size_t>(at);
    } catch (...) {
      throw_stage_error("choose_from_datasets", number);
    }
  }

  std::unique_ptr<IteratorBase> choices_;
  std::vector<std::unique_ptr<IteratorBase>> inputs_;  // null: it has ended
  const std::vector<DatasetRef>& datasets_;            // theirs
  std::size_t left_;
  std::size_t last_ = 0;  // that was asked
  const bool stop_on_empty_;
  bool ended_ = false;
  std::int64_t number_ = 0;
  Element choice_;
  IterationContext context_;
};

class ChooseDataset final : public DatasetBase {
 public:
  ChooseDataset(DatasetRef choices, std::vector<DatasetRef> inputs, bool stop_on_empty)
      : choices_(std::move(choices)), inputs_(std::move(inputs)), stop_on_empty_(stop_on_empty) {}
  std::string name() const override { return "DirectedInterleave"; }
  std::vector<const DatasetBase*> inputs() const override {
    std::vector<const DatasetBase*> all{choices_.get()};
    for (const DatasetRef& input : inputs_) all.push_back(input.get());
    return all;
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    auto choices = choices_->iterator(context);
    std::vector<std::unique_ptr<IteratorBase>> iterators;
    for (const DatasetRef& input : inputs_) iterators.push_back(input->iterator(context));
    return std::make_unique<ChooseIterator>(std::move(choices), std::move(iterators), inputs_,
                                            stop_on_empty_, context);
  }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      ElementSpec spec = inputs_.front()->element_spec();
      for (const DatasetRef& input : inputs_) {
        const ElementSpec& other = input->element_spec();
        for (std::size_t i = 0; i < std::min(spec.size(), other.size()); ++i) {
          spec[i].shape = spec[i].shape.relax(other[i].shape);
        }
      }
      return spec;
    });
  }
  const Names& names() const override { return inputs_.front()->names(); }
  int num_components() const override { return inputs_.front()->num_components(); }
  std::int64_t cardinality() const override {
    // What the choices take of each input is known only by iterating.
    const bool none = std::all_of(inputs_.begin(), inputs_.end(),
                                  [](const DatasetRef& d) { return d->cardinality() == 0; });
    return none || choices_->cardinality() == 0 ? 0 : kUnknown;
  }

 private:
  const DatasetRef choices_;
  const std::vector<DatasetRef> inputs_;
  const bool stop_on_empty_;
  LazySpec spec_;
};

// Numbers drawn with given weights, without end.
class DrawIterator final : public IteratorBase {
 public:
  DrawIterator(const std::vector<double>& sums, std::shared_ptr<SeedSequence> seeds, Philox random,
               IterationContext context)
      : sums_(sums), seeds_(std::move(seeds)), random_(random), context_(std::move(context)) {}
  bool next(Element& out) override {
    const std::uint64_t low = random_(), high = random_();
    const double draw = std::ldexp(static_cast<double>((high << 32 | low) >> 11), -53);
    const auto at = std::upper_bound(sums_.begin(), sums_.end(), draw * sums_.back());
    out.clear();
    out.emplace_back(std::min<std::int64_t>(at - sums_.begin(), last()));
    return true;
  }
  void visit_state(StateArchive& state) override {
    state.stage("Draw");
    context_.visit_state(state, seeds_);
    random_.visit_state(state);
  }

 private:
  std::int64_t last() const { return static_cast<std::int64_t>(sums_.size()) - 1; }
  const std::vector<double>& sums_;
  const std::shared_ptr<SeedSequence> seeds_;
  Philox random_;
  IterationContext context_;
};

class DrawDataset final : public DatasetBase {
 public:
  DrawDataset(std::vector<double> sums, std::shared_ptr<SeedSequence> seeds, bool rerandomize)
      : sums_(std::move(sums)), seeds_(std::move(seeds)), rerandomize_(rerandomize) {}
  std::string name() const override { return "Draw"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    const Philox random =
        rerandomize_ ? seeds_->generator(context.next_pass(seeds_)) : seeds_->fixed();
    return std::make_unique<DrawIterator>(sums_, seeds_, random, context);
  }
  const ElementSpec& element_spec() const override { return spec_; }
  std::int64_t cardinality() const override { return kInfinite; }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    DatasetBase::visit_lasting_state(state, context);
    context.visit_state(state, seeds_);
  }

 private:
  const std::vector<double> sums_;
  const std::shared_ptr<SeedSequence> seeds_;
  const bool rerandomize_;
  const ElementSpec spec_{{DType::kInt64, PartialShape::scalar()}};
};

void check_alike(const std::vector<DatasetRef>& inputs) {
  const auto alike = [](const ElementSpec& a, const ElementSpec& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const TensorSpec& x, const TensorSpec& y) { return x.dtype == y.dtype; });
  };
  for (const DatasetRef& input : inputs) {
    if (input->num_components() < 0 || inputs.front()->num_components() < 0) return;
    if (!alike(input->element_spec(), inputs.front()->element_spec())) {
      throw InvalidArgumentError(cat(
          "Incompatible dataset elements: ", to_string(inputs.front()->element_spec()), " vs. ",
          to_string(input->element_spec()), ". Their components must agree in number and dtypes."));
    }
  }
}

}  // namespace

Dataset choose_from_datasets(std::vector<Dataset> datasets, const Dataset& choices,
                             bool stop_on_empty_dataset) {
  if (datasets.empty()) {
    throw InvalidArgumentError("Invalid `datasets`. `datasets` should not be empty.");
  }
  std::vector<DatasetRef> inputs;
  for (const Dataset& dataset : datasets) inputs.push_back(base_of(dataset));
  check_alike(inputs);
  if (base_of(choices)->num_components() >= 0) {
    const ElementSpec& spec = choices.element_spec();
    if (spec.size() != 1 || spec[0].dtype != DType::kInt64 || spec[0].shape.rank() > 0) {
      throw InvalidArgumentError(
          cat("Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `int64` "
              "tensors but are ",
              to_string(spec), "."));
    }
  }
  return make_dataset<ChooseDataset>(choices.base(), std::move(inputs), stop_on_empty_dataset);
}

Dataset sample_from_datasets(std::vector<Dataset> datasets, SampleOptions options) {
  if (datasets.empty()) {
    throw InvalidArgumentError("Invalid `datasets`. `datasets` should not be empty.");
  }
  std::vector<double> weights = std::move(options.weights);
  if (weights.empty()) weights.assign(datasets.size(), 1.0);
  if (weights.size() != datasets.size()) {
    throw InvalidArgumentError(
        cat("Invalid `weights`. The number of weights must be the number of "
            "datasets, ",
            datasets.size(), ", but is ", weights.size(), "."));
  }
  std::vector<Dataset> used;
  std::vector<double> sums;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i])) {
      throw InvalidArgumentError(
          cat("Invalid `weights`. Weights must be finite and not negative, got ", weights[i], "."));
    }
    if (weights[i] == 0) continue;
    used.push_back(datasets[i]);
    sums.push_back(sum += weights[i]);
  }
  if (used.empty()) {
    throw InvalidArgumentError("Invalid `weights`. At least one weight must be above zero.");
  }
  if (used.size() == 1) return used.front();
  const auto [seed, seed2] = stage_seeds(options.seed);
  const Dataset draws =
      make_dataset<DrawDataset>(std::move(sums), std::make_shared<SeedSequence>(seed, seed2),
                                options.rerandomize_each_iteration);
  return choose_from_datasets(std::move(used), draws, options.stop_on_empty_dataset);
}

}  // namespace tandem::data
