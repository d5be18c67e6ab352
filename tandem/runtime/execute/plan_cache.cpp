#include "tandem/runtime/execute/plan_cache.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/internal/frames.h"
#include "tandem/runtime/config/default_options.h"
#include "tandem/runtime/execute/adaptive_plan.h"
#include "tandem/runtime/execute/device_fusion.h"
#include "tandem/runtime/execute/device_plan.h"
#include "tandem/runtime/execute/framed_plan.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/kernel_evaluator.h"
#include "tandem/runtime/execute/prepare.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// Sets of shapes that get a plan each before sizes that differ are left open.
constexpr std::size_t kPlansBeforeSharing = 2;
// Sets of shapes remembered, from which follows what varies, and what varies together.
constexpr std::size_t kShapesRemembered = 8;
// Calls of the same sizes in a row after which they get a plan of their own.
constexpr int kCallsToSettle = 64;
// A search goes through all plans of a function.
constexpr std::size_t kMaxPlans = 256;
// Beyond this size the plan does not look for pairs of values that may overlap at all sizes.
constexpr std::size_t kMaxSharedNodes = 4096;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool some_do_not_compute(const Runtime& runtime) {
  const auto& devices = runtime.devices();
  return std::any_of(devices.begin(), devices.end(),
                     [](const auto& device) { return !device->properties().computes; });
}

// Variables may hold what was not computed by the time they are read.
bool uses_resources(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    const std::vector<DType>& made = node->output_dtypes();
    return std::any_of(made.begin(), made.end(),
                       [](DType t) { return t == DType::kResource || is_ref(t); });
  });
}

// What is not computed is found as a graph with control flow runs.
bool placed_alike(const CallPlaces& a, const CallPlaces& b) {
  return a.default_device == b.default_device && a.args == b.args && a.lost == b.lost;
}

std::vector<Shape> shapes_of(std::span<const Array> args) {
  std::vector<Shape> shapes;
  for (const Array& a : args) shapes.push_back(a.shape());
  return shapes;
}

// Ops that passes make of several, by name.
std::map<std::string, int> fused_ops(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const auto& node : graph.nodes()) {
    if (node->op().name.front() == '_') ++counts[node->op().name];
  }
  return counts;
}

PlanBudget& budget_of(const Runtime& runtime) {
  return static_cast<FunctionExecutor*>(runtime.services(runtime.default_device()).functions)
      ->plan_budget();
}

}  // namespace

struct PlanCache::Body {
  std::mutex mutex;  // guards what follows until it is ready, then nothing changes it
  bool ready = false;
  OptimizerOptions options;
  OptimizerOptions before_placing;  // those that apply to `function`
  std::shared_ptr<MutableFunction> function;
  bool holds_control_flow = false;

  // Where there are several devices, nodes are placed before any are fused.
  void get_ready(Runtime& runtime, const Function& of, bool is_placed) {
    std::lock_guard lock(mutex);
    if (ready) return;
    auto body = std::make_shared<MutableFunction>(of);
    prepare(*body, runtime.ops());
    check_requests(runtime, *body);
    KernelEvaluator evaluator(runtime);
    options = default_options().optimizer();
    if (!of.may_optimize()) options.disable_meta_optimizer = true;
    before_placing = is_placed ? options.without_fusion() : options;
    if (!options.disable_meta_optimizer) optimize(*body, runtime.ops(), evaluator, before_placing);
    holds_control_flow = tandem::holds_control_flow(body->graph);
    function = std::move(body);
    ready = true;
  }
  // For arguments of these shapes. `sizes`: of the calls, where shapes leave them open.
  std::shared_ptr<MutableFunction> specialized(Runtime& runtime,
                                               const std::vector<PartialShape>& shapes,
                                               SizesOfCalls* sizes = nullptr) const {
    if (options.disable_meta_optimizer) return function;
    auto body = std::make_shared<MutableFunction>(function->clone());
    KernelEvaluator evaluator(runtime);
    specialize(*body, shapes, runtime.ops(), evaluator, before_placing, sizes);
    return body;
  }
};

