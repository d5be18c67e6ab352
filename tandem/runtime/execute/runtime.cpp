#include "tandem/runtime/runtime.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/core/machine.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/copy_cancellation.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/runtime/config/configured.h"
#include "tandem/runtime/config/default_options.h"
#include "tandem/runtime/config/environment_names.h"
#include "tandem/runtime/config/make_backends.h"
#include "tandem/runtime/device_inventory.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/program_end.h"
#include "tandem/runtime/execute/running_calls.h"
#include "tandem/runtime/session.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

int threads_of(int requested, const char* which) {
  check_threads(requested, which);
  return requested != 0 ? requested : read_resource_limits().processors;
}

std::uint64_t next_runtime_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1);
}

// Throws InvalidArgumentError unless the text names a task and nothing else.
DeviceSpec read_task(const std::string& text) {
  if (text.empty()) return DeviceSpec::default_task();
  DeviceSpec task = DeviceSpec::parse(text);
  if (!task.job || !task.task || task.type) {
    throw InvalidArgumentError(
        cat("A runtime's task must be such as '/job:worker/task:1', not '", text, "'."));
  }
  if (!task.replica) task.replica = 0;
  return task;
}

// Configuration is closed while the default runtime is made, and open again if that fails.
class DefaultStart {
 public:
  DefaultStart() : options_(default_options().start()) {}
  ~DefaultStart() {
    if (std::uncaught_exceptions() > exceptions_) default_options().start_failed();
  }
  DefaultStart(const DefaultStart&) = delete;
  DefaultStart& operator=(const DefaultStart&) = delete;
  const Runtime::Options& options() const { return options_; }

 private:
  const int exceptions_ = std::uncaught_exceptions();
  Runtime::Options options_;
};

// What ends a copy that makes no way: the thread's cancellation, or the end of its runtime.
std::shared_ptr<const Cancellation> cancellation_of_copies() {
  const ThreadContext& context = thread_context();
  if (!context.runtime && !Runtime::default_exists()) return context.cancellation;
  RunningCalls& calls = Runtime::current().running_calls();
  if (!context.cancellation) return calls.closing();
  if (context.cancellation->joins(calls.closing())) return context.cancellation;
  return calls.closing_or(context.cancellation);
}

// Whether `shutdown` may have to end the default runtime.
std::atomic<Runtime*> g_default{nullptr};

Runtime make_default_runtime() {
  const DefaultStart start;
  return Runtime(start.options());
}

Runtime& default_runtime() {
  // Never destroyed: the program's threads and static objects may use it to the very end.
  static NeverDestroyed<Runtime> runtime(make_default_runtime);
  static const bool known = [] {
    g_default.store(&*runtime, std::memory_order_release);
    std::atexit(drain_default_runtime);  // for programs whose main thread calls no op
    return true;
  }();
  static_cast<void>(known);
  return *runtime;
}

}  // namespace

void drain_default_runtime() {
  if (Runtime* const runtime = g_default.load(std::memory_order_acquire))
    runtime->pending_calls()->drain();
}

// What ops find in a runtime: a session that isolates its state has another view of it.
struct Runtime::View {
  const std::uint64_t id = next_runtime_id();
  std::map<const Device*, std::unique_ptr<ResourceManager>> resources;
  std::map<const Device*, KernelServices> services;
  std::weak_ptr<Runtime> session;  // the alias that sees this; null for the runtime's own

  void make_services(State& state);
};

struct Runtime::State : std::enable_shared_from_this<Runtime::State> {
  explicit State(const Options& options)
      : config(DeviceConfig::with_environment(options.devices)),
        inventory(config),
        task(read_task(options.task)),
        intra(threads_of(options.intra_op_threads, "Intra op")),
        inter(threads_of(options.inter_op_threads, "Inter op")) {}

  Flags flags;
  const DeviceConfig config;
  const DeviceInventory inventory;
  const DeviceSpec task;
  OpRegistry ops;
  KernelRegistry kernels;
  std::atomic<bool> deterministic{false};
  IntraOpPool intra;
  InterOpPool inter;
  FunctionExecutor functions;
  std::vector<std::shared_ptr<Device>> devices;
  std::map<const Device*, PhysicalDevice> physical;
  View view;  // the runtime's own
  const std::shared_ptr<PendingCalls> pending_calls = std::make_shared<PendingCalls>();

