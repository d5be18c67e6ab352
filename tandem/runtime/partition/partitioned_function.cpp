#include "tandem/runtime/partition/partitioned_function.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/rendezvous.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/step_scope.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

Runtime& task_of(const GraphPart& part, const std::vector<Runtime*>& tasks) {
  const DeviceSpec task = DeviceSpec::parse(part.name).task_spec();
  const auto found =
      std::find_if(tasks.begin(), tasks.end(), [&](Runtime* t) { return t->task() == task; });
  if (found != tasks.end()) return **found;
  std::string known;
  for (Runtime* t : tasks) known += cat(known.empty() ? "" : ", ", t->task().to_string());
  throw InvalidArgumentError(
      cat("A part of the graph belongs to ", part.name, ", but the tasks are ", known, "."));
}

// The first failure of a node ends more than what waits in the rendezvous: a part whose node failed
// may itself wait in a queue for what is never put there.
class StepRendezvous final : public Rendezvous {
 public:
  StepRendezvous(LocalRendezvous& local, std::shared_ptr<Cancellation> cancellation)
      : local_(local), cancellation_(std::move(cancellation)) {}

  void send(const RendezvousKey& key, Array value, bool is_dead) override {
    local_.send(key, std::move(value), is_dead);
  }
  void recv_async(const RendezvousKey& key, const Cancellation* cancellation,
                  RecvDone done) override {
    local_.recv_async(key, cancellation, std::move(done));
  }
  void start_abort(std::exception_ptr error) override {
    local_.start_abort(std::move(error));
    cancellation_->cancel();
  }

 private:
  LocalRendezvous& local_;
  const std::shared_ptr<Cancellation> cancellation_;
};

// A value sent by an earlier incarnation would never arrive.
void check_incarnations(const GraphPart& part, const Runtime& runtime) {
  for (const auto& node : part.function->body().nodes()) {
    if (node->kind() != NodeKind::kSend) continue;
    const std::string& name = node->attr<std::string>("send_device");
    const int device = runtime.index_of(name);
    if (device < 0) {
      throw InvalidArgumentError(cat(node->describe(), " sends from ", name, ", but the task ",
                                     part.name, " has no such device."));
    }
    const std::uint64_t incarnation =
        runtime.devices()[static_cast<std::size_t>(device)]->incarnation();
    if (static_cast<std::uint64_t>(node->attr<std::int64_t>("send_device_incarnation")) !=
        incarnation) {
      throw InvalidArgumentError(
          cat(node->describe(), " sends from another incarnation of ", name,
              ": the graph was partitioned for a task that has been started again. Partition it "
              "again."));
    }
  }
}

}  // namespace

// The parts of one step on their threads.
class PartitionedFunction::Step {
 public:
  Step(const PartitionedFunction& function, std::vector<Array> args, LocalRendezvous& rendezvous)
      : function_(function),
        args_(std::move(args)),
        results_(function.num_results_),
        rendezvous_(rendezvous),
        cancellation_(std::make_shared<Cancellation>(thread_context().cancellation, nullptr)),
        aborting_(make_ref<StepRendezvous>(rendezvous_, cancellation_)),
        scope_(cancellation_) {
    scope_.step().rendezvous = aborting_.get();
  }

  std::vector<Array> operator()() {
    std::vector<std::thread> threads;
    for (std::size_t p = 1; p < function_.parts_.size(); ++p)
      threads.emplace_back([this, p] { run(p); });
    if (!function_.parts_.empty()) run(0);
    for (std::thread& thread : threads) thread.join();
    if (error_) {
      // Others may have seen the failure before the part that failed ended.
      const std::exception_ptr first = rendezvous_.error();
      try {
        std::rethrow_exception(first ? first : error_);
      } catch (...) {
        scope_.rethrow();
      }
    }
    if (const std::vector<std::string> left = rendezvous_.unreceived(); !left.empty()) {
      throw InternalError(cat("The step left ", left.size(),
                              left.size() == 1 ? " value" : " values", " that no part received, '",
                              left.front(),
                              "' for one. The parts of the graph do not fit together."));
    }
    return std::move(results_);
  }

 private:
  void run(std::size_t p) {
    const GraphPart& part = function_.parts_[p];
    try {
      Runtime& runtime = *function_.runtime_of_[p];
      ThreadContext context;
      context.runtime = runtime.share();
      context.cancellation = cancellation_;
      const ThreadContextScope thread(std::move(context));
      std::vector<Array> args;
      for (const int a : part.args) args.push_back(args_[static_cast<std::size_t>(a)]);
      std::vector<Array> results = FunctionExecutor::run_in(
          scope_.step(), *part.function, std::move(args), runtime.default_device());
      for (std::size_t r = 0; r < part.results.size(); ++r)
        results_[static_cast<std::size_t>(part.results[r])] = std::move(results[r]);
      rendezvous_.close_source(part.name);
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void fail(std::exception_ptr error) {
    {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
    }
    aborting_->start_abort(std::move(error));
  }

  const PartitionedFunction& function_;
  const std::vector<Array> args_;
  std::vector<Array> results_;  // each is written by one part
  LocalRendezvous& rendezvous_;
  const std::shared_ptr<Cancellation> cancellation_;
  const Ref<StepRendezvous> aborting_;
  StepScope scope_;
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_: the first
};

PartitionedFunction::PartitionedFunction(std::vector<GraphPart> parts, std::vector<Runtime*> tasks)
    : parts_(std::move(parts)) {
  check_parts(parts_);
  for (const GraphPart& part : parts_) {
    Runtime& runtime = task_of(part, tasks);
    check_incarnations(part, runtime);
    runtime_of_.push_back(&runtime);
    for (const int a : part.args) num_args_ = std::max(num_args_, static_cast<std::size_t>(a) + 1);
    for (const int r : part.results)
      num_results_ = std::max(num_results_, static_cast<std::size_t>(r) + 1);
  }
}

PartitionedFunction::~PartitionedFunction() = default;

std::vector<Array> PartitionedFunction::run(std::vector<Array> args) const {
  const Ref<LocalRendezvous> rendezvous = make_ref<LocalRendezvous>();
  return run(std::move(args), *rendezvous);
}

std::vector<Array> PartitionedFunction::run(std::vector<Array> args,
                                            LocalRendezvous& rendezvous) const {
  if (args.size() < num_args_) {
    throw InvalidArgumentError(
        cat("The partitioned function takes ", num_args_, " arguments but got ", args.size(), "."));
  }
  return Step(*this, std::move(args), rendezvous)();
}

std::vector<PartitionDevice> devices_of(std::span<Runtime* const> tasks) {
  std::vector<PartitionDevice> devices;
  for (const Runtime* task : tasks) {
    for (const auto& device : task->devices())
      devices.push_back({device->name(), device->incarnation()});
  }
  return devices;
}

}  // namespace tandem