struct PlanCache::Making {
  std::uint64_t generation = 0;
  std::shared_ptr<Body> body;
  std::shared_ptr<NodeStates> states;
  std::optional<PlacementChoice> choice;
  std::vector<Shape> shapes;
  std::unique_ptr<const CallPlaces> places;
  std::shared_ptr<VaryingSizes> varying;        // null: a plan for `shapes` alone
  std::shared_ptr<const VaryingSizes> pattern;  // as `varying`, but not changed by the optimizer
  bool unshareable = false;                     // found while making
  bool over = false;                            // guarded by the cache's mutex

  // Whether it may be made for a call.
  bool serves(std::span<const Array> args, const CallPlaces* at) const {
    if (pattern) return at == nullptr && pattern->fits(args);
    if ((at == nullptr) != (places == nullptr) || (at && !(*at == *places))) return false;
    return std::equal(shapes.begin(), shapes.end(), args.begin(),
                      [](const Shape& shape, const Array& arg) { return shape == arg.shape(); });
  }

  Entry make(Runtime& runtime, const Function& of) {
    body->get_ready(runtime, of, places != nullptr);
    Entry entry;
    if (places) entry.places = std::make_unique<const CallPlaces>(*places);
    if (body->holds_control_flow) {
      entry.any_shapes = true;
      entry.plan = framed(runtime);
      return entry;
    }
    const std::vector<PartialShape> known(shapes.begin(), shapes.end());
    std::shared_ptr<MutableFunction> function = body->specialized(runtime, known);
    if (varying && share(runtime, *function, entry)) return entry;
    entry.shapes = shapes;
    if (places) entry.plan = on_devices(runtime, function);
    if (!entry.plan)
      entry.plan = std::make_shared<AdaptivePlan>(runtime, function, ArgShapes{known, {}}, states);
    return entry;
  }

 private:
  // Only if what computes values does so in the same way as in a plan for these shapes alone.
  bool share(Runtime& runtime, const MutableFunction& exact, Entry& entry) {
    unshareable = true;
    if (exact.graph.num_nodes() > kMaxSharedNodes) return false;
    try {
      const auto function = body->specialized(runtime, varying->shapes(), varying.get());
      if (fused_ops(function->graph) != fused_ops(exact.graph)) return false;
      entry.plan = std::make_shared<AdaptivePlan>(runtime, function,
                                                  ArgShapes{varying->shapes(), varying}, states);
    } catch (const Error&) {  // a plan for these shapes does without what failed
      return false;
    }
    unshareable = false;
    entry.varying = varying;
    return true;
  }

  const PlacementChoice& placement_choice(const Runtime& runtime) {
    if (!choice) choice = PlacementChoice::of(runtime);
    return *choice;
  }
  std::shared_ptr<Executable> framed(Runtime& runtime) {
    if (!places) return std::make_shared<FramedPlan>(runtime, body->function, states);
    const auto function = std::make_shared<MutableFunction>(body->function->clone());
    Placement placement = place_nodes(runtime, *function, places->args, places->default_device,
                                      placement_choice(runtime));
    KernelEvaluator evaluator(runtime);
    fuse_placed(*function, placement, runtime.ops(), runtime.kernels(), evaluator, body->options);
    return std::make_shared<FramedPlan>(runtime, function, states, &placement);
  }
  // Null if the first CPU does everything, with values that are there; `function` is then fused.
  std::shared_ptr<Executable> on_devices(Runtime& runtime,
                                         std::shared_ptr<MutableFunction>& function) {
    const std::vector<PartialShape> known(shapes.begin(), shapes.end());
    auto placed = std::make_shared<PlacedFunction>(
        place_function(runtime, with_shapes(*function, known), places->args, places->default_device,
                       placement_choice(runtime), body->options));
    if (on_one_cpu(*placed) && !places->unmaterialized &&
        !(some_do_not_compute(runtime) && uses_resources(placed->function.graph))) {
      function = std::make_shared<MutableFunction>(std::move(placed->function));
      return nullptr;
    }
    return std::make_shared<DevicePlan>(runtime, std::move(placed), states);
  }
};

bool PlanCache::Entry::serves(std::span<const Array> args, const CallPlaces* at) const {
  if (!varying && !any_shapes) return is_for(args, at);
  if ((at == nullptr) != (places == nullptr)) return false;
  if (any_shapes) return at == nullptr || placed_alike(*places, *at);
  return varying->fits(args);
}

