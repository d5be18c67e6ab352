#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/log.h"
#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/state_archive.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::data {
namespace {

// How likely an element of each class is accepted where elements are filtered, and how likely one
// is taken that was not: as much of the input as the target allows passes unfiltered.
Element acceptance(const Tensor& initial, const Tensor& target) {
  const Tensor ratio = (target / reduce_sum(target)) /
                       (initial / reduce_sum(initial) + std::numeric_limits<float>::min());
  const Tensor least = reduce_min(ratio);
  const Tensor spread = reduce_max(ratio) - least;
  // Where the classes are as they should be, all pass.
  return {where(spread > 0.0f, (ratio - least) / spread, ones_like(ratio)), least};
}

// The distribution after each 32 classes, once for each of them.
Dataset estimated(const Dataset& classes, std::int64_t count) {
  constexpr std::int64_t kBatch = 32;
  constexpr std::int64_t kSeenBefore = 10;  // of each class: the first guesses are to be cautious
  return classes.batch(kBatch)
      .scan({fill({count}, kSeenBefore)},
            [count](const Tensor& seen, const Tensor& some) {
              const Tensor now = seen + reduce_sum(one_hot(some, count, {.dtype = int64}), {0});
              const Tensor share =
                  cast(cast(now, float64) / cast(reduce_sum(now), float64), float32);
              return std::pair(now, broadcast_to(share, {kBatch, count}));
            })
      .unbatch();
}

void check(const char* name, const std::vector<float>& shares) {
  const bool good = std::all_of(shares.begin(), shares.end(),
                                [](float share) { return share >= 0 && std::isfinite(share); });
  if (!good || !(*std::max_element(shares.begin(), shares.end()) > 0)) {
    throw InvalidArgumentError(cat("rejection_resample: ", name,
                                   " must be shares of classes, which are >= 0 and not all 0."));
  }
}

// Lets only elements through whose first component is one of `count` classes: the caller that
// passes them on unfiltered looks at no class.
class ClassesIterator final : public UnaryIterator {
 public:
  ClassesIterator(std::unique_ptr<IteratorBase> input, std::int64_t count)
      : UnaryIterator(std::move(input)), count_(count) {}

  bool next(Element& out) override {
    if (!next_counted(input(), out, number_)) return false;
    const std::int64_t number = number_++;
    try {
      check(out.front().array());
    } catch (...) {
      throw_stage_error("rejection_resample", number);
    }
    return true;
  }
  Origin origin() const override { return input().origin(); }
  void visit_state(StateArchive& state) override {
    state.stage("RejectionResample");
    state.value(number_);
    input().visit_state(state);
  }

 private:
  void check(const Array& label) const {
    const DType dtype = label.dtype();
    if (label.rank() != 0 || (dtype != DType::kInt32 && dtype != DType::kInt64)) {
      throw InvalidArgumentError(cat("The class of an element must be a scalar of int32 or int64, ",
                                     "but class_func returned ", dtype, label.shape(), "."));
    }
    const std::int64_t value =
        dtype == DType::kInt32 ? label.data<std::int32_t>()[0] : label.data<std::int64_t>()[0];
    if (value >= 0 && value < count_) return;
    const std::string classes =
        count_ == 1 ? "1 class: 0" : cat(count_, " classes: 0 to ", count_ - 1);
    throw InvalidArgumentError(
        cat("class_func returned class ", value, ", but target_dist has ", classes, "."));
  }

  const std::int64_t count_;
  std::int64_t number_ = 0;
};

class ClassesDataset final : public UnaryDataset {
 public:
  ClassesDataset(DatasetRef input, std::int64_t count)
      : UnaryDataset(std::move(input)), count_(count) {}
  std::string name() const override { return "RejectionResample"; }
  std::string parameters() const override { return cat("classes=", count_); }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<ClassesIterator>(input().iterator(context), count_);
  }

 private:
  const std::int64_t count_;
};

void warn_of_many(const std::vector<float>& initial, const std::vector<float>& accepted) {
  double rejected = 0;
  for (std::size_t i = 0; i < initial.size(); ++i) {
    rejected += (1.0 - static_cast<double>(accepted[i])) * static_cast<double>(initial[i]);
  }
  if (rejected < 0.5) return;
  log(LogLevel::kWarning,
      cat("rejection_resample will leave out ", std::llround(100 * rejected),
          " % of the elements that it may not pass as they are, to reach the target."));
}

}  // namespace

Dataset Dataset::rejection_resample(ElementFn class_func, std::vector<float> target_dist,
                                    ResampleOptions options) const {
  const auto count = static_cast<std::int64_t>(target_dist.size());
  if (target_dist.empty()) {
    throw InvalidArgumentError("rejection_resample: target_dist has no classes.");
  }
  check("target_dist", target_dist);
  const ElementFn labelling = class_func.with_implementation([class_func](Element& element) {
    Element made = element;
    class_func.apply(made);
    if (made.size() != 1) internal::throw_arity(1, made.size());
    element.insert(element.begin(), std::move(made.front()));
  });
  const Dataset labelled = make_dataset<ClassesDataset>(map(labelling).base(), count);
  const Tensor target = Tensor::from(target_dist);

  Dataset chances;  // acceptance of each class, and how often what is not filtered is taken
  if (options.initial_dist.empty()) {
    chances = estimated(map(class_func), count).map([target](const Tensor& initial) {
      return acceptance(initial, target);
    });
  } else {
    if (options.initial_dist.size() != target_dist.size()) {
      throw InvalidArgumentError(cat("rejection_resample: target_dist has ", count,
                                     " classes, initial_dist ", options.initial_dist.size(), "."));
    }
    check("initial_dist", options.initial_dist);
    const Element known = acceptance(Tensor::from(options.initial_dist), target);
    if (known[1].item<float>() == 1) return labelled;
    warn_of_many(options.initial_dist, known[0].to_vector<float>());
    chances = from_tensors(std::vector<Tensor>(known.begin(), known.end())).repeat();
  }

  const std::optional<std::int64_t> seed = options.seed;
  const Dataset filtered =
      zip({chances, labelled})
          .filter([seed](const Element& e) {
            return less(random::uniform({}, {.seed = seed}), gather(e[0], e[2]));
          })
          .map([](const Element& e) { return Element(e.begin() + 2, e.end()); })
          .prefetch(3);
  // Not the numbers that the filter draws.
  const std::optional<std::int64_t> other =
      seed ? std::optional<std::int64_t>(*seed ^ 0x5bd1e995) : std::nullopt;
  const Dataset choices = chances.map([other](const Element& e) {
    return cast(greater_equal(random::uniform({}, {.seed = other}), e[1]), int64);
  });
  return choose_from_datasets({labelled, filtered}, choices, true);
}

}  // namespace tandem::data
