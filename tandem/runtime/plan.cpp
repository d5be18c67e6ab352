#include "tandem/runtime/plan.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/runtime/memory_plan.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

MutableFunction with_shapes(const MutableFunction& function, const std::vector<Shape>& arg_shapes) {
  MutableFunction copy = function.clone();
  for (std::size_t i = 0; i < copy.args.size(); ++i) copy.graph.set_output_shape(copy.args[i], 0, arg_shapes[i]);
  copy.graph.infer_shapes();
  return copy;
}

bool runs(const Node& node) { return node.kind() != NodeKind::kArg && node.kind() != NodeKind::kConst; }

// Values that a function's body or a kernel may hold on to after the step must own their memory.
bool keeps(const Node& node, std::size_t input) {
  switch (node.kind()) {
    case NodeKind::kCall:
    case NodeKind::kIf:
    case NodeKind::kWhile: return true;
    default: return input < 32 && ((node.op().traits.keeps_inputs >> input) & 1);
  }
}

}  // namespace

Plan::Plan(Runtime& runtime, const MutableFunction& function, const std::vector<Shape>& arg_shapes)
    : function_(with_shapes(function, arg_shapes)), services_(&runtime.services(runtime.default_device())) {
  const std::vector<Node*> order = function_.graph.topological_order();
  number_slots(order);
  make_steps(runtime, order);
  for (const Output& r : function_.results) result_slots_.push_back(slot_of(r));
  plan_lifetimes();
}

Plan::~Plan() = default;

int Plan::slot_of(Output output) const { return first_slot_[static_cast<std::size_t>(output.node->id())] + output.index; }

void Plan::number_slots(const std::vector<Node*>& order) {
  first_slot_.assign(static_cast<std::size_t>(function_.graph.id_limit()), -1);
  for (const Node* node : order) {
    first_slot_[static_cast<std::size_t>(node->id())] = num_slots_;
    num_slots_ += node->num_outputs();
    if (node->kind() == NodeKind::kConst) {
      constants_.emplace_back(num_slots_ - 1, *node->attr<std::shared_ptr<const Array>>("value"));
    }
  }
  for (const Node* arg : function_.args) arg_slots_.push_back(slot_of({const_cast<Node*>(arg), 0}));
}

void Plan::make_steps(Runtime& runtime, const std::vector<Node*>& order) {
  const Device& device = runtime.default_device();
  std::vector<int> step_of(static_cast<std::size_t>(function_.graph.id_limit()), -1);
  for (Node* node : order) {
    if (!runs(*node)) continue;
    Step step;
    step.node = node;
    step.kernels = &runtime.kernels().get(node->op(), device.kernel_class(), node->attrs());
    step.output_dtypes = node->output_dtypes();
    const auto follows = [&](const Node* producer) {
      const int s = step_of[static_cast<std::size_t>(producer->id())];
      if (s >= 0) step.before.push_back(s);
    };
    for (const Output& in : node->inputs()) {
      step.inputs.push_back(slot_of(in));
      follows(in.node);
    }
    for (const Node* before : node->control_inputs()) follows(before);
    for (int i = 0; i < node->num_outputs(); ++i) step.outputs.push_back(slot_of({node, i}));
    if (node->op().traits.keeps_state) {
      states_.push_back(std::make_unique<NodeState>());
      step.state = states_.back().get();
    }
    step_of[static_cast<std::size_t>(node->id())] = static_cast<int>(steps_.size());
    steps_.push_back(std::move(step));
  }
}

