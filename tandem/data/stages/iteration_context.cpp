#include "tandem/data/iteration_context.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/data/autotune/host_scope.h"
#include "tandem/data/autotune/trial_context.h"
#include "tandem/data/autotune/tuner.h"
#include "tandem/data/observe/observer.h"
#include "tandem/data/sources/seed_sequence.h"
#include "tandem/data/state_archive.h"
#include "tandem/runtime/runtime.h"

namespace tandem::data {

struct StopSignal::State {
  std::atomic<bool> stopped{false};
  std::mutex mutex;
  std::uint64_t next_id = 1;
  std::vector<std::pair<std::uint64_t, std::function<void()>>> wakers;
  std::uint64_t waking = 0;  // whose function runs; 0: none's
  std::condition_variable woken;
  Waker from_parent;
};

StopSignal::StopSignal() : state_(std::make_unique<State>()) {}
StopSignal::~StopSignal() = default;

std::shared_ptr<StopSignal> StopSignal::below(const std::shared_ptr<StopSignal>& parent) {
  auto signal = std::make_shared<StopSignal>();
  // The child owns the registration, so the plain pointer is valid whenever the parent calls it.
  signal->state_->from_parent = Waker(parent, [child = signal.get()] { child->stop(); });
  return signal;
}

void StopSignal::stop() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.stopped.exchange(true)) return;
  // Not under the lock: a function may need one that is held by a stage just making a Waker.
  while (!state.wakers.empty()) {
    const auto [id, wake] = std::move(state.wakers.back());
    state.wakers.pop_back();
    state.waking = id;
    lock.unlock();
    wake();
    lock.lock();
    state.waking = 0;
    state.woken.notify_all();
  }
}

bool StopSignal::stopped() const noexcept {
  return state_->stopped.load(std::memory_order_acquire);
}

StopSignal::Waker::Waker(std::shared_ptr<StopSignal> signal, std::function<void()> wake)
    : signal_(std::move(signal)) {
  State& state = *signal_->state_;
  std::unique_lock lock(state.mutex);
  id_ = state.next_id++;
  if (!state.stopped.load()) {
    state.wakers.emplace_back(id_, std::move(wake));
    return;
  }
  lock.unlock();
  wake();
}

StopSignal::Waker::Waker(Waker&& other) noexcept
    : signal_(std::exchange(other.signal_, nullptr)), id_(std::exchange(other.id_, 0)) {}

StopSignal::Waker& StopSignal::Waker::operator=(Waker&& other) noexcept {
  std::swap(signal_, other.signal_);
  std::swap(id_, other.id_);
  return *this;
}

StopSignal::Waker::~Waker() {
  if (!signal_) return;
  State& state = *signal_->state_;
  std::unique_lock lock(state.mutex);
  state.woken.wait(lock, [&] { return state.waking != id_; });
  std::erase_if(state.wakers, [this](const auto& waker) { return waker.first == id_; });
}

namespace {

thread_local bool making_trial = false;

struct MakingTrial {
  MakingTrial() { making_trial = true; }
  ~MakingTrial() { making_trial = false; }
};

}  // namespace

IterationContext trial_context() {
  const MakingTrial scope;
  return IterationContext();
}

