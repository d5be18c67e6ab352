#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/sources/draws.h"
#include "tandem/data/sources/seed_sequence.h"
#include "tandem/data/stages/dataset_op.h"
#include "tandem/data/stages/reservoir.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::data {
namespace {

class ShuffleIterator final : public RowStage {
 public:
  ShuffleIterator(std::unique_ptr<IteratorBase> input, std::int64_t buffer_size, Philox random,
                  std::shared_ptr<SeedSequence> seeds, IterationContext context)
      : RowStage(std::move(input)),
        seeds_(std::move(seeds)),
        numbers_(buffer_size, random),
        elements_(buffer_size, random),
        context_(std::move(context)) {}

  Origin origin() const override { return origin_; }

  void visit_state(StateArchive& state) override {
    state.stage("Shuffle");
    context_.visit_state(state, seeds_);
    visit_kept(state);
    numbers_.visit_state(state);
    elements_.visit_state(state);
    std::vector<std::int64_t> ahead(ahead_.begin() + at_, ahead_.begin() + have_);
    state.value(ahead);
    state.value(input_ended_);
    state.require(ahead.size() <= ahead_.size(), "a shuffle has too many rows ahead");
    if (state.restoring()) {
      numbers_.for_each([this](std::int64_t row) { require_row(row); });
      for (const std::int64_t row : ahead) require_row(row);
      std::copy(ahead.begin(), ahead.end(), ahead_.begin());
      at_ = 0;
      have_ = ahead.size();
    }
    input().visit_state(state);
  }

 protected:
  void draw_rows(std::span<std::int64_t> out, std::size_t& given) override {
    while (given < out.size()) {
      if (!input_ended_ && !numbers_.full()) fill_numbers();
      if (numbers_.empty()) break;
      numbers_.take(out[given++]);
    }
  }

  bool next_element(Element& out) override {
    while (!input_ended_ && !elements_.full()) {
      if (input().next(next_)) {
        elements_.put(std::move(next_), input().origin());
      } else {
        input_ended_ = true;
      }
      context_.check();
    }
    if (elements_.empty()) return false;
    out.clear();
    elements_.take(out, origin_);
    return true;
  }

 private:
  void fill_numbers() {
    while (!numbers_.full()) {
      if (at_ == have_) {
        have_ = input().next_rows(ahead_);
        at_ = 0;
        context_.check();
        if (have_ == 0) {
          input_ended_ = true;
          return;
        }
      }
      const std::size_t end = std::min(have_, at_ + numbers_.room());
      while (at_ < end) numbers_.put(ahead_[at_++]);
    }
  }

  const std::shared_ptr<SeedSequence> seeds_;
  Reservoir<std::int64_t> numbers_;
  Reservoir<Element> elements_;
  Element next_;   // nothing, in memory that serves again
  Origin origin_;  // of the element last given
  std::array<std::int64_t, 128> ahead_;
  std::size_t at_ = 0;
  std::size_t have_ = 0;
  bool input_ended_ = false;
  IterationContext context_;
};

class ShuffleDataset final : public UnaryDataset, public ShuffleStage {
 public:
  ShuffleDataset(DatasetRef input, std::int64_t buffer_size, std::shared_ptr<SeedSequence> seeds,
                 std::string seed_text, std::pair<std::int64_t, std::int64_t> seed, bool reshuffle)
      : UnaryDataset(std::move(input)),
        buffer_size_(buffer_size),
        seed_text_(std::move(seed_text)),
        seed_(seed),
        reshuffle_(reshuffle),
        seeds_(std::move(seeds)) {}

  std::string name() const override { return "Shuffle"; }
  Tensor as_op() const override {
    const Tensor seeds = raw_op("DummySeedGenerator", std::initializer_list<Tensor>{}).at(0);
    return dataset_op(
        "ShuffleDatasetV3",
        {input().as_op(), Tensor(buffer_size_), Tensor(seed_.first), Tensor(seed_.second), seeds},
        element_spec(), {{"reshuffle_each_iteration", reshuffle_}});
  }
  std::string parameters() const override {
    return cat("buffer_size=", buffer_size_, " seed=", seed_text_);
  }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    const Philox random = next_random(context);
    return std::make_unique<ShuffleIterator>(input().iterator(context), buffer_size_, random,
                                             seeds_, context);
  }

  const DatasetRef& shuffled() const override { return input_ref(); }
  std::int64_t buffer_size() const override { return buffer_size_; }
  const std::shared_ptr<SeedSequence>& seeds() const override { return seeds_; }
  Philox next_random(const IterationContext& context) const override {
    return reshuffle_ ? seeds_->generator(context.next_pass(seeds_)) : seeds_->fixed();
  }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    UnaryDataset::visit_lasting_state(state, context);
    context.visit_state(state, seeds_);
  }

 private:
  const std::int64_t buffer_size_;
  const std::string seed_text_;  // as the user gave it
  const std::pair<std::int64_t, std::int64_t> seed_;
  const bool reshuffle_;
  const std::shared_ptr<SeedSequence> seeds_;
};

}  // namespace

Dataset Dataset::shuffle(std::int64_t buffer_size, ShuffleOptions options) const {
  if (buffer_size <= 0) {
    throw InvalidArgumentError(cat("buffer_size must be greater than zero, got ", buffer_size,
                                   ". The number of elements gives a uniform shuffle."));
  }
  const auto [seed, seed2] = stage_seeds(options.seed);
  return make_dataset<ShuffleDataset>(
      base_of(*this), buffer_size, std::make_shared<SeedSequence>(seed, seed2),
      options.seed ? cat(*options.seed) : "drawn",
      std::pair(static_cast<std::int64_t>(seed), static_cast<std::int64_t>(seed2)),
      options.reshuffle_each_iteration);
}

}  // namespace tandem::data
