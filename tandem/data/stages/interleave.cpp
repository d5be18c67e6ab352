#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_counters.h"
#include "tandem/data/stages/nested_source.h"

namespace tandem::data {
namespace {

constexpr std::int64_t kDefaultCycle = 4;
constexpr std::int64_t kMaxParallel = 65536;

class InterleaveIterator final : public UnaryIterator {
 public:
  InterleaveIterator(std::unique_ptr<IteratorBase> input, NestedSource::Maker maker,
                     std::int64_t cycle_length, std::int64_t block_length)
      : UnaryIterator(std::move(input)),
        maker_(std::move(maker)),
        cycle_length_(static_cast<std::size_t>(cycle_length)),
        block_length_(block_length) {}

  bool next(Element& out) override {
    for (;;) {
      if (at_ < sources_.size() && sources_[at_].is_open()) {
        last_ = at_;
        if (sources_[at_].next(out)) {
          if (++in_block_ == block_length_) advance();
          return true;
        }
        sources_[at_].close();
        --open_;
        advance();
      } else if (!input_ended_) {
        open();
      } else if (open_ == 0) {
        return false;
      } else {
        advance();
      }
      maker_.context.check();
    }
  }

  Origin origin() const override {
    return last_ < sources_.size() ? sources_[last_].origin() : Origin();
  }

  void visit_state(StateArchive& state) override {
    state.stage("Interleave");
    maker_.draws.visit_state(state);
    const std::int64_t count = state.length(sources_.size());
    state.require(count <= static_cast<std::int64_t>(cycle_length_), "its cycle is longer");
    if (state.restoring()) sources_.resize(static_cast<std::size_t>(count));
    for (NestedSource& source : sources_) source.visit_state(state, maker_);
    state.value(at_);
    state.value(in_block_);
    state.value(number_);
    state.value(input_ended_);
    state.require(at_ < cycle_length_ && at_ <= sources_.size(), "its place is outside the cycle");
    open_ = 0;
    for (const NestedSource& source : sources_) open_ += source.is_open() ? 1 : 0;
    input().visit_state(state);
  }

 private:
  void open() {
    Element element;
    if (!input().next(element)) {
      input_ended_ = true;
      return;
    }
    if (at_ == sources_.size()) sources_.emplace_back();
    sources_[at_].open(maker_, std::move(element), number_++);
    ++open_;
  }

  void advance() {
    in_block_ = 0;
    at_ = (at_ + 1) % cycle_length_;
    // Beyond those that were ever open nothing is, once the input has ended.
    if (input_ended_ && at_ >= sources_.size()) at_ = 0;
  }

  NestedSource::Maker maker_;
  const std::size_t cycle_length_;
  const std::int64_t block_length_;
  std::vector<NestedSource> sources_;  // as many as have been opened, up to cycle_length_
  std::size_t at_ = 0;
  std::size_t last_ = 0;  // that was asked
  std::int64_t in_block_ = 0;
  std::int64_t open_ = 0;
  std::int64_t number_ = 0;
  bool input_ended_ = false;
};

class InterleaveDataset final : public UnaryDataset {
 public:
  InterleaveDataset(DatasetRef input, DatasetFn fn, InterleaveOptions options, bool flat)
      : UnaryDataset(std::move(input)), fn_(std::move(fn)), options_(options), flat_(flat) {}

  std::string name() const override {
    if (flat_) return "FlatMap";
    return options_.num_parallel_calls == 0 ? "Interleave" : "ParallelInterleave";
  }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    const std::int64_t calls = context.threads(options_.num_parallel_calls);
    const std::int64_t block = options_.block_length;
    DrawPass draws(&draws_, context);
    if (StageCounters* counters = context.counters(); counters && !flat_) {
      StageCounters::set(counters->cycle_length, cycle());
    }
    if (calls == 0) {
      return std::make_unique<InterleaveIterator>(
          input().iterator(context),
          NestedSource::Maker{fn_, stage(), context.repeating(), std::move(draws)}, cycle(), block);
    }
    const bool ordered =
        options_.deterministic.value_or(context.options().deterministic.value_or(true));
    return make_parallel_interleave(input(), fn_, cycle(), block, calls, ordered, context,
                                    std::move(draws));
  }

  bool reads_files() const override {
    if (input().reads_files()) return true;
    return input().can_shard_sources() && nested_reads_files(input(), fn_);
  }
  const Names& names() const override { return DatasetBase::names(); }
  int num_components() const override { return -1; }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] { return nested_spec(input(), fn_, stage()); });
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    UnaryDataset::visit_lasting_state(state, context);
    draws_.visit_state(state, context);
  }

 private:
  const char* stage() const { return flat_ ? "flat_map" : "interleave"; }
  // The order depends on it, so that it may not depend on the machine.
  std::int64_t cycle() const {
    if (options_.cycle_length != kAutotune) return options_.cycle_length;
    return options_.num_parallel_calls > 0 ? options_.num_parallel_calls : kDefaultCycle;
  }

  const DatasetFn fn_;
  const InterleaveOptions options_;
  const bool flat_;
  const FunctionRng draws_;
  LazySpec spec_;
};

void check_arity(const DatasetBase& input, int arity) {
  const int given = input.num_components();
  if (arity >= 0 && given >= 0 && arity != given) {
    internal::throw_arity(static_cast<std::size_t>(arity), static_cast<std::size_t>(given));
  }
}

}  // namespace

Dataset Dataset::flat_map(DatasetFn fn) const {
  check_arity(*base_of(*this), fn.arity());
  return make_dataset<InterleaveDataset>(base_, std::move(fn), InterleaveOptions{.cycle_length = 1},
                                         true);
}

Dataset Dataset::interleave(DatasetFn fn, InterleaveOptions options) const {
  if (options.cycle_length <= 0 && options.cycle_length != kAutotune) {
    throw InvalidArgumentError(
        cat("cycle_length must be greater than zero, got ", options.cycle_length, "."));
  }
  if (options.num_parallel_calls != 0 && options.cycle_length > kMaxParallel) {
    throw InvalidArgumentError(cat("cycle_length must be at most ", kMaxParallel,
                                   " with parallel calls, got ", options.cycle_length, "."));
  }
  if (options.block_length <= 0) {
    throw InvalidArgumentError(
        cat("block_length must be greater than zero, got ", options.block_length, "."));
  }
  if (options.num_parallel_calls < kAutotune) {
    throw InvalidArgumentError(cat(
        "num_parallel_calls must be greater than zero, or kAutotune, or 0 to make elements where "
        "they are consumed; got ",
        options.num_parallel_calls, "."));
  }
  check_arity(*base_of(*this), fn.arity());
  return make_dataset<InterleaveDataset>(base_, std::move(fn), options, false);
}

}  // namespace tandem::data
