#include "tandem/runtime/execute/plan.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/memory_plan.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/runtime.h"

namespace tandem {

MutableFunction with_shapes(const MutableFunction& function, const std::vector<Shape>& arg_shapes) {
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

bool makes_plain_value(const Node& node) {
  return node.kind() == NodeKind::kPlain || is_copy(node);
}

bool runs(const Node& node) {
  return node.kind() != NodeKind::kArg && node.kind() != NodeKind::kConst;
}

// Values that a function's body or a kernel may hold on to after the step must own their memory.
bool keeps(const Node& node, std::size_t input) {
  return calls_functions(node.kind()) ||
         (input < 32 && ((node.op().traits.retains_inputs >> input) & 1) != 0);
}

}  // namespace

Plan::Plan(Runtime& runtime, const MutableFunction& function, const std::vector<Shape>& arg_shapes,
           Schedule schedule, NodeStates& states)
    : schedule_(schedule),
      own_(std::make_unique<const MutableFunction>(with_shapes(function, arg_shapes))),
      function_(own_.get()) {
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
  for (std::size_t m = 0; m < arena_bytes_.size(); ++m) {
    MemoryKeepers* const keepers = devices_[m]->allocator().keepers();
    if (keepers && arena_bytes_[m] != 0) kept_.push_back(KeeperRegistration(*keepers, *this));
  }
}

void Plan::find_makers() {
  makers_.resize(result_slots_.size());
  std::vector<int> result_of(static_cast<std::size_t>(num_slots_), -1);
  for (std::size_t r = makers_.size(); r-- > 0;)  // a value that is a result twice has one place
    at(result_of, result_slots_[r]) = static_cast<int>(r);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const OpTraits& traits = step.node->op().traits;
    for (std::size_t o = 0; o < step.outputs.size() && o < 32; ++o) {
      const int r = at(result_of, step.outputs[o]);
      const DType dtype = step.output_dtypes[o];
      const bool shares = o == 0 && traits.shares_memory != 0;
      if (r >= 0 && !shares && ((traits.owns_output_memory >> o) & 1) == 0 && !is_object(dtype) &&
          !is_ref(dtype) && makes_plain_value(*step.node)) {
        at(makers_, r) = {static_cast<int>(s), static_cast<int>(o)};
      }
    }
  }
}

void Plan::place_results(Frame& frame, std::span<const Array> places) const {
  for (std::size_t r = 0; r < makers_.size(); ++r) {
    const Maker& maker = makers_[r];
    if (maker.step < 0 || places[r].dtype() == DType::kInvalid) continue;
    frame.values[static_cast<std::size_t>(result_slots_[r])] = places[r];
    frame.contexts[static_cast<std::size_t>(maker.step)].planned_outputs_ |= std::uint64_t{1}
                                                                             << maker.output;
  }
}

void Plan::forget_places(Frame& frame) const {
  for (const Maker& maker : makers_) {
    if (maker.step < 0) continue;
    const auto s = static_cast<std::size_t>(maker.step);
    frame.contexts[s].planned_outputs_ = steps_[s].planned_outputs;
  }
}

Plan::~Plan() = default;

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
  brought_slots_.push_back(slot);
  return brought_.add(node, value, device);
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
      step.asynchronous = step.asynchronous || k->run_async;
    for (int s : step.before) steps_[static_cast<std::size_t>(s)].after.push_back(number);
    step_of[static_cast<std::size_t>(node->id())] = number;
    steps_.push_back(std::move(step));
  }
}

bool Plan::has_asynchronous_steps() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& s) { return s.asynchronous; });
}