  void check_emulated() const;
  void make_devices();

  std::mutex profile_mutex;
  std::string profile;  ///< path

  std::mutex eager_mutex;
  struct EagerState {
    std::shared_ptr<NodeState> state;
    std::uint64_t last_use = 0;
  };
  std::unordered_map<std::string, EagerState> eager_states;
  std::uint64_t eager_uses = 0;

  RunningCalls calls;

  Runtime self{Alias(), *this,
               view};  // what calls see: it lives as long as anything shares the state
  std::atomic<bool> shut_down{false};  // by td::shutdown()
  std::mutex deciding;                 // whether calls are placed
  std::mutex seed_mutex;
  std::optional<std::int64_t> seed;
  std::int64_t seed_calls = 0;
};

Runtime::Runtime() : Runtime(Options{}) {}

// An op that is misspelt would have its kernels all the same.
void Runtime::State::check_emulated() const {
  const char* const origin = emulate_setting(config);
  for (const EmulatedSpec& spec : emulated_specs(config)) {
    for (const std::string& op : spec.without) {
      try {
        static_cast<void>(ops.get(op));
      } catch (const NotFoundError& error) {
        throw InvalidArgumentError(cat(origin, ": without=", op, ": ", error.what()));
      }
    }
  }
}

void Runtime::State::make_devices() {
  inventory.check(config);
  check_emulated();
  std::map<std::string, int> made;  // logical devices are numbered by type
  for (const DeviceInventory::Entry* used : inventory.used(config)) {
    const DeviceInventory::Entry& entry = *used;
    const std::string& type = entry.device.device_type;
    for (const LogicalDeviceOptions& logical : DeviceInventory::cut(config, entry)) {
      DeviceSpec spec = task;
      spec.type = type;
      spec.index = made[type]++;
      devices.push_back(entry.backend->make_device(entry.native, logical, std::move(spec)));
      physical.emplace(devices.back().get(), entry.device);
    }
  }
}

void Runtime::View::make_services(State& state) {
  for (const auto& device : state.devices) {
    auto& manager = resources[device.get()];
    manager = std::make_unique<ResourceManager>();
    KernelServices& kernel_services = services[device.get()];
    kernel_services.device = device.get();
    kernel_services.allocator = &device->allocator();
    kernel_services.intra_op = &state.intra;
    kernel_services.resources = manager.get();
    kernel_services.functions = &state.functions;
    kernel_services.deterministic = &state.deterministic;
  }
}

Runtime::Runtime(Alias /*tag*/, State& state, View& view)
    : state_(std::shared_ptr<State>(), &state), view_(&view), flags_(&state.flags), owner_(false) {}

Runtime::Runtime(const Options& options)
    : state_(std::make_shared<State>(options)), view_(&state_->view), flags_(&state_->flags) {
  State& s = *state_;
  set_copy_cancellation(cancellation_of_copies);
  s.deterministic.store(default_options().deterministic());
  s.make_devices();
  flags_->soft_placement = s.config.soft_placement.value_or(true);
  set_log_placement(s.config.log_placement.value_or(false));
  set_synchronous(s.config.synchronous.value_or(false));
  s.profile = s.config.placement_profile.value_or("");
  flags_->policy = config::policy_of(s.config);
  if (s.config.log_level) tandem::set_log_level(static_cast<LogLevel>(*s.config.log_level));
  warn_of_unknown_variables();
  s.view.make_services(s);
}

Runtime::~Runtime() {
  if (owner_ && state_) close();
}

void Runtime::close() {
  State& s = *state_;
  s.pending_calls->drain();
  {
    std::lock_guard lock(s.deciding);
    if (flags_->closed.exchange(true, std::memory_order_acq_rel)) return;
    flags_->places_calls.store(true,
                               std::memory_order_release);  // where calls find that it is closed
  }
  s.calls.end();
  s.pending_calls->close();
  s.intra.stop();
  s.inter.stop();
}

void Runtime::throw_closed() const {
  if (state_->shut_down.load(std::memory_order_acquire)) {
    throw FailedPreconditionError(
        "td::shutdown() has ended the default runtime, so nothing can be computed in it any more. "
        "Call td::shutdown() last, or not at all, or make a td::Runtime for what comes after it.");
  }
  throw CancelledError(
      "The td::Runtime in which this is computed has been destroyed. Keep it as long as its "
      "scopes, "
      "iterators and sessions are used.");
}

