#include "tandem/data/autotune/tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tandem/core/machine.h"
#include "tandem/data/iteration_context.h"
#include "tandem/runtime/runtime.h"

namespace tandem::data {
namespace {

constexpr std::int64_t kFirstInterval = 100'000'000;  // nanoseconds
constexpr std::int64_t kLastInterval = 1'600'000'000;
constexpr int kOftenLooks = 8;  // before intervals grow
// The consumer does not wait; it waits so much that its own pace is unknown.
constexpr double kCalm = 0.02;
constexpr double kHungry = 0.5;
// How much faster than needed a stage may be, for the swings of its work.
constexpr double kHeadroom = 1.25;
// Elements that a map keeps for each thread.
constexpr double kMapSlots = 2;
constexpr std::int64_t kMaxBuffered = 64;
// From so little of a core on, threads may be more than cores; and how many more.
constexpr double kWaits = 0.5;
constexpr double kMinCpu = 1.0 / 64;
constexpr int kMaxWaiting = 64;

// A prefetch has a thread, which waits; a map made by the consumer has none at work.
bool takes_cores(const TunedStage& stage) {
  return stage.kind != TunedStage::Kind::kPrefetch && !stage.made_by_consumer();
}

}  // namespace

std::int64_t cpu_budget(const AutotuneOptions& options) {
  const std::int64_t requested = options.cpu_budget.value_or(0);
  return requested > 0 ? std::min(requested, kMaxThreads)
                       : Runtime::current().inter_op_pool().threads();
}

std::int64_t ram_budget(const AutotuneOptions& options) {
  const std::int64_t requested = options.ram_budget.value_or(0);
  return requested > 0 ? requested : static_cast<std::int64_t>(machine_limits().memory / 2);
}

void TunedStage::measure(const Element& element) {
  if (element.empty()) return;  // an error, or the end
  element_bytes.store(bytes_of(element), std::memory_order_relaxed);
}

TunedStage& Tuner::join(const TuningRequest& wish, const AutotuneOptions& options,
                        StageCounters* observed) {
  std::lock_guard lock(mutex_);
  const std::int64_t cpu = cpu_budget(options), ram = ram_budget(options);
  budget_said_ |= options.cpu_budget.value_or(0) > 0;
  cpu_budget_ = cpu_budget_ == 0 ? cpu : std::min(cpu_budget_, cpu);
  ram_budget_ = ram_budget_ == 0 ? ram : std::min(ram_budget_, ram);
  TunedStage* stage = find(wish.kind, wish.key);
  // Made by a function while the iteration goes on, there is a new one for every element.
  const void* key = began_ && !stage ? nullptr : wish.key;
  if (!stage) stage = find(wish.kind, key);
  if (!stage) {
    stage = &stages_.emplace_back();
    stage->kind = wish.kind;
    stage->key = key;
    stage->buffer.store(wish.buffer, std::memory_order_relaxed);
    stage->least_buffer = wish.least_buffer;
  }
  stage->most = wish.most;
  stage->counted = observed ? observed : &stage->counters;
  ++stage->passes;
  if (!began_) {
    share_first();
  } else {
    trim(*stage);
  }
  return *stage;
}

void Tuner::trim(TunedStage& stage) {
  for (int count = stage.threads; count > 1 && threads_given() > budget(); --count) {
    give(stage, count - 1);
  }
}

void Tuner::set_made_by_consumer(TunedStage& stage, bool by_consumer) {
  if (!stage.key) return;
  std::lock_guard lock(mutex_);
  stage.by_consumer.store(by_consumer, std::memory_order_relaxed);
  if (!by_consumer) trim(stage);
}

TunedStage* Tuner::find(TunedStage::Kind kind, const void* key) {
  const auto found = std::find_if(stages_.begin(), stages_.end(), [&](const TunedStage& stage) {
    return stage.kind == kind && stage.key == key;
  });
  return found == stages_.end() ? nullptr : &*found;
}

double Tuner::threads_given() const {
  double sum = 0;
  for (const TunedStage& stage : stages_) {
    if (takes_cores(stage)) sum += stage.passes * stage.threads * stage.cpu;
  }
  return sum;
}

void Tuner::leave(TunedStage& stage) {
  std::lock_guard lock(mutex_);
  --stage.passes;
}

int Tuner::budget() const {
  return static_cast<int>(std::clamp<std::int64_t>(cpu_budget_ - left_, 1, 1 << 16));
}

// Before anything is known: equal parts.
void Tuner::share_first() {
  int count = 0;
  for (const TunedStage& stage : stages_) {
    count += takes_cores(stage) ? stage.passes : 0;
  }
  for (TunedStage& stage : stages_) give(stage, budget() / std::max(count, 1));
}

void Tuner::give(TunedStage& stage, int threads) {
  if (stage.kind == TunedStage::Kind::kPrefetch) return;
  stage.threads.store(std::clamp(threads, 1, std::max(stage.most, 1)), std::memory_order_relaxed);
}

double Tuner::buffered(const TunedStage& stage) const {
  const auto bytes = static_cast<double>(stage.element_bytes.load(std::memory_order_relaxed));
  double elements = 0;
  switch (stage.kind) {
    case TunedStage::Kind::kMap:
      if (stage.made_by_consumer()) return 0;
      elements = kMapSlots * stage.threads.load(std::memory_order_relaxed);
      break;
    case TunedStage::Kind::kPrefetch:
    case TunedStage::Kind::kInterleave:
      elements = static_cast<double>(stage.buffer.load(std::memory_order_relaxed));
      break;
  }
  return stage.passes * elements * bytes;
}

std::int64_t Tuner::larger_buffer(TunedStage& stage) {
  std::lock_guard lock(mutex_);
  const std::int64_t size = stage.buffer.load(std::memory_order_relaxed);
  const std::int64_t larger = std::min(2 * size, kMaxBuffered);
  double ram = 0;
  for (const TunedStage& other : stages_) ram += buffered(other);
  ram += static_cast<double>(stage.passes * (larger - size)) *
         static_cast<double>(stage.element_bytes.load(std::memory_order_relaxed));
  if (ram > static_cast<double>(ram_budget_)) return size;
  stage.buffer.store(larger, std::memory_order_relaxed);
  return larger;
}

void Tuner::reserve_cores(std::int64_t cores) {
  std::lock_guard lock(mutex_);
  left_ = cores;
  if (!began_) {
    if (cpu_budget_ > 0) share_first();
    return;
  }
  next_look_.store(0, std::memory_order_relaxed);
}

std::int64_t Tuner::left_cores() const {
  std::lock_guard lock(mutex_);
  return left_;
}

void Tuner::look(std::int64_t now) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  // Another thread may have looked meanwhile.
  if (!lock || now < next_look_.load(std::memory_order_relaxed)) return;
  if (!began_) {
    began_ = true;
    interval_ = kFirstInterval;
  } else {
    const auto period = static_cast<double>(now - last_look_);
    const auto waited = static_cast<double>(waited_.exchange(0, std::memory_order_relaxed));
    decide(std::max(period, 1.0), waited / std::max(period, 1.0));
    if (++looks_ > kOftenLooks) interval_ = std::min(2 * interval_, kLastInterval);
  }
  last_look_ = now;
  next_look_.store(now + interval_, std::memory_order_relaxed);
}