namespace {

// Which steps are known to be over when another begins. In a sequential plan those that stand
// before it, in a dataflow plan those that it depends on.
class Precedence {
 public:
  Precedence(const std::vector<Step>& steps, Schedule schedule)
      : sequential_(schedule == Schedule::kSequential) {
    constexpr std::size_t kLargest =
        8192;  // beyond, nothing is known to precede: more memory, less planning
    if (sequential_ || steps.size() > kLargest) return;
    words_ = (steps.size() + 63) / 64;
    ancestors_.assign(steps.size() * words_, 0);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (int b : steps[s].before) {
        const auto before = static_cast<std::size_t>(b);
        for (std::size_t w = 0; w < words_; ++w)
          ancestors_[s * words_ + w] |= ancestors_[before * words_ + w];
        ancestors_[s * words_ + before / 64] |= std::uint64_t{1} << (before % 64);
      }
    }
  }
  bool is_known() const { return sequential_ || !ancestors_.empty(); }
  // True if each step precedes all that have a greater number, or none precedes another.
  bool is_known_by_number() const { return ancestors_.empty(); }
  bool operator()(int first, int then) const {
    if (sequential_) return first < then;
    if (ancestors_.empty()) return false;
    return (ancestors_[static_cast<std::size_t>(then) * words_ +
                       static_cast<std::size_t>(first) / 64] >>
            (static_cast<std::size_t>(first) % 64)) &
           1;
  }

 private:
  bool sequential_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> ancestors_;
};

}  // namespace

// Slots that share memory form a group, found by its root. `touched` lists the steps that write or
// read a group.
struct Plan::Lifetimes {
  std::vector<int> root;
  std::vector<std::vector<int>> touched;  // by root
  std::vector<std::uint8_t>
      owned_outside;  // by root: arguments, constants, results, values that are kept
};

void Plan::plan_lifetimes() {
  const auto slots = static_cast<std::size_t>(num_slots_);
  Lifetimes life;
  life.root.resize(slots);
  life.touched.resize(slots);
  life.owned_outside.assign(slots, 0);
  for (std::size_t s = 0; s < slots; ++s) life.root[s] = static_cast<int>(s);
  for (int slot : arg_slots_) at(life.owned_outside, slot) = 1;
  for (const auto& [slot, value] : constants_) at(life.owned_outside, slot) = 1;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const std::uint32_t shares = step.node->op().traits.shares_memory;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (i < 32 && ((shares >> i) & 1) && !step.outputs.empty()) {
        at(life.root, step.outputs[0]) = at(life.root, step.inputs[i]);
      }
      at(life.touched, at(life.root, step.inputs[i])).push_back(static_cast<int>(s));
      if (keeps(*step.node, i)) at(life.owned_outside, at(life.root, step.inputs[i])) = 1;
    }
    for (int slot : step.outputs)
      at(life.touched, at(life.root, slot)).push_back(static_cast<int>(s));
  }
  for (int slot : result_slots_) at(life.owned_outside, at(life.root, slot)) = 1;
  place_values(life);
  plan_releases();
}

// Elements of the largest value that is planned: sums of sizes stay far below 2^64.
constexpr std::int64_t kMaxPlanned = std::int64_t{1} << 40;