std::shared_ptr<Runtime> Runtime::share() const {
  if (std::shared_ptr<Runtime> session = view_->session.lock()) return session;
  return {state_->shared_from_this(), &state_->self};
}

void shutdown() {
  Runtime* const runtime = g_default.load(std::memory_order_acquire);
  if (!runtime) return;
  if (runtime->running_calls().inside()) {
    throw FailedPreconditionError(
        "td::shutdown() was called from within a function call or a kernel of the default runtime, "
        "which it would wait for. Call it when that has returned.");
  }
  runtime->state_->shut_down.store(true, std::memory_order_release);
  runtime->close();
}

Runtime& Runtime::current() {
  ThreadContext& context = thread_context();
  return context.runtime ? *context.runtime : default_runtime();
}
void Runtime::set_soft_placement(bool on) {
  flags_->soft_placement.store(on, std::memory_order_relaxed);
  decide_whether_calls_are_placed();
}
void Runtime::set_log_placement(bool on) {
  flags_->log_placement.store(on, std::memory_order_relaxed);
  decide_whether_calls_are_placed();
}
void Runtime::decide_whether_calls_are_placed() {
  std::lock_guard lock(state_->deciding);
  // One device is no choice, but what asks for another one is refused without soft placement.
  flags_->places_calls.store(
      closed() || log_placement() || state_->devices.size() > 1 || !soft_placement(),
      std::memory_order_relaxed);
}
bool Runtime::default_exists() { return default_options().started(); }

const DeviceSpec& Runtime::task() const { return state_->task; }
const OpRegistry& Runtime::ops() const { return state_->ops; }
const KernelRegistry& Runtime::kernels() const { return state_->kernels; }
const std::vector<std::shared_ptr<Device>>& Runtime::devices() const { return state_->devices; }
int Runtime::index_of(const Device& device) const {
  const auto found = std::find_if(devices().begin(), devices().end(),
                                  [&](const auto& d) { return d.get() == &device; });
  return found == devices().end() ? -1 : static_cast<int>(found - devices().begin());
}
int Runtime::index_of(std::string_view full_name) const {
  const auto found = std::find_if(devices().begin(), devices().end(),
                                  [&](const auto& d) { return d->name() == full_name; });
  return found == devices().end() ? -1 : static_cast<int>(found - devices().begin());
}
Device& Runtime::default_device() const { return *state_->devices.front(); }
const KernelServices& Runtime::services(const Device& device) const {
  return view_->services.at(&device);
}
IntraOpPool& Runtime::intra_op_pool() const { return state_->intra; }
InterOpPool& Runtime::inter_op_pool() const { return state_->inter; }
ResourceManager& Runtime::resources(const Device& device) const {
  return *view_->resources.at(&device);
}
RunningCalls& Runtime::running_calls() const { return state_->calls; }
std::uint64_t Runtime::id() const { return view_->id; }
const DeviceConfig& Runtime::device_config() const { return state_->config; }
const DeviceInventory& Runtime::inventory() const { return state_->inventory; }
const PhysicalDevice& Runtime::physical_device(const Device& device) const {
  return state_->physical.at(&device);
}
const std::vector<std::shared_ptr<Backend>>& Runtime::backends() const {
  return state_->inventory.backends();
}
std::string Runtime::placement_profile() const {
  std::lock_guard lock(state_->profile_mutex);
  return state_->profile;
}
void Runtime::set_placement_profile(const std::string& path) {
  std::lock_guard lock(state_->profile_mutex);
  state_->profile = path;
}
const std::shared_ptr<PendingCalls>& Runtime::pending_calls() const {
  return state_->pending_calls;
}
void Runtime::set_deterministic(bool on) { state_->deterministic.store(on); }
bool Runtime::deterministic() const { return state_->deterministic.load(); }