struct IterationContext::Shared {
  ThreadContext thread;
  const bool trial = making_trial;
  std::mutex mutex;
  struct Passes {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  std::map<std::shared_ptr<SeedSequence>, Passes> passes;
  bool open = false;
  std::shared_ptr<Observer> observer;
  std::unique_ptr<Tuner> tuner_owner;
  std::atomic<Tuner*> tuner{nullptr};  // `tuner_owner`'s, once there is one
};

IterationContext::IterationContext()
    : shared_(std::make_shared<Shared>()), stop_(std::make_shared<StopSignal>()) {
  shared_->thread = tandem::thread_context();
  shared_->thread.trace = nullptr;
  shared_->thread.recorders.clear();
  shared_->thread.draws = nullptr;
  shared_->thread.devices = {HostScope::kDevice};
}

IterationContext::IterationContext(std::shared_ptr<Observer> observer) : IterationContext() {
  shared_->observer = std::move(observer);
  observer_ = shared_->observer.get();
}

StageCounters* IterationContext::counters() const { return stage_ ? &stage_->counters : nullptr; }

IterationContext IterationContext::at(ObservedStage& stage, const DatasetBase& dataset) const {
  IterationContext context = *this;
  context.stage_ = &stage;
  context.dataset_ = &dataset;
  return context;
}

IterationContext IterationContext::below() const {
  IterationContext context = *this;
  context.stop_ = StopSignal::below(stop_);
  return context;
}

void IterationContext::check() const {
  if (stop_->stopped()) throw CancelledError("The iteration was cancelled. Begin another one.");
}

ThreadContext IterationContext::thread_context() const { return shared_->thread; }

IterationContext IterationContext::with(const Options& options) const {
  IterationContext context = *this;
  if (!options_.fusion) context.options_.fusion = options.fusion;
  if (!options_.deterministic) context.options_.deterministic = options.deterministic;
  if (!options_.private_threadpool_size) {
    context.options_.private_threadpool_size = options.private_threadpool_size;
  }
  AutotuneOptions& autotune = context.options_.autotune;
  if (!autotune.enabled) autotune.enabled = options.autotune.enabled;
  if (!autotune.cpu_budget) autotune.cpu_budget = options.autotune.cpu_budget;
  if (!autotune.ram_budget) autotune.ram_budget = options.autotune.ram_budget;
  if (!autotune.handoff_ns) autotune.handoff_ns = options.autotune.handoff_ns;
  if (options.file_shard) context.options_.file_shard = options.file_shard;
  return context;
}

IterationContext IterationContext::whole() const {
  IterationContext context = *this;
  context.options_.file_shard.reset();
  return context;
}

std::int64_t IterationContext::threads(std::int64_t calls) const {
  if (calls != kAutotune) return std::min(calls, kMaxThreads);
  const std::int64_t requested = options_.private_threadpool_size.value_or(0);
  if (requested != 0) return std::min(requested, kMaxThreads);
  if (options_.autotune.enabled.value_or(true)) return kAutotune;
  return cpu_budget(options_.autotune);
}

Tuner& IterationContext::tuner() const {
  if (Tuner* tuner = tuner_if_any()) return *tuner;
  std::lock_guard lock(shared_->mutex);
  if (!shared_->tuner_owner) {
    shared_->tuner_owner = std::make_unique<Tuner>();
    shared_->tuner.store(shared_->tuner_owner.get(), std::memory_order_release);
  }
  return *shared_->tuner_owner;
}

Tuner* IterationContext::tuner_if_any() const {
  return shared_->tuner.load(std::memory_order_acquire);
}

IterationContext IterationContext::repeating() const {
  IterationContext context = *this;
  context.repeating_ = true;
  return context;
}

std::uint64_t IterationContext::next_pass(const std::shared_ptr<SeedSequence>& sequence) const {
  if (shared_->trial) return 0;
  if (!repeating_) return sequence->next();
  std::lock_guard lock(shared_->mutex);
  const auto [at, is_new] = shared_->passes.try_emplace(sequence);
  if (is_new) at->second.first = sequence->begin();
  return at->second.first + at->second.count++;
}

void IterationContext::leave_open() const {
  std::lock_guard lock(shared_->mutex);
  shared_->open = true;
}

void IterationContext::visit_state(StateArchive& state) const {
  std::lock_guard lock(shared_->mutex);
  state.value(shared_->open);
}

void IterationContext::visit_state(StateArchive& state,
                                   const std::shared_ptr<SeedSequence>& sequence) const {
  sequence->visit_state(state);
  std::lock_guard lock(shared_->mutex);
  bool counted = shared_->passes.contains(sequence);
  state.value(counted);
  if (!counted) {
    shared_->passes.erase(sequence);
    return;
  }
  Shared::Passes& passes = shared_->passes[sequence];
  state.value(passes.first);
  state.value(passes.count);
}

void IterationContext::finish() const {
  std::lock_guard lock(shared_->mutex);
  if (shared_->open) return;
  for (const auto& [sequence, passes] : shared_->passes) {
    sequence->complete(passes.first, passes.count);
  }
}

}  // namespace tandem::data
