#include "tandem/data/observe/observer.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/fusion/row_table.h"
#include "tandem/data/sources/seekable.h"

namespace tandem::data {

namespace {

// A stage's own time is what passes in its `next`, less what is apart.
class OwnTime {
 public:
  explicit OwnTime(StageCounters& counters)
      : scope_(counters.traced_as),
        counters_(counters),
        outer_(std::exchange(thread_times().apart, 0)),
        timer_(counters.work) {}
  ~OwnTime() {
    const std::int64_t time = timer_.end();
    ThreadTimes& times = thread_times();
    count_work(counters_, std::max<std::int64_t>(time - times.apart, 0), timer_.idle());
    times.apart = outer_ + timer_.whole();
  }
  OwnTime(const OwnTime&) = delete;
  OwnTime& operator=(const OwnTime&) = delete;

 private:
  const profiler::Scope scope_;
  StageCounters& counters_;
  const std::int64_t outer_;
  StageTimer timer_;
};

// Bytes of one row; 0 where that depends on its texts.
std::int64_t row_bytes(const RowTable& table) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : table.spec()) {
    if (spec.dtype == DType::kString) continue;
    std::int64_t elements = 1;
    for (const std::int64_t dim : spec.shape.dims()) elements *= dim;
    bytes += elements * static_cast<std::int64_t>(dtype_size(spec.dtype));
  }
  return bytes;
}

// Counts what the stage gives; elements that are passed over are none of it.
class ObservedIterator final : public IteratorBase, public Seekable {
 public:
  ObservedIterator(std::unique_ptr<IteratorBase> inner, StageCounters& counters)
      : inner_(std::move(inner)),
        known_(known_places(*inner_)),
        counters_(counters),
        row_bytes_(inner_->rows() ? row_bytes(*inner_->rows()) : 0) {}

  bool next(Element& out) override {
    {
      OwnTime own(counters_);
      if (!inner_->next(out)) return false;
    }
    count(1, bytes_of(out));
    return true;
  }

  const RowTable* rows() const override { return inner_->rows(); }

  std::size_t next_rows(std::span<std::int64_t> out) override {
    std::size_t got = 0;
    {
      OwnTime own(counters_);
      got = inner_->next_rows(out);
    }
    const auto rows = static_cast<std::int64_t>(got);
    count(rows, rows * row_bytes_);
    return got;
  }

  bool knows_places() const override { return known_ != nullptr; }
  std::int64_t skip(std::int64_t count) override {
    const OwnTime own(counters_);
    return known_->skip(count);
  }

  Origin origin() const override { return inner_->origin(); }
  void visit_state(StateArchive& state) override { inner_->visit_state(state); }

 private:
  void count(std::int64_t elements, std::int64_t bytes) {
    StageCounters::add(counters_.elements, elements);
    StageCounters::add(counters_.bytes, bytes);
  }

  const std::unique_ptr<IteratorBase> inner_;
  Seekable* const known_;  // the same, or null
  StageCounters& counters_;
  const std::int64_t row_bytes_;
};

}  // namespace

std::unique_ptr<IteratorBase> DatasetBase::observed_iterator(
    const IterationContext& context) const {
  thread_local const DatasetBase* beginning = nullptr;
  const DatasetBase* consumer = context.dataset();
  ObservedStage& stage = context.observer()->stage(*this, context.stage(), consumer,
                                                   consumer && beginning == consumer);
  const DatasetBase* outer = std::exchange(beginning, this);
  std::unique_ptr<IteratorBase> iterator;
  try {
    iterator = make_iterator(context.at(stage, *this));
  } catch (...) {
    beginning = outer;
    throw;
  }
  beginning = outer;
  // A dataset that runs as another one, or only sets options, has nothing of its own to count.
  if (dynamic_cast<ObservedIterator*>(iterator.get())) {
    stage.passes_on = true;
    return iterator;
  }
  return std::make_unique<ObservedIterator>(std::move(iterator), stage.counters);
}

ObservedStage& Observer::stage(const DatasetBase& dataset, ObservedStage* from,
                               const DatasetBase* consumer, bool begun_with_consumer) {
  std::int64_t input = begun_with_consumer ? ObservedStage::kPart : ObservedStage::kMade;
  if (consumer) {
    const std::vector<const DatasetBase*> inputs = consumer->inputs();
    const auto found = std::find(inputs.begin(), inputs.end(), &dataset);
    if (found != inputs.end()) input = found - inputs.begin();
  }
  std::string name = dataset.name();
  std::lock_guard lock(mutex_);
  for (ObservedStage& known : stages_) {
    if (known.consumer == from && known.input == input && known.name == name) return known;
  }
  ObservedStage& stage = stages_.emplace_back();
  stage.name = std::move(name);
  stage.counters.traced_as =
      cat(from ? from->counters.traced_as : "Iterator::Root", "::", stage.name);
  stage.consumer = from;
  stage.input = input;
  if (from) from->inputs.push_back(&stage);
  return stage;
}

void Observer::next(std::int64_t begin, std::int64_t end, std::int64_t worked, bool gave) {
  std::lock_guard lock(mutex_);
  asked_.store(0, std::memory_order_relaxed);
  if (begin_ == 0) begin_ = begin;
  end_ = end;
  in_next_ += end - begin - worked;
  elements_ += gave ? 1 : 0;
}