// Values of known shape get a place in the arena; an op that may write over an input takes that
// input's place if nobody can read it any more.
void Plan::place_values(Lifetimes& life) {
  const Precedence precedes(steps_, schedule_);
  std::vector<int> place(static_cast<std::size_t>(num_slots_),
                         -1);      // index into the values below, by root
  std::vector<std::size_t> bytes;  // by value
  std::vector<int> memory;         // by value
  std::vector<int> begins;         // by value: the first step that touches it
  // By value: steps after which it is free. Who takes the place over runs after all of those before
  // it, so its own stand for them.
  std::vector<std::vector<int>> touched;
  const auto over_before = [&](const std::vector<int>& steps, int s, bool or_itself) {
    return std::all_of(steps.begin(), steps.end(),
                       [&](int t) { return precedes(t, s) || (or_itself && t == s); });
  };
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    Step& step = at(steps_, s);
    for (std::size_t o = 0; o < step.outputs.size() && o < 64; ++o) {
      const int slot = step.outputs[o];
      if (at(life.root, slot) != slot || at(life.owned_outside, slot)) continue;
      if (o < 32 && ((step.node->op().traits.owns_output_memory >> o) & 1)) continue;
      const PartialShape& partial = step.node->output_shape(static_cast<int>(o));
      const DType dtype = step.output_dtypes[o];
      if (!partial.is_fully_known() || is_object(dtype) || is_ref(dtype) ||
          !makes_plain_value(*step.node))
        continue;
      const Shape shape = partial.to_shape();
      if (shape.num_elements() > kMaxPlanned) continue;  // its allocation may fail, typed
      const std::size_t size = static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype);
      int index = -1;
      const std::uint32_t reusable = o == 0 ? step.node->op().traits.may_reuse : 0;
      for (std::size_t i = 0; i < step.inputs.size() && i < 32 && index < 0; ++i) {
        if (!((reusable >> i) & 1)) continue;
        // As many bytes of smaller elements are another number of them, which broadcast.
        const Output in = step.node->inputs()[i];
        if (dtype_size(in.node->output_dtype(in.index)) != dtype_size(dtype)) continue;
        const int source = at(place, at(life.root, step.inputs[i]));
        // The step may read the same memory as another input too, in an order of its own.
        const auto else_read = [&] {
          for (std::size_t j = 0; j < step.inputs.size(); ++j) {
            if ((j >= 32 || !((reusable >> j) & 1)) &&
                at(place, at(life.root, step.inputs[j])) == source)
              return true;
          }
          return false;
        };
        if (source >= 0 && at(bytes, source) == size && at(memory, source) == slot_memory(slot) &&
            over_before(at(touched, source), s, true) && !else_read())
          index = source;
      }
      const std::vector<int>& mine = at(life.touched, slot);
      if (index < 0) {
        index = static_cast<int>(bytes.size());
        bytes.push_back(size);
        memory.push_back(slot_memory(slot));
        begins.push_back(*std::min_element(mine.begin(), mine.end()));
        touched.push_back(mine);
      } else {
        at(touched, index) = mine;
      }
      at(place, slot) = index;
      step.planned_outputs |= std::uint64_t{1} << o;
      planned_.push_back({slot, dtype, shape, 0, slot_memory(slot)});
    }
  }
  std::vector<std::size_t> offsets(bytes.size());
  arena_bytes_.assign(devices_.size(), 0);
  for (std::size_t m = 0; m < arena_bytes_.size(); ++m) {
    std::vector<std::size_t> values, sizes, places;  // of this memory
    for (std::size_t v = 0; v < bytes.size(); ++v) {
      if (memory[v] != static_cast<int>(m)) continue;
      values.push_back(v);
      sizes.push_back(bytes[v]);
    }
    if (values.size() > kMaxComparedValues && precedes.is_known_by_number()) {
      std::vector<int> from, to;
      for (const std::size_t v : values) {
        from.push_back(precedes.is_known() ? begins[v] : 0);
        to.push_back(precedes.is_known() ? *std::max_element(touched[v].begin(), touched[v].end())
                                         : 0);
      }
      arena_bytes_[m] = plan_memory_by_steps(sizes, from, to, places);
    } else {
      arena_bytes_[m] = plan_memory(
          sizes,
          [&](std::size_t i, std::size_t j) {
            const std::size_t a = values[i], b = values[j];
            return !over_before(touched[a], begins[b], false) &&
                   !over_before(touched[b], begins[a], false);
          },
          places);
    }
    for (std::size_t i = 0; i < values.size(); ++i) offsets[values[i]] = places[i];
  }
  for (PlannedSlot& p : planned_) p.offset = at(offsets, at(place, p.slot));
  name_arenas();
}

// For whoever is told that memory does not suffice.
void Plan::name_arenas() {
  arena_names_.assign(arena_bytes_.size(), "values between the steps of a function");
  std::vector<const PlannedSlot*> largest(arena_bytes_.size(), nullptr);
  const auto bytes = [](const PlannedSlot& p) {
    return static_cast<std::size_t>(p.shape.num_elements()) * dtype_size(p.dtype);
  };
  for (const PlannedSlot& p : planned_) {
    const PlannedSlot*& most = largest[static_cast<std::size_t>(p.memory)];
    if (!most || bytes(p) > bytes(*most)) most = &p;
  }
  for (const Step& step : steps_) {
    for (std::size_t m = 0; m < largest.size(); ++m) {
      if (!largest[m] || std::find(step.outputs.begin(), step.outputs.end(), largest[m]->slot) ==
                             step.outputs.end())
        continue;
      arena_names_[m] += cat(", the largest ", largest[m]->dtype, largest[m]->shape, " of ",
                             step.node->name(), " (", step.node->op().name, ")");
    }
  }
}

