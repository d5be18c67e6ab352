#include "tandem/runtime/execute/device_plan.h"

#include <algorithm>
#include <utility>

#include "tandem/device/memory_space.h"
#include "tandem/device/segment.h"
#include "tandem/placement/cost_model.h"
#include "tandem/runtime/execute/alike_steps.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/device_run.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

// Beyond this a copy has its own stream, beside the kernels.
constexpr double kMaxSegmentCopy = 256 << 10;

// What others wait for instead of waiting for each of its control inputs: on the host it would cut
// the segments around it in two.
bool only_joins_control(const Node& node) {
  return node.kind() == NodeKind::kPlain && !node.op().traits.stateful && node.inputs().empty() &&
         node.num_outputs() == 0;
}

}  // namespace

DevicePlan::DevicePlan(Runtime& runtime, std::shared_ptr<const PlacedFunction> placed,
                       std::shared_ptr<NodeStates> states)
    : runtime_(runtime),
      placed_(std::move(placed)),
      states_(std::move(states)),
      plan_(runtime, placed_, *states_) {
  make_tasks();
  if (plan_.device_constants().size() != 0) make_first_tasks();
  find_segments();
}

DevicePlan::~DevicePlan() = default;

void DevicePlan::make_tasks() {
  const DeviceSet& devices = placed_->placement.devices;
  const CostModel costs(devices);
  TaskGraph& tasks = schedule_.tasks;
  tasks.lanes = TaskGraph::lanes_of(devices);
  const auto& steps = plan_.steps();
  // Host threads take what is ready by themselves; a step that waits for another delays no other.
  for (Lane& lane : tasks.lanes) {
    if (!devices.devices[static_cast<std::size_t>(lane.device)].host_memory) continue;
    lane.width = lane.depth = static_cast<int>(std::max<std::size_t>(steps.size(), 2));
  }
  for (const Step& step : steps) {
    const Node& node = *step.node;
    const bool host_device = devices.devices[static_cast<std::size_t>(step.device)].host_memory;
    const bool host = host_device || calls_functions(node.kind()) ||
                      (!is_copy(node) && ((is_host_work(node) && !only_joins_control(node)) ||
                                          only_asynchronous(*step.kernels)));
    Task task;
    task.node = &node;
    StepWork work;
    if (is_copy(node)) {
      const bool out = node.kind() == NodeKind::kCopyToHost;
      const double bytes = CostModel::output_bytes(node, 0);
      task.lane = 3 * step.device + (out ? Lane::kCopyOut : Lane::kCopyIn);
      task.seconds =
          out ? devices.copy_seconds(step.device, 0, bytes)
              : devices.copy_seconds(plan_.slot_memory(step.inputs[0]), step.device, bytes);
    } else {
      task.lane = host ? 0 : 3 * step.device;
      task.seconds = costs.seconds(node, step.device);
      if (!host) {
        const KernelWork w =
            work_of(node, *runtime_.devices()[static_cast<std::size_t>(step.device)]);
        work = {w.flops, w.bytes};
      }
    }
    on_host_.push_back(host && !is_copy(node));
    copies_.push_back(is_copy(node) ? 1 : 0);
    work_.push_back(work);
    tasks.add(task);
  }
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (int before : steps[s].before) tasks.add_edge(before, static_cast<int>(s));
  }
  schedule_.priority = tasks.remaining_path();
}

// Makes copies from the host, for which their readers wait.
void DevicePlan::make_first_tasks() {
  const DeviceSet& devices = placed_->placement.devices;
  const DeviceConstants& constants = plan_.device_constants();
  TaskGraph& tasks = first_schedule_.tasks;
  tasks = schedule_.tasks;
  std::vector<int> task_of(static_cast<std::size_t>(plan_.num_slots()), -1);
  for (int c = 0; c < constants.size(); ++c) {
    const int slot = plan_.constant_slots()[static_cast<std::size_t>(c)];
    const int memory = plan_.slot_memory(slot);
    Task task;
    task.lane = TaskGraph::copy_lane(0, memory);
    task.seconds =
        devices.copy_seconds(0, memory, static_cast<double>(constants.value(c).num_bytes()));
    task_of[static_cast<std::size_t>(slot)] = tasks.add(task);
  }
  for (std::size_t s = 0; s < plan_.steps().size(); ++s) {
    for (int slot : plan_.steps()[s].inputs) {
      const int task = task_of[static_cast<std::size_t>(slot)];
      if (task >= 0) tasks.add_edge(task, static_cast<int>(s));
    }
  }
  first_schedule_.priority = tasks.remaining_path();
}