// In units of the present pace: how many threads' worth of work a stage had.
TunedPart Tuner::part_of(TunedStage& stage, double period) {
  const std::int64_t work = StageCounters::get(stage.counted->work);
  const std::int64_t input = StageCounters::get(stage.counted->input);
  const double worked = static_cast<double>(work - std::exchange(stage.work, work)) / period;
  const double drew = static_cast<double>(input - std::exchange(stage.input, input)) / period;
  TunedPart part;
  part.work = worked + drew;
  part.passes = std::max(stage.passes, 1);
  part.threads = 1;
  part.tunable = takes_cores(stage) && stage.passes > 0;
  part.most = stage.most;
  if (stage.made_by_consumer()) {  // by one thread, of which nothing is known
    stage.trial = {};
    stage.cpu = 1;
    const StageCounters& c = *stage.counted;
    stage.looked_at = StageCounters::get(c.looked_at) + StageCounters::get(c.input_looked_at);
    stage.idle = StageCounters::get(c.idle) + StageCounters::get(c.input_idle);
    part.serial = drew;
    return part;
  }
  if (part.tunable && !budget_said_) look_for_idleness(stage, part, period);
  if (stage.kind != TunedStage::Kind::kInterleave) part.serial = drew;
  if (stage.kind == TunedStage::Kind::kMap) {
    part.threads = stage.threads.load(std::memory_order_relaxed);
    part.buffer =
        kMapSlots * static_cast<double>(stage.element_bytes.load(std::memory_order_relaxed));
  }
  return part;
}