bool PlanCache::current(const Runtime& runtime, const NodeStates* session) const {
  return session_.get() == session && runtime_id_ == runtime.id() &&
         options_version_ == default_options().optimizer_version();
}

void PlanCache::adopt(Runtime& runtime, NodeStates* session) {
  if (runtime_id_ != runtime.id() || session_.get() != session) {
    forget();
    session_ = session ? session->shared_from_this() : nullptr;
    states_ = std::make_shared<NodeStates>(session_);
    choice_.reset();
    stats_ = {};
    runtime_id_ = runtime.id();
    budget_ = &budget_of(runtime);
  }
  if (const std::uint64_t version = default_options().optimizer_version();
      version != options_version_) {
    forget();
    options_version_ = version;
  }
  if (!body_) body_ = std::make_shared<Body>();
}

void PlanCache::forget() {
  ++generation_;
  plans_.clear();
  body_.reset();
  planned_shapes_.clear();
  unshareable_ = false;
}

std::optional<PlacementChoice> PlanCache::choice(const Runtime& runtime) {
  std::lock_guard lock(mutex_);
  return runtime_id_ == runtime.id() ? choice_ : std::nullopt;
}

void PlanCache::forget_places() {
  std::vector<Entry> dropped;
  std::lock_guard lock(mutex_);
  ++generation_;
  dropped.swap(plans_);
  choice_.reset();
}

[[gnu::noinline]] std::shared_ptr<Executable> PlanCache::get_slowly(
    std::unique_lock<std::mutex>& lock, Runtime& runtime, const Function& function,
    std::span<const Array> args, const CallPlaces* places, NodeStates* session) {
  if (lock.owns_lock()) {
    if (!current(runtime, session)) adopt(runtime, session);
    if (auto plan = find(args, places)) return plan;
    return make(lock, runtime, function, args, places, session);
  }
  const std::uint32_t before = plans_added_.load(std::memory_order_relaxed);
  const auto start = Clock::now();
  lock.lock();
  const double waited = seconds_since(start);
  if (!current(runtime, session)) adopt(runtime, session);
  auto plan = find(args, places);
  if (!plan) return make(lock, runtime, function, args, places, session);
  // Other calls have the lock for less time than can be measured.
  if (making_.empty() && before == plans_added_.load(std::memory_order_relaxed)) return plan;
  stats_.longest_stall = std::max(stats_.longest_stall, waited);
  budget_->stalled(waited);
  return plan;
}

std::shared_ptr<Executable> PlanCache::use(std::size_t entry) {
  const auto at = plans_.begin() + static_cast<std::ptrdiff_t>(entry);
  if (entry != 0) std::rotate(plans_.begin(), at, at + 1);
  plans_.front().last_use = budget_->now();
  return plans_.front().plan;
}

std::shared_ptr<Executable> PlanCache::find(std::span<const Array> args, const CallPlaces* places) {
  std::size_t shared = plans_.size();
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    if (plans_[i].varying && shared != plans_.size()) continue;
    if (!plans_[i].serves(args, places)) continue;
    if (!plans_[i].varying) return use(i);
    shared = i;
  }
  if (shared == plans_.size()) return nullptr;
  // One caller makes the plan for sizes that are there to stay; others go on meanwhile.
  if (has_settled(plans_[shared], args) && !being_made(args, places)) return nullptr;
  return use(shared);
}

bool PlanCache::has_settled(Entry& entry, std::span<const Array> args) {
  std::int64_t sizes[SymbolicDim::kMaxSymbols];
  const std::span<std::int64_t> now(sizes, static_cast<std::size_t>(entry.varying->num_symbols()));
  entry.varying->read(args, now);
  if (std::equal(now.begin(), now.end(), entry.sizes.begin(), entry.sizes.end()))
    return ++entry.same_sizes >= kCallsToSettle;
  entry.sizes.assign(now.begin(), now.end());
  entry.same_sizes = 0;
  return false;
}

std::shared_ptr<PlanCache::Making> PlanCache::being_made(std::span<const Array> args,
                                                         const CallPlaces* places) const {
  for (const auto& making : making_) {
    if (making->generation == generation_ && making->serves(args, places)) return making;
  }
  return nullptr;
}

