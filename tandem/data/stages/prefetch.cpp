#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include "tandem/data/autotune/tuner.h"
#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/stages/ahead_queue.h"
#include "tandem/data/stages/dataset_op.h"

namespace tandem::data {
namespace {

// Limits of a buffer whose size is found while running.
constexpr std::size_t kFirstLimit = 2;
constexpr std::size_t kLastLimit = 64;

class PrefetchIterator final : public IteratorBase {
 public:
  PrefetchIterator(const DatasetBase& input, std::int64_t buffer_size,
                   const IterationContext& context)
      : grows_(buffer_size == kAutotune),
        context_(context.below()),
        tuned_(tuned_pass(grows_ && context.threads(kAutotune) == kAutotune, context,
                          {.kind = TunedStage::Kind::kPrefetch, .key = &input})),
        meter_(meter_of(context, tuned_)),
        input_(input.iterator(context_)),
        queue_(plan(buffer_size), context_, meter_) {
    meter_.threads(1, grows_);
  }

  bool next(Element& out) override {
    // The memory of the element that `out` held is free before the next one is waited for.
    out.clear();
    tuned_.tick();
    Item item;
    // Other stages may need the memory.
    if (!queue_.take(item, tuned_ ? static_cast<std::size_t>(tuned_->buffer.load()) : 0)) {
      return false;
    }
    if (item.error) std::rethrow_exception(item.error);
    std::swap(origin_, item.origin);
    std::swap(out, item.element);
    return true;
  }

  Origin origin() const override { return origin_; }

  void visit_state(StateArchive& state) override {
    queue_.paused([&] {
      state.stage("Prefetch");
      queue_.visit_ended(state);
      queue_.visit_items(state, [&](Item& item) {
        state.value(item.error);
        state.value(item.element);
        visit(state, item.origin);
      });
      input_->visit_state(state);
    });
  }

 private:
  struct Item {
    Element element;
    std::exception_ptr error;
    Origin origin;
  };

  AheadQueue<Item>::Plan plan(std::int64_t buffer_size) {
    AheadQueue<Item>::Plan plan{
        .stage = "prefetch",
        .limit = grows_ ? kFirstLimit : static_cast<std::size_t>(buffer_size),
        .make = [this](Item& item) { return make(item); },
        .by_halves = true};
    if (!grows_) return plan;
    plan.grow = [this](std::size_t limit) {
      if (limit >= kLastLimit) return limit;
      return tuned_ ? static_cast<std::size_t>(tuned_.larger_buffer()) : 2 * limit;
    };
    return plan;
  }

  bool make(Item& item) {
    bool given = true;
    try {
      const StageMeter::Drawing drawing(meter_);
      given = input_->next(item.element);
      item.origin = input_->origin();
    } catch (...) {
      item.error = std::current_exception();
    }
    tuned_.made(item.element);
    return given;
  }

  const bool grows_;
  IterationContext context_;
  const TunedPass tuned_;
  const StageMeter meter_;
  std::unique_ptr<IteratorBase> input_;  // used by the thread alone
  Origin origin_;
  AheadQueue<Item> queue_;
};

class PrefetchDataset final : public UnaryDataset {
 public:
  PrefetchDataset(DatasetRef input, std::int64_t buffer_size)
      : UnaryDataset(std::move(input)), buffer_size_(buffer_size) {}
  std::string name() const override { return "Prefetch"; }
  Tensor as_op() const override {
    return dataset_op("PrefetchDataset", {input().as_op(), Tensor(buffer_size_)}, element_spec());
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<PrefetchIterator>(input(), buffer_size_, context);
  }

 private:
  const std::int64_t buffer_size_;
};

}  // namespace

Dataset Dataset::prefetch(std::int64_t buffer_size) const {
  if (buffer_size < kAutotune) {
    throw InvalidArgumentError(
        cat("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning, got ",
            buffer_size, "."));
  }
  base_of(*this);
  return buffer_size == 0 ? *this : make_dataset<PrefetchDataset>(base_, buffer_size);
}

}  // namespace tandem::data