void Observer::ended() {
  std::lock_guard lock(mutex_);
  ended_ = true;
}

namespace {

const ObservedStage& seen_through(const ObservedStage& stage) {
  const ObservedStage* at = &stage;
  while (at->passes_on && !at->inputs.empty()) at = at->inputs.front();
  return *at;
}

}  // namespace

std::string Observer::name() const {
  std::lock_guard lock(mutex_);
  return stages_.empty() ? "" : seen_through(stages_.front()).name;
}

std::string Observer::recent_shares() {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::int64_t, const ObservedStage*>> works;
  std::int64_t all = 0;
  for (const ObservedStage& stage : stages_) {
    const std::int64_t work = StageCounters::get(stage.counters.work);
    works.emplace_back(work - std::exchange(reported_[&stage], work), &stage);
    all += works.back().first;
  }
  std::stable_sort(works.begin(), works.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [work, stage] : works) {
    const std::int64_t percent = all == 0 ? 0 : (100 * work + all / 2) / all;
    if (percent == 0) break;
    text += cat(text.empty() ? "" : ", ", stage->name, " ", percent, " %");
  }
  return text;
}

namespace {

double seconds(std::int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

// What goes on now, of which the counters know when it is over.
struct GoingOn {
  std::int64_t all = 0, longest = 0;
};
using AllGoingOn = std::map<const StageCounters::Count*, GoingOn>;

AllGoingOn going_on(std::int64_t now) {
  AllGoingOn all;
  visit_growing([&](const StageCounters::Count* count, std::int64_t since) {
    const std::int64_t time = std::max<std::int64_t>(now - since, 0);
    GoingOn& at = all[count];
    at.all += time;
    at.longest = std::max(at.longest, time);
  });
  return all;
}

PipelineStats::Stage figures(const ObservedStage& stage, const AllGoingOn& going_on) {
  const auto get = [](const StageCounters::Count& count) { return StageCounters::get(count); };
  const StageCounters& c = stage.counters;
  PipelineStats::Stage out;
  out.name = stage.name;
  out.elements = get(c.elements);
  out.bytes = get(c.bytes);
  out.work = seconds(get(c.work));
  if (const std::int64_t looked_at = get(c.looked_at)) {
    out.idle = out.work * static_cast<double>(get(c.idle)) / static_cast<double>(looked_at);
  }
  const auto now = [&](const StageCounters::Count& count) {
    const auto found = going_on.find(&count);
    return found == going_on.end() ? GoingOn() : found->second;
  };
  out.work += seconds(now(c.work).all);
  out.in_call = seconds(now(c.work).longest);
  out.waited_for = seconds(get(c.waited_for) + now(c.waited_for).all);
  out.files = get(c.files);
  out.threads = static_cast<int>(get(c.threads));
  out.tuned = get(c.tuned) != 0;
  out.input = seconds(get(c.input));
  out.input_waited = seconds(get(c.input_waited));
  out.buffer_size = get(c.buffer_size);
  out.cycle_length = get(c.cycle_length);
  if (const std::int64_t looks = get(c.looks)) {
    out.buffer_fill = 1e-3 * static_cast<double>(get(c.fill)) / static_cast<double>(looks);
  }
  return out;
}

}  // namespace

PipelineStats Observer::stats() const {
  std::lock_guard lock(mutex_);
  PipelineStats stats;
  const std::int64_t now = clock_now();
  const AllGoingOn open = going_on(now);
  // Depth first, so that a table reads like the pipeline; inputs before what functions made.
  const auto visit = [&](const auto& self, const ObservedStage& named, int consumer) -> void {
    const ObservedStage& stage = seen_through(named);
    const auto number = static_cast<int>(stats.stages.size());
    stats.stages.push_back(figures(stage, open));
    stats.stages.back().nested = named.consumer && named.input == ObservedStage::kMade;
    stats.stages.back().consumer = consumer;
    if (consumer >= 0) stats.stages[static_cast<std::size_t>(consumer)].inputs.push_back(number);
    std::vector<ObservedStage*> inputs = stage.inputs;
    std::stable_sort(inputs.begin(), inputs.end(), [](const auto* a, const auto* b) {
      return static_cast<std::uint64_t>(a->input) < static_cast<std::uint64_t>(b->input);
    });
    for (const ObservedStage* input : inputs) self(self, *input, number);
  };
  for (const ObservedStage& stage : stages_) {
    if (!stage.consumer) visit(visit, stage, -1);
  }
  stats.elements = elements_;
  stats.ended = ended_;
  // Until the end the consumer is at its step.
  const std::int64_t asked = asked_.load(std::memory_order_relaxed);
  const std::int64_t begin = begin_ == 0 ? asked : begin_;
  stats.seconds = begin == 0 ? 0 : seconds((ended_ ? end_ : now) - begin);
  stats.in_next = seconds(in_next_ + (asked == 0 ? 0 : std::max<std::int64_t>(now - asked, 0)));
  return stats;
}

}  // namespace tandem::data