// What is neither planned nor constant is released after its last reader, which may take over its
// memory.
void Plan::plan_releases() {
  const auto slots = static_cast<std::size_t>(num_slots_);
  std::vector<int> last_use(slots, -1);
  readers_.assign(slots, 0);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    for (int slot : steps_[s].outputs) at(last_use, slot) = static_cast<int>(s);
    for (std::size_t i = 0; i < steps_[s].inputs.size(); ++i) {
      const int slot = steps_[s].inputs[i];
      at(last_use, slot) = static_cast<int>(s);
      ++at(readers_, slot);
    }
  }
  std::vector<std::uint8_t> stays(slots, 0), is_result(slots, 0);
  for (const PlannedSlot& p : planned_) at(stays, p.slot) = 1;
  for (const auto& [slot, value] : constants_) at(stays, slot) = 1;
  for (int slot : result_slots_) at(is_result, slot) = 1;
  for (std::size_t s = 0; s < slots; ++s) {
    if (stays[s] || is_result[s] || last_use[s] < 0) readers_[s] = 0;
    if (stays[s]) continue;
    if (is_result[s] || last_use[s] < 0) {
      cleared_slots_.push_back(static_cast<int>(s));
      continue;
    }
    if (schedule_ == Schedule::kDataflow)
      cleared_slots_.push_back(static_cast<int>(s));  // readers of failed steps never come
    Step& step = at(steps_, last_use[s]);
    step.release.push_back(static_cast<int>(s));
    const bool sole = readers_[s] == 1 || schedule_ == Schedule::kSequential;
    for (std::size_t i = 0; i < step.inputs.size() && i < 64; ++i) {
      const auto once = [&] {
        return std::count(step.inputs.begin(), step.inputs.end(), step.inputs[i]) == 1;
      };
      if (step.inputs[i] == static_cast<int>(s) && sole && once())
        step.owned_inputs |= std::uint64_t{1} << i;
    }
  }
}

Plan::Frame::Frame(const Plan& plan) : values(static_cast<std::size_t>(plan.num_slots_)) {
  for (const auto& [slot, value] : plan.constants_) values[static_cast<std::size_t>(slot)] = value;
  for (std::size_t m = 0; m < plan.arena_bytes_.size(); ++m) {
    if (plan.arena_bytes_[m] == 0) continue;
    Device& device = *plan.devices_[m];
    const AllocationScope holder(plan.arena_names_[m]);
    make_room(device, plan.arena_bytes_[m]);
    Ref<Buffer> arena = device.allocator().allocate(plan.arena_bytes_[m]);
    arena->mark_planned();
    std::byte* begin = static_cast<std::byte*>(arena->data());
    if (const MemorySpace* space = arena->space()) begin += space->kernel_offset;
    for (const PlannedSlot& p : plan.planned_) {
      if (p.memory == static_cast<int>(m))
        values[static_cast<std::size_t>(p.slot)] = Array(p.dtype, p.shape, arena, begin + p.offset);
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
    for (int slot : step.outputs)
      output_pointers.push_back(&values[static_cast<std::size_t>(slot)]);
    context.output_dtypes_ = step.output_dtypes.data();
    context.num_inputs_ = static_cast<int>(step.inputs.size());
    context.num_outputs_ = static_cast<int>(step.outputs.size());
    context.planned_outputs_ = step.planned_outputs;
    context.owned_inputs_ = step.owned_inputs;
    context.services_ = plan.services_[static_cast<std::size_t>(step.device)];
    for (std::size_t o = 0; plan.placed_ && o < step.outputs.size() && o < 32; ++o) {
      if (plan.slot_memory(step.outputs[o]) == 0) context.host_outputs_ |= std::uint32_t{1} << o;
    }
    context.state_ = step.state;
  }
}

std::unique_ptr<Plan::Frame> Plan::acquire_frame() {
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

void Plan::release(std::unique_ptr<Frame> frame) {
  for (int slot : cleared_slots_) frame->values[static_cast<std::size_t>(slot)] = Array();
  std::lock_guard lock(frames_mutex_);
  frames_.push_back(std::move(frame));
}

void Plan::reclaim() {
  std::vector<std::unique_ptr<Frame>> idle;
  std::lock_guard lock(frames_mutex_);
  idle.swap(frames_);
}

std::size_t Plan::idle_frames() const {
  std::lock_guard lock(frames_mutex_);
  return frames_.size();
}

}  // namespace tandem