// A step of the device's compute stream, or a copy that is sooner made in its order than waited
// for.
bool DevicePlan::joins_segments(int step) const {
  const Step& s = plan_.steps()[static_cast<std::size_t>(step)];
  if (!is_copy(*s.node)) return !on_host(step);
  const int from = plan_.slot_memory(s.inputs[0]), to = plan_.slot_memory(s.outputs[0]);
  return (from == 0 || to == 0) && s.node->output_shape(0).is_fully_known() &&
         CostModel::output_bytes(*s.node, 0) <= kMaxSegmentCopy;
}

// Several devices that work on one graph wait for each other piece by piece, and so do the parts of
// a graph and steps that wait for something outside of it: there each step stays a piece.
void DevicePlan::find_segments() {
  schedule_.single = Pieces::single(schedule_.tasks);
  const bool has_first = !first_schedule_.tasks.tasks.empty();
  if (has_first) first_schedule_.single = Pieces::single(first_schedule_.tasks);
  int device = 0;
  const int count = static_cast<int>(plan_.steps().size());
  for (int s = 0; s < count; ++s) {
    const Step& step = plan_.steps()[static_cast<std::size_t>(s)];
    if (is_transfer(step.node->kind())) return;
    if (copies_[static_cast<std::size_t>(s)] != 0) continue;
    if (on_host(s)) {
      if (!calls_functions(step.node->kind()) && only_asynchronous(*step.kernels)) return;
      continue;
    }
    if (device != 0 && step.device != device) return;
    device = step.device;
  }
  if (device == 0 || !segment_stream(*runtime_.devices()[static_cast<std::size_t>(device)])) return;
  for (int s = 0; s < count; ++s) {
    const bool mine = plan_.steps()[static_cast<std::size_t>(s)].device == device;
    joins_.push_back(mine && joins_segments(s) ? 3 * device + Lane::kCompute : -1);
  }
  std::vector<int> joins = joins_, alike = alike_steps(plan_.steps());
  for (int s = 0; s < count; ++s) {
    if (joins[static_cast<std::size_t>(s)] < 0) alike[static_cast<std::size_t>(s)] = -1;
  }
  schedule_.joined = Pieces::joined(schedule_.tasks, joins, alike);
  if (!has_first) return;
  joins.resize(first_schedule_.tasks.tasks.size(), -1);
  alike.resize(joins.size(), -1);
  first_schedule_.joined = Pieces::joined(first_schedule_.tasks, joins, alike);
}

std::unique_ptr<Plan::Frame> DevicePlan::frame_for(std::vector<Array> args) {
  std::unique_ptr<Plan::Frame> frame = plan_.acquire_frame(args);
  for (std::size_t i = 0; i < args.size(); ++i) {
    frame->values[static_cast<std::size_t>(plan_.arg_slots()[i])] = kernel_view(std::move(args[i]));
  }
  return frame;
}

std::vector<Array> DevicePlan::results_of(std::unique_ptr<Plan::Frame> frame) {
  std::vector<Array> results;
  results.reserve(plan_.result_slots().size());
  for (int slot : plan_.result_slots())
    results.push_back(token_view(frame->values[static_cast<std::size_t>(slot)]));
  plan_.release(std::move(frame));
  return results;
}

std::vector<Array> DevicePlan::run(std::vector<Array> args, const StepContext& within) {
  std::unique_ptr<Plan::Frame> frame = frame_for(std::move(args));
  run_on_devices(*this, *frame, within);
  return results_of(std::move(frame));
}

void DevicePlan::run_async(std::vector<Array> args, const StepContext& within,
                           FunctionRunner::Done done) {
  try {
    const auto frame = std::make_shared<std::unique_ptr<Plan::Frame>>(frame_for(std::move(args)));
    run_on_devices_async(*this, **frame, within,
                         [this, frame, done](const std::exception_ptr& error) {
                           if (error) return done(error, {});
                           done(nullptr, results_of(std::move(*frame)));
                         });
  } catch (...) {
    done(std::current_exception(), {});
  }
}

}  // namespace tandem