// Slots that share memory form a group, found by its root. A group lives from its first writer to its last reader.
void Plan::plan_lifetimes() {
  const auto slots = static_cast<std::size_t>(num_slots_);
  const int end = static_cast<int>(steps_.size());
  std::vector<int> root(slots), last_use(slots, -1), producer(slots, -1);
  for (std::size_t s = 0; s < slots; ++s) root[s] = static_cast<int>(s);
  std::vector<bool> owned_outside(slots, false);  // by root: arguments, constants, results, values that are kept

  const auto at = [](auto& v, int i) -> decltype(auto) { return v[static_cast<std::size_t>(i)]; };
  for (int slot : arg_slots_) at(owned_outside, slot) = true;
  for (const auto& [slot, value] : constants_) at(owned_outside, slot) = true;
  for (int s = 0; s < end; ++s) {
    const Step& step = at(steps_, s);
    for (int slot : step.inputs) at(last_use, slot) = s;
    for (int slot : step.outputs) {
      at(producer, slot) = s;
      at(last_use, slot) = std::max(at(last_use, slot), s);
    }
    const std::uint32_t shares = step.node->op().traits.shares_memory;
    for (std::size_t i = 0; i < step.inputs.size() && i < 32; ++i) {
      if ((shares >> i) & 1 && !step.outputs.empty()) at(root, step.outputs[0]) = at(root, step.inputs[i]);
    }
  }
  for (int slot : result_slots_) {
    at(last_use, slot) = end;
    at(owned_outside, at(root, slot)) = true;
  }
  for (const Step& step : steps_) {
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (keeps(*step.node, i)) at(owned_outside, at(root, step.inputs[i])) = true;
    }
  }
  std::vector<int> group_last(slots, -1);
  for (std::size_t s = 0; s < slots; ++s) {
    int& last = at(group_last, root[s]);
    last = std::max(last, last_use[s]);
  }

  // Values of known shape get a place; an op that may write over an input takes that input's place if it is the last reader.
  std::vector<int> place(slots, -1);  // index into `values`, by root
  std::vector<PlannedValue> values;
  for (int s = 0; s < end; ++s) {
    Step& step = at(steps_, s);
    for (std::size_t o = 0; o < step.outputs.size() && o < 64; ++o) {
      const int slot = step.outputs[o];
      if (at(root, slot) != slot || at(owned_outside, slot)) continue;
      const PartialShape& partial = step.node->output_shape(static_cast<int>(o));
      const DType dtype = step.output_dtypes[o];
      if (!partial.is_fully_known() || is_object(dtype) || is_ref(dtype) || step.node->kind() != NodeKind::kPlain) continue;
      const Shape shape = partial.to_shape();
      const std::size_t bytes = static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype);
      int index = -1;
      const std::uint32_t reusable = o == 0 ? step.node->op().traits.may_reuse : 0;
      for (std::size_t i = 0; i < step.inputs.size() && i < 32 && index < 0; ++i) {
        if (!((reusable >> i) & 1)) continue;
        const int source = at(root, step.inputs[i]);
        const int candidate = at(place, source);
        if (candidate < 0 || at(group_last, source) != s) continue;
        if (at(values, candidate).bytes != bytes || at(values, candidate).last != s) continue;
        index = candidate;
      }
      if (index < 0) {
        index = static_cast<int>(values.size());
        values.push_back({bytes, s, s, 0});
      }
      at(values, index).last = std::max(at(values, index).last, at(group_last, slot));
      at(place, slot) = index;
      step.planned_outputs |= std::uint64_t{1} << o;
      planned_.push_back({slot, dtype, shape, 0});
    }
  }
  arena_bytes_ = plan_memory(values);
  for (PlannedSlot& p : planned_) p.offset = at(values, at(place, p.slot)).offset;

  // Everything else is released after its last reader, which may take over its memory.
  std::vector<bool> is_planned(slots, false), is_constant(slots, false), is_result(slots, false);
  for (const PlannedSlot& p : planned_) at(is_planned, p.slot) = true;
  for (const auto& [slot, value] : constants_) at(is_constant, slot) = true;
  for (int slot : result_slots_) at(is_result, slot) = true;
  for (std::size_t s = 0; s < slots; ++s) {
    if (is_planned[s] || is_constant[s]) continue;
    if (is_result[s] || last_use[s] < 0) {
      cleared_slots_.push_back(static_cast<int>(s));
      continue;
    }
    Step& step = at(steps_, last_use[s]);
    step.release.push_back(static_cast<int>(s));
    for (std::size_t i = 0; i < step.inputs.size() && i < 64; ++i) {
      const bool once = std::count(step.inputs.begin(), step.inputs.end(), step.inputs[i]) == 1;
      if (step.inputs[i] == static_cast<int>(s) && once) step.owned_inputs |= std::uint64_t{1} << i;
    }
  }
}

Plan::Frame::Frame(const Plan& plan) : values(static_cast<std::size_t>(plan.num_slots_)) {
  for (const auto& [slot, value] : plan.constants_) values[static_cast<std::size_t>(slot)] = value;
  if (plan.arena_bytes_ > 0) {
    Ref<Buffer> arena = plan.services_->allocator->allocate(plan.arena_bytes_);
    arena->mark_planned();
    for (const PlannedSlot& p : plan.planned_) {
      values[static_cast<std::size_t>(p.slot)] =
          Array(p.dtype, p.shape, arena, static_cast<std::byte*>(arena->data()) + p.offset);
    }
  }
  std::size_t inputs = 0, outputs = 0;
  for (const Step& step : plan.steps_) {
    inputs += step.inputs.size();
    outputs += step.outputs.size();
  }
  input_pointers.reserve(inputs);
  output_pointers.reserve(outputs);
  contexts.resize(plan.steps_.size());
  for (std::size_t i = 0; i < plan.steps_.size(); ++i) {
    const Step& step = plan.steps_[i];
    KernelContext& context = contexts[i];
    context.op_ = &step.node->op();
    context.attrs_ = &step.node->attrs();
    context.node_name_ = step.node->name();
    context.inputs_ = input_pointers.data() + input_pointers.size();
    for (int slot : step.inputs) input_pointers.push_back(&values[static_cast<std::size_t>(slot)]);
    context.outputs_ = output_pointers.data() + output_pointers.size();
    for (int slot : step.outputs) output_pointers.push_back(&values[static_cast<std::size_t>(slot)]);
    context.output_dtypes_ = step.output_dtypes.data();
    context.num_inputs_ = static_cast<int>(step.inputs.size());
    context.num_outputs_ = static_cast<int>(step.outputs.size());
    context.planned_outputs_ = step.planned_outputs;
    context.owned_inputs_ = step.owned_inputs;
    context.services_ = plan.services_;
    context.state_ = step.state;
  }
}

std::unique_ptr<Plan::Frame> Plan::take_frame() {
  {
    std::lock_guard lock(frames_mutex_);
    if (!frames_.empty()) {
      std::unique_ptr<Frame> frame = std::move(frames_.back());
      frames_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(*this);
}

void Plan::give_back(std::unique_ptr<Frame> frame) {
  for (int slot : cleared_slots_) frame->values[static_cast<std::size_t>(slot)] = Array();
  std::lock_guard lock(frames_mutex_);
  frames_.push_back(std::move(frame));
}

}  // namespace tandem
