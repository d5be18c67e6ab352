#include "tandem/runtime/runtime.h"

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/core/machine.h"
#include "tandem/device/copy_cancellation.h"
#include "tandem/runtime/config/configured.h"
#include "tandem/runtime/config/default_options.h"
#include "tandem/runtime/config/environment_names.h"
#include "tandem/runtime/config/make_backends.h"
#include "tandem/runtime/device_inventory.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/running_calls.h"
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
Cancelled cancellation_of_copies() {
  const ThreadContext& context = thread_context();
  std::shared_ptr<const Cancellation> closing;
  if (context.runtime || Runtime::default_exists())
    closing = Runtime::current().running_calls().closing();
  return [callers = context.cancellation, closing = std::move(closing)] {
    return (callers && callers->cancelled()) || (closing && closing->cancelled());
  };
}

Runtime make_default_runtime() {
  const DefaultStart start;
  return Runtime(start.options());
}

Runtime& default_runtime() {
  // Destroyed at exit like any static object; tensors and functions that live longer do not need
  // it.
  static Runtime runtime = make_default_runtime();
  return runtime;
}

}  // namespace

struct Runtime::State {
  explicit State(const Options& options)
      : config(DeviceConfig::with_environment(options.devices)),
        inventory(config),
        intra(threads_of(options.intra_op_threads, "Intra op")),
        inter(threads_of(options.inter_op_threads, "Inter op")) {}

  const std::uint64_t id = next_runtime_id();
  const DeviceConfig config;
  const DeviceInventory inventory;
  OpRegistry ops;
  KernelRegistry kernels;
  std::atomic<bool> deterministic{false};
  IntraOpPool intra;
  InterOpPool inter;
  FunctionExecutor functions;
  std::vector<std::shared_ptr<Device>> devices;
  std::map<const Device*, std::unique_ptr<ResourceManager>> resources;
  std::map<const Device*, PhysicalDevice> physical;
  std::map<const Device*, KernelServices> services;
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

  std::mutex deciding;  // whether calls are placed
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
      DeviceSpec spec{.job = "localhost", .replica = 0, .task = 0, .type = type, .index = {}};
      spec.index = made[type]++;
      devices.push_back(entry.backend->make_device(entry.native, logical, std::move(spec)));
      physical.emplace(devices.back().get(), entry.device);
    }
  }
}

Runtime::Runtime(const Options& options) : state_(std::make_unique<State>(options)) {
  State& s = *state_;
  set_copy_cancellation(cancellation_of_copies);
  s.deterministic.store(default_options().deterministic());
  s.make_devices();
  soft_placement_ = s.config.soft_placement.value_or(true);
  set_log_placement(s.config.log_placement.value_or(false));
  set_synchronous(s.config.synchronous.value_or(false));
  s.profile = s.config.placement_profile.value_or("");
  policy_ = config::policy_of(s.config);
  if (s.config.log_level) tandem::set_log_level(static_cast<LogLevel>(*s.config.log_level));
  warn_of_unknown_variables();
  for (const auto& device : s.devices) {
    auto& resources = s.resources[device.get()];
    resources = std::make_unique<ResourceManager>();
    KernelServices& services = s.services[device.get()];
    services.device = device.get();
    services.allocator = &device->allocator();
    services.intra_op = &s.intra;
    services.resources = resources.get();
    services.functions = &s.functions;
    services.deterministic = &s.deterministic;
  }
}

Runtime::~Runtime() {
  if (!state_) return;
  // A scope of the calling thread that outlives it leaves the default runtime in its place.
  if (thread_context().runtime == this) thread_context().runtime = nullptr;
  state_->pending_calls->drain();
  state_->calls.end();
  state_->pending_calls->close();
}

Runtime& Runtime::current() {
  ThreadContext& context = thread_context();
  return context.runtime ? *context.runtime : default_runtime();
}
void Runtime::set_soft_placement(bool on) {
  soft_placement_.store(on, std::memory_order_relaxed);
  decide_whether_calls_are_placed();
}
void Runtime::set_log_placement(bool on) {
  log_placement_.store(on, std::memory_order_relaxed);
  decide_whether_calls_are_placed();
}
void Runtime::decide_whether_calls_are_placed() {
  std::lock_guard lock(state_->deciding);
  // One device is no choice, but what asks for another one is refused without soft placement.
  needs_placement_.store(log_placement() || state_->devices.size() > 1 || !soft_placement(),
                         std::memory_order_relaxed);
}
bool Runtime::default_exists() { return default_options().started(); }

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
  return state_->services.at(&device);
}
IntraOpPool& Runtime::intra_op_pool() const { return state_->intra; }
InterOpPool& Runtime::inter_op_pool() const { return state_->inter; }
ResourceManager& Runtime::resources(const Device& device) const {
  return *state_->resources.at(&device);
}
RunningCalls& Runtime::running_calls() const { return state_->calls; }
std::uint64_t Runtime::id() const { return state_->id; }
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

RuntimeScope::RuntimeScope(Runtime& runtime) : saved_(thread_context().runtime) {
  thread_context().runtime = &runtime;
}
RuntimeScope::~RuntimeScope() { thread_context().runtime = saved_; }

}  // namespace tandem