std::shared_ptr<NodeState> Runtime::eager_state(const OpDef& op, const AttrMap& attrs) const {
  constexpr std::size_t kKept = 4096;
  std::string key = op.name;
  for (const auto& [name, value] : attrs) key += cat("|", name, "=", value.to_string());
  State& s = *state_;
  std::lock_guard lock(s.eager_mutex);
  // Under a global seed every call without one of its own has attributes that never come again.
  if (s.eager_states.size() >= 2 * kKept) {
    const std::uint64_t oldest = s.eager_uses - kKept;
    std::erase_if(s.eager_states, [&](const auto& e) { return e.second.last_use < oldest; });
  }
  State::EagerState& entry = s.eager_states[key];
  if (!entry.state) entry.state = std::make_shared<NodeState>();
  entry.last_use = s.eager_uses++;
  return entry.state;
}

void Runtime::set_seed(std::int64_t seed) {
  {
    std::lock_guard lock(state_->seed_mutex);
    state_->seed = seed;
    state_->seed_calls = 0;
  }
  // Generators start over, so that the same program gives the same values again.
  std::lock_guard lock(state_->eager_mutex);
  state_->eager_states.clear();
}

// After tf.compat.v1.get_seed: without a global seed an op seed stands beside the default graph
// seed 87654321; with a global seed and no op seed, each call gets the next number; no seed at all
// is (0, 0), which means non-deterministic.
Runtime::SeedPair Runtime::next_seeds(bool has_op_seed, std::int64_t op_seed) {
  constexpr std::int64_t kDefaultGraphSeed = 87654321;
  std::lock_guard lock(state_->seed_mutex);
  SeedPair pair;
  if (state_->seed) {
    pair = {*state_->seed, has_op_seed ? op_seed : state_->seed_calls++};
  } else if (has_op_seed) {
    pair = {kDefaultGraphSeed, op_seed};
  } else {
    return {};
  }
  if (pair.seed == 0 && pair.seed2 == 0) pair.seed2 = 2147483647;  // (0, 0) would mean no seed
  return pair;
}

struct Session::Impl {
  explicit Impl(Runtime::State& runtime, bool isolated)
      : state(runtime.shared_from_this()),
        alias(Runtime::Alias(), runtime, isolated ? view : runtime.view) {
    if (isolated) view.make_services(runtime);
  }
  void close() {
    for (const auto& [device, manager] : view.resources) manager->close();
  }
  const std::shared_ptr<Runtime::State> state;
  Runtime::View view;  // if isolated
  Runtime alias;
};

Session::Session() : Session(Options{}) {}
Session::Session(const Options& options) {
  Runtime& runtime = Runtime::current();
  runtime.check_open();
  impl_ = std::make_shared<Impl>(*runtime.state_, options.isolate_state);
  if (options.isolate_state) impl_->view.session = std::shared_ptr<Runtime>(impl_, &impl_->alias);
}
Session::~Session() {
  if (impl_) impl_->close();
}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    close();
    impl_ = std::move(other.impl_);
  }
  return *this;
}
Runtime& Session::runtime() const {
  if (!impl_) throw FailedPreconditionError("This Session was moved to another.");
  return impl_->alias;
}
bool Session::isolated() const { return runtime().view_ == &impl_->view; }
void Session::close() {
  if (impl_) impl_->close();
}
void Session::reset(const std::string& container) const {
  for (const auto& [device, manager] : runtime().view_->resources) manager->clear(container);
}

namespace {

struct BegunScope {
  const RuntimeScope* scope;
  std::shared_ptr<Runtime> before;  // what was current when it began
};

std::vector<BegunScope>& begun_scopes() {
  thread_local std::vector<BegunScope> scopes;
  return scopes;
}

}  // namespace

RuntimeScope::RuntimeScope(Runtime& runtime) {
  if (runtime.closed()) {
    throw FailedPreconditionError(
        "A RuntimeScope was begun for a td::Runtime that is closed. Make another td::Runtime.");
  }
  ThreadContext& context = thread_context();
  begun_scopes().push_back({this, context.runtime});
  context.runtime = runtime.share();
}

RuntimeScope::~RuntimeScope() {
  std::vector<BegunScope>& scopes = begun_scopes();
  const auto found = std::find_if(scopes.rbegin(), scopes.rend(),
                                  [this](const BegunScope& begun) { return begun.scope == this; });
  if (found == scopes.rend()) return;  // another thread's: that thread keeps its runtime
  const auto at = std::prev(found.base());
  if (std::next(at) == scopes.end()) {
    thread_context().runtime = std::move(at->before);
  } else {
    std::next(at)->before = std::move(at->before);
  }
  scopes.erase(at);
}

}  // namespace tandem