// Threads that wait take little of a core. How many of them pay is found by trying.
void Tuner::look_for_idleness(TunedStage& stage, TunedPart& part, double period) {
  const StageCounters& c = *stage.counted;
  const std::int64_t looked_at =
      StageCounters::get(c.looked_at) + StageCounters::get(c.input_looked_at);
  const std::int64_t idle = StageCounters::get(c.idle) + StageCounters::get(c.input_idle);
  const auto looked = static_cast<double>(looked_at - std::exchange(stage.looked_at, looked_at));
  const auto idled = static_cast<double>(idle - std::exchange(stage.idle, idle));
  if (looked > 0) stage.cpu = std::clamp(1 - idled / looked, kMinCpu, 1.0);
  const int threads = stage.threads.load(std::memory_order_relaxed);
  if (stage.cpu > kWaits) {
    stage.cpu = 1;
    stage.trial = {};
    return;
  }
  part.cpu = stage.cpu;
  const int tried = stage.trial.most(threads * part.passes,
                                     stage.made.load(std::memory_order_relaxed), 1e-9 * period);
  const int bound = std::max(kMaxWaiting, budget());
  part.most = std::clamp(std::min(tried, bound) / part.passes, 1, std::max(stage.most, 1));
}

// Buffers go before threads: half a buffer is often enough.
void Tuner::shrink_buffers(double& ram_left) {
  for (TunedStage& stage : stages_) {
    const std::int64_t size = stage.buffer.load(std::memory_order_relaxed);
    if (stage.kind == TunedStage::Kind::kMap || size <= stage.least_buffer) continue;
    if (ram_left >= 0) return;
    const double before = buffered(stage);
    stage.buffer.store(std::max(size / 2, stage.least_buffer), std::memory_order_relaxed);
    ram_left += before - buffered(stage);
  }
}

std::vector<TunedPart> Tuner::parts(double period) {
  std::vector<TunedPart> parts;
  for (TunedStage& stage : stages_) parts.push_back(part_of(stage, period));
  return parts;
}

void Tuner::decide(double period, double waiting) {
  TuningLimits limits;
  limits.cpu_budget = budget();
  limits.counts_cores = !budget_said_;
  limits.ram_budget = static_cast<double>(ram_budget_);
  for (const TunedStage& stage : stages_) {
    if (stage.kind != TunedStage::Kind::kMap) limits.ram_budget -= buffered(stage);
  }
  shrink_buffers(limits.ram_budget);
  if (waiting < kHungry) limits.wanted = kHeadroom / (1 - waiting);
  const std::vector<TunedPart> found = parts(period);
  const std::vector<int> chosen = choose_threads(found, limits);

  // Threads are released one by one, and only if the consumer has not waited for a while; but at
  // once where others need them.
  calm_ = waiting < kCalm ? calm_ + 1 : 0;
  std::vector<int> gently = chosen;
  CoresTaken cores;
  double ram = 0;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    TunedStage& stage = stages_[i];
    if (!takes_cores(stage)) continue;
    const int now = stage.threads.load(std::memory_order_relaxed);
    if (gently[i] < now) {
      gently[i] =
          std::min(calm_ == 1 ? now : std::max(gently[i], now - 1 - now / 16), found[i].most);
    }
    if (stage.passes > 0) cores.add(found[i], gently[i]);
    if (stage.kind == TunedStage::Kind::kMap) {
      ram += kMapSlots * stage.passes * gently[i] *
             static_cast<double>(stage.element_bytes.load(std::memory_order_relaxed));
    }
  }
  const bool fits = cores.within(limits.cpu_budget) && ram <= limits.ram_budget;
  bool changed = false;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const int before = stages_[i].threads;
    if (stages_[i].passes > 0 && takes_cores(stages_[i]))
      give(stages_[i], fits ? gently[i] : chosen[i]);
    changed |= stages_[i].threads != before;
  }
  if (!changed) return;
  looks_ = 0;
  interval_ = kFirstInterval;
}

TunedPass tuned_pass(bool wanted, const IterationContext& context,
                     const Tuner::TuningRequest& wish) {
  if (!wanted) return {};
  Tuner& tuner = context.tuner();
  return {tuner, tuner.join(wish, context.options().autotune, context.counters())};
}

StageMeter meter_of(const IterationContext& context, const TunedPass& pass) {
  if (StageCounters* observed = context.counters()) return StageMeter(observed);
  return StageMeter(pass ? &pass->counters : nullptr);
}

}  // namespace tandem::data