std::shared_ptr<VaryingSizes> PlanCache::sizes_to_share(const Function& function,
                                                        std::span<const Array> args) const {
  if (unshareable_ || planned_shapes_.size() < kPlansBeforeSharing) return nullptr;
  // One that is there and left this call to others has seen its sizes for long.
  for (const Entry& entry : plans_) {
    if (entry.varying && entry.varying->fits(args)) return nullptr;
  }
  std::vector<std::vector<Shape>> calls{shapes_of(args)};
  calls.insert(calls.end(), planned_shapes_.begin(), planned_shapes_.end());
  return VaryingSizes::of_calls(function.args(), calls);
}

std::shared_ptr<Executable> PlanCache::make(std::unique_lock<std::mutex>& lock, Runtime& runtime,
                                            const Function& function, std::span<const Array> args,
                                            const CallPlaces* places, NodeStates* session) {
  while (const std::shared_ptr<Making> other = being_made(args, places)) {
    made_.wait(lock, [&] { return other->over; });
    if (!current(runtime, session)) adopt(runtime, session);
    if (auto plan = find(args, places)) return plan;
  }
  const auto making = std::make_shared<Making>();
  making->generation = generation_;
  making->body = body_;
  making->states = states_;
  making->choice = choice_;
  making->shapes = shapes_of(args);
  if (places) {
    making->places = std::make_unique<const CallPlaces>(*places);
  } else if ((making->varying = sizes_to_share(function, args))) {
    making->pattern = std::make_shared<const VaryingSizes>(*making->varying);
  }
  making_.push_back(making);
  PlanBudget* const budget = budget_;
  lock.unlock();

  const auto over = [&] {
    making->over = true;
    making_.erase(std::find(making_.begin(), making_.end(), making));
    made_.notify_all();
  };
  const auto start = Clock::now();
  Entry entry;
  try {
    entry = making->make(runtime, function);
  } catch (...) {  // who waits for the plan tries on its own, for an error of its own
    lock.lock();
    over();
    throw;
  }
  const double seconds = seconds_since(start);
  const bool shared = entry.varying != nullptr;
  std::vector<Entry> dropped;  // after the lock is released
  lock.lock();
  over();
  std::shared_ptr<Executable> plan = entry.plan;
  if (making->generation == generation_) {
    ++stats_.made;
    stats_.shared += shared ? 1 : 0;
    stats_.seconds += seconds;
    if (!choice_) choice_ = making->choice;
    unshareable_ = unshareable_ || making->unshareable;
    planned_shapes_.insert(planned_shapes_.begin(), std::move(making->shapes));
    if (planned_shapes_.size() > kShapesRemembered) planned_shapes_.pop_back();
    entry.last_use = budget->now();
    if (plans_.size() == kMaxPlans) {
      dropped.push_back(std::move(plans_.back()));
      plans_.pop_back();
    }
    plans_.insert(plans_.begin(), std::move(entry));
    plans_added_.fetch_add(1, std::memory_order_relaxed);
  }
  lock.unlock();
  budget->made(shared_from_this(), shared, seconds);
  return plan;
}

PlanStats PlanCache::stats(const Runtime& runtime) {
  const std::vector<PlanUse> kept = uses();
  std::lock_guard lock(mutex_);
  if (runtime_id_ != runtime.id()) return {};
  PlanStats stats = stats_;
  stats.kept = static_cast<std::int64_t>(kept.size());
  for (const PlanUse& use : kept) stats.bytes += use.bytes();
  return stats;
}

std::vector<PlanUse> PlanCache::uses() {
  std::vector<PlanUse> all;
  {
    std::lock_guard lock(mutex_);
    for (const Entry& entry : plans_)
      all.push_back({entry.plan, entry.last_use, /*latest=*/&entry == &plans_.front()});
  }
  for (PlanUse& use : all) {
    use.idle_bytes = use.plan->idle_bytes();
    use.plan_bytes = use.plan->plan_bytes();
  }
  return all;
}

bool PlanCache::evict(const Executable& plan) {
  Entry dropped;
  std::lock_guard lock(mutex_);
  for (std::size_t i = 1; i < plans_.size(); ++i) {  // the first one is in use
    if (plans_[i].plan.get() != &plan) continue;
    dropped = std::move(plans_[i]);
    plans_.erase(plans_.begin() + static_cast<std::ptrdiff_t>(i));
    ++stats_.evicted;
    return true;
  }
  return false;
}

}  // namespace tandem
