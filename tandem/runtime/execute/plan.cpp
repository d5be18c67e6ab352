#include "tandem/runtime/execute/plan.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/memory_rules.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/runtime.h"

namespace tandem {

MutableFunction with_shapes(const MutableFunction& function,
                            const std::vector<PartialShape>& arg_shapes) {
  MutableFunction copy = function.clone();
  for (std::size_t i = 0; i < copy.args.size(); ++i) {
    // A reference's own shape is not that of its variable.
    if (!is_ref(copy.args[i]->output_dtype(0)))
      copy.graph.set_output_shape(copy.args[i], 0, arg_shapes[i]);
  }
  copy.graph.infer_shapes_to_run();
  return copy;
}

namespace {

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

bool runs(const Node& node) {
  return node.kind() != NodeKind::kArg && node.kind() != NodeKind::kConst;
}

}  // namespace

Plan::Plan(Runtime& runtime, const MutableFunction& function, const ArgShapes& arg_shapes,
           Schedule schedule, NodeStates& states)
    : schedule_(schedule),
      own_(std::make_unique<const MutableFunction>(with_shapes(function, arg_shapes.shapes))),
      function_(own_.get()),
      varying_(arg_shapes.varying) {
  make(runtime, states);
}

Plan::Plan(Runtime& runtime, std::shared_ptr<const PlacedFunction> placed, NodeStates& states)
    : schedule_(Schedule::kDataflow), placed_(std::move(placed)), function_(&placed_->function) {
  make(runtime, states);
}

void Plan::make(Runtime& runtime, NodeStates& states) {
  devices_ = runtime.devices();
  for (const auto& device : devices_) services_.push_back(&runtime.services(*device));
  const std::vector<Node*> order = function_->graph.topological_order();
  number_slots(order);
  make_steps(runtime, order, states);
  for (const Output& r : function_->results) result_slots_.push_back(slot_of(r));
  plan_lifetimes();
  find_makers();
  for (std::size_t m = 0; m < devices_.size(); ++m) {
    Reclaimables* const keepers = devices_[m]->allocator().reclaimables();
    if (keepers && has_arena(static_cast<int>(m)))
      kept_.push_back(ReclaimableRegistration(*keepers, *this));
  }
}

void Plan::find_makers() {
  makers_.resize(result_slots_.size());
  std::vector<int> result_of(static_cast<std::size_t>(num_slots_), -1);
  for (std::size_t r = makers_.size(); r-- > 0;)  // a value that is a result twice has one place
    at(result_of, result_slots_[r]) = static_cast<int>(r);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    for (std::size_t o = 0; o < step.outputs.size() && o < 32; ++o) {
      const int r = at(result_of, step.outputs[o]);
      const DType dtype = step.output_dtypes[o];
      if (r >= 0 && !shares_input(step, o) && !owns_output_memory(step, o) && !is_object(dtype) &&
          !is_ref(dtype) && makes_plain_value(*step.node)) {
        at(makers_, r) = {static_cast<int>(s), static_cast<int>(o)};
      }
    }
  }
}

Plan::~Plan() {
  const std::lock_guard lock(frames_mutex_);
  collect_spare_frame();
}

int Plan::slot_of(Output output) const {
  return first_slot_[static_cast<std::size_t>(output.node->id())] + output.index;
}

void Plan::number_slots(const std::vector<Node*>& order) {
  first_slot_.assign(static_cast<std::size_t>(function_->graph.id_limit()), -1);
  for (const Node* node : order) {
    first_slot_[static_cast<std::size_t>(node->id())] = num_slots_;
    num_slots_ += node->num_outputs();
    if (node->kind() == NodeKind::kConst) {
      constants_.emplace_back(num_slots_ - 1, constant_at(*node, num_slots_ - 1));
    }
    if (placed_) {
      for (int i = 0; i < node->num_outputs(); ++i)
        slot_memory_.push_back(placed_->placement.output_memory(*node, i));
    }
  }
  for (const Node* arg : function_->args)
    arg_slots_.push_back(slot_of({const_cast<Node*>(arg), 0}));
}

// On a device its place alone: the first call copies it there.
Array Plan::constant_at(const Node& node, int slot) {
  const Array& value = *node.attr<std::shared_ptr<const Array>>("value");
  const int memory = placed_ ? placed_->placement.output_memory(node, 0) : 0;
  Device& device = *devices_[static_cast<std::size_t>(memory)];
  if (memory == 0 || is_object(value.dtype()) || device_of(value) == &device)
    return kernel_view(value);
  constant_slots_.push_back(slot);
  return device_constants_.add(node, value, device);
}

void Plan::make_steps(Runtime& runtime, const std::vector<Node*>& order, NodeStates& states) {
  std::vector<int> step_of(static_cast<std::size_t>(function_->graph.id_limit()), -1);
  std::vector<int> followed_by(order.size(), -1);  // by step: the last one found to follow it
  for (Node* node : order) {
    if (!runs(*node)) continue;
    const int number = static_cast<int>(steps_.size());
    Step step;
    step.node = node;
    if (placed_) step.device = placed_->placement.device(*node);
    const Device& device = *devices_[static_cast<std::size_t>(step.device)];
    step.kernels = &kernels_on(runtime, device, *node);
    step.output_dtypes = node->output_dtypes();
    const auto follows = [&](const Node* producer) {
      const int s = step_of[static_cast<std::size_t>(producer->id())];
      if (s >= 0 && std::exchange(at(followed_by, s), number) != number) step.before.push_back(s);
    };
    for (const Output& in : node->inputs()) {
      step.inputs.push_back(slot_of(in));
      follows(in.node);
    }
    for (const Node* before : node->control_inputs()) follows(before);
    for (int i = 0; i < node->num_outputs(); ++i) step.outputs.push_back(slot_of({node, i}));
    if (node->op().traits.keeps_state) step.state = &states.of(*node);
    for (const KernelDecl* k : step.kernels->candidates)
      step.asynchronous =
          step.asynchronous ||
          (k->run_async && (!k->run || FunctionExecutor::calls_may_wait(*node, runtime)));
    for (int s : step.before) steps_[static_cast<std::size_t>(s)].after.push_back(number);
    step_of[static_cast<std::size_t>(node->id())] = number;
    steps_.push_back(std::move(step));
  }
}

bool Plan::has_asynchronous_steps() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& s) { return s.asynchronous; });
}

}  // namespace tandem
