#include "tandem/runtime/execute/memory_simulation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/graph/function.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/tensor_list.h"
#include "tandem/runtime/execute/executable.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/kernel_evaluator.h"
#include "tandem/runtime/execute/memory_rules.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/execute/plan.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

constexpr std::size_t kLargestKnown = 1024;  // larger values do not steer a call
constexpr int kMaxSteps = 500'000;           // of all loops together: about a second
constexpr int kDeepest = 50;

bool has_bit(std::uint64_t mask, std::size_t i) { return i < 64 && ((mask >> i) & 1) != 0; }

class Meter {
 public:
  explicit Meter(std::size_t devices) : now_(devices, 0), peak_(devices, 0) {}
  void take(std::size_t memory, std::size_t bytes) {
    now_[memory] += bytes;
    peak_[memory] = std::max(peak_[memory], now_[memory]);
  }
  void give(std::size_t memory, std::size_t bytes) { now_[memory] -= bytes; }
  const std::vector<std::size_t>& peak() const { return peak_; }

 private:
  std::vector<std::size_t> now_, peak_;
};

// Memory that is not there. Nothing may follow its address.
class ShapeOnlyBuffer final : public Buffer {
 public:
  ShapeOnlyBuffer(std::size_t bytes, const MemorySpace* space, Meter& meter, std::size_t memory,
                  std::size_t counted)
      : Buffer(reinterpret_cast<void*>(std::uintptr_t{64}), bytes, /*owned=*/true, space),
        meter_(meter),
        memory_(memory),
        counted_(counted) {
    meter_.take(memory_, counted_);
  }
  ~ShapeOnlyBuffer() override { meter_.give(memory_, counted_); }

 private:
  Meter& meter_;
  const std::size_t memory_;
  const std::size_t counted_;
};

bool is_hollow(const Array& a) {
  return dynamic_cast<const ShapeOnlyBuffer*>(a.buffer().get()) != nullptr;
}

struct Value {
  Array array;  ///< shape and memory; invalid where the shape is not known
  Array known;  ///< what it holds; invalid where that is not known
};

bool is_small(const Array& a) {
  return a.valid() && a.on_host() && !is_object(a.dtype()) && a.num_bytes() <= kLargestKnown;
}

template <class T>
std::int64_t number(const Array& a) {
  return static_cast<std::int64_t>(*a.data<T>());
}

// The number of a scalar that serves as a condition or an index.
std::optional<std::int64_t> number_of(const Array& a) {
  if (!a.valid()) return std::nullopt;
  if (a.rank() != 0) return a.num_elements();
  switch (a.dtype()) {
    case DType::kBool: return number<bool>(a);
    case DType::kInt32: return number<std::int32_t>(a);
    case DType::kInt64: return number<std::int64_t>(a);
    default: return std::nullopt;
  }
}

class MemorySimulation {
 public:
  explicit MemorySimulation(Runtime& runtime)
      : runtime_(runtime), evaluator_(runtime), meter_(runtime.devices().size()) {}

  const std::vector<std::size_t>& peak() const { return meter_.peak(); }

  // Values of unknown shape that the plans do not know.
  std::vector<Value> call(const Function& function, std::vector<Value> args, const Device& device) {
    const std::vector<Value> unknown(function.results().size());
    std::vector<Array> arrays;
    for (const Value& v : args) {
      if (!v.array.valid()) return unknown;
      arrays.push_back(v.array);
    }
    if (steps_left_ <= 0 || depth_ >= kDeepest) return unknown;
    plans_.push_back(FunctionExecutor::prepare(function, arrays, device));
    const Plan* const plan = plans_.back()->next_plan();
    if (!plan) return unknown;
    ++depth_;
    std::vector<Value> results = follow(*plan, arrays, std::move(args));
    --depth_;
    return results;
  }

 private:
  // The arenas of a frame, by memory.
  using Arenas = std::vector<Ref<Buffer>>;
  struct Frames {
    std::size_t there = 0;     // that the plan has already
    std::vector<Arenas> made;  // that the call would leave
  };

  Ref<Buffer> hollow(std::size_t memory, std::size_t bytes, bool counts = true) {
    Device& device = *runtime_.devices()[memory];
    const std::size_t counted = counts ? device.allocator().counted_bytes(bytes) : 0;
    return make_ref<ShapeOnlyBuffer>(bytes, device.memory_space(), meter_, memory, counted);
  }
  Array hollow(std::size_t memory, DType dtype, const Shape& shape, bool counts = true) {
    Ref<Buffer> buffer =
        hollow(memory, static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype), counts);
    void* data = buffer->data();
    return Array(dtype, shape, std::move(buffer), data);
  }
  // In memory that somebody else has and keeps.
  Array lent(std::size_t memory, DType dtype, const Shape& shape) {
    Array value = hollow(memory, dtype, shape, /*counts=*/false);
    lent_.push_back(value.buffer());
    return value;
  }

  Arenas acquire_frame(const Plan& plan, std::span<const Array> args) {
    const auto [at, is_new] = frames_.try_emplace(&plan);
    Frames& frames = at->second;
    if (is_new) frames.there = plan.idle_frames(args);
    if (frames.there == 0 && !frames.made.empty()) {
      Arenas arenas = std::move(frames.made.back());
      frames.made.pop_back();
      return arenas;
    }
    Arenas arenas;
    const std::vector<std::size_t> bytes = plan.arena_bytes(args);
    for (std::size_t m = 0; m < bytes.size(); ++m) {
      arenas.push_back(hollow(m, bytes[m], /*counts=*/bytes[m] != 0 && frames.there == 0));
      arenas.back()->mark_planned();
    }
    if (frames.there != 0) --frames.there;
    return arenas;
  }

  std::vector<Value> follow(const Plan& plan, std::span<const Array> arrays,
                            std::vector<Value> args) {
    Arenas arenas = acquire_frame(plan, arrays);
    std::vector<Value> results;
    {
      std::vector<Value> values(static_cast<std::size_t>(plan.num_slots()));
      for (const auto& node : plan.function().graph.nodes()) {
        if (node->kind() != NodeKind::kConst) continue;
        const int slot = plan.slot_of({node.get(), 0});
        const Array& given = *node->attr<std::shared_ptr<const Array>>("value");
        Value& value = at(values, slot);
        if (is_small(given) || given.dtype() == DType::kVariant) value.known = given;
        value.array = is_object(given.dtype())
                          ? given
                          : lent(memory_of(plan, slot), given.dtype(), given.shape());
      }
      for (std::size_t i = 0; i < args.size(); ++i)
        at(values, plan.arg_slots()[i]) = std::move(args[i]);
      for (const Step& step : plan.steps()) {
        --steps_left_;
        Pass{*this, plan, step, arenas, values}.run();
        for (int slot : step.release) at(values, slot) = {};
      }
      for (int slot : plan.result_slots()) results.push_back(at(values, slot));
    }
    frames_[&plan].made.push_back(std::move(arenas));
    return results;
  }

  static Value& at(std::vector<Value>& values, int slot) {
    return values[static_cast<std::size_t>(slot)];
  }
  static std::size_t memory_of(const Plan& plan, int slot) {
    return static_cast<std::size_t>(plan.slot_memory(slot));
  }

  // One step.
  struct Pass {
    MemorySimulation& all;
    const Plan& plan;
    const Step& step;
    const Arenas& arenas;
    std::vector<Value>& values;
    const Node& node = *step.node;
    const OpTraits& traits = node.op().traits;
    std::optional<std::vector<PartialShape>> inferred = std::nullopt;

    const Value& input(std::size_t i) const { return at(values, step.inputs[i]); }
    Value& output(std::size_t o) const { return at(values, step.outputs[o]); }
    const Device& device() const {
      return *all.runtime_.devices()[static_cast<std::size_t>(step.device)];
    }

    void run() {
      if (calls_functions(node.kind())) return run_functions();
      std::optional<std::vector<Array>> results;
      if (holds_no_more_than_handles() || has_small_results()) {
        try {
          std::vector<Array> inputs;
          for (std::size_t i = 0; i < step.inputs.size(); ++i)
            inputs.push_back(input(i).known.valid() ? input(i).known : input(i).array);
          results = all.evaluator_.evaluate(node, inputs);
        } catch (const Error&) {  // the call will report it
        }
      }
      // Into the slots when all are there: an output may take over an input's memory.
      std::vector<Value> made(step.outputs.size());
      for (std::size_t o = 0; o < made.size(); ++o)
        made[o] = results ? taken_over((*results)[o], o) : without_contents(o);
      if (is_copy(node)) made[0].known = input(0).known;
      for (std::size_t o = 0; o < made.size(); ++o) output(o) = std::move(made[o]);
    }

    bool runs_anywhere() const {
      return node.kind() == NodeKind::kPlain && !traits.stateful && !traits.keeps_state;
    }

    // Numbers whose inputs are known.
    bool has_small_results() const {
      if (!runs_anywhere() || step.outputs.empty()) return false;
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        if (!is_small(input(i).known)) return false;
      }
      for (std::size_t o = 0; o < step.outputs.size(); ++o) {
        const PartialShape& shape = node.output_shape(static_cast<int>(o));
        const DType dtype = step.output_dtypes[o];
        if (is_object(dtype) || is_ref(dtype) || !shape.is_fully_known() ||
            static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype) > kLargestKnown)
          return false;
      }
      return true;
    }

    // Lists that get, give or have items, which the kernel does not look into.
    bool holds_no_more_than_handles() const {
      if (!runs_anywhere() || !node.op().plain_arguments) return false;
      bool lists = false, only_lists = true;
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        const Value& in = input(i);
        const bool list = in.known.dtype() == DType::kVariant;
        lists = lists || list;
        only_lists = only_lists && list;
        const bool kept = retains_input(step, i);
        if (!in.known.valid() && !(kept && in.array.valid() && !is_object(in.array.dtype())))
          return false;
      }
      for (std::size_t o = 0; o < step.outputs.size(); ++o) {
        const DType dtype = step.output_dtypes[o];
        const bool list = dtype == DType::kVariant;
        lists = lists || list;
        if (!list && (is_object(dtype) || !(owns_output_memory(step, o) || only_lists)))
          return false;
      }
      return lists;
    }

    Value taken_over(const Array& result, std::size_t o) {
      if (result.dtype() == DType::kVariant) {
        empty_items(result);
        return {result, result};
      }
      if (!result.valid() || is_hollow(result)) return {result, {}};
      const std::size_t memory = memory_of(plan, step.outputs[o]);
      if (memory == 0 && is_small(result)) return {result, result};
      Value value{all.hollow(memory, result.dtype(), result.shape()), {}};
      if (is_small(result)) value.known = result;
      return value;
    }

    // Zeros that the kernel made.
    void empty_items(const Array& handle) {
      if (handle.rank() != 0) return;
      auto* const list = handle.data<Variant>()->as<TensorList>();
      if (!list) return;
      for (Array& item : list->items()) {
        if (!item.valid() || is_hollow(item) || is_object(item.dtype()) || is_small(item)) continue;
        item = all.hollow(0, item.dtype(), item.shape());
      }
    }

    // Makes the output like KernelContext would.
    Value without_contents(std::size_t o) {
      const DType dtype = step.output_dtypes[o];
      if (shares_input(step, o)) return view(input(o));
      const PartialShape shape = shape_of(o);
      if (is_object(dtype) || is_ref(dtype) || !shape.is_fully_known()) return {};
      return {in_memory(o, dtype, shape.to_shape()), {}};
    }

    Array in_memory(std::size_t o, DType dtype, const Shape& shape) {
      const std::size_t memory = memory_of(plan, step.outputs[o]);
      if (owns_output_memory(step, o)) return all.lent(memory, dtype, shape);
      if (has_bit(step.planned_outputs, o)) {
        const Ref<Buffer>& arena = arenas[memory];
        return Array(dtype, shape, arena, arena->data());
      }
      const int reused = input_to_reuse(step, o, [&](std::size_t i) {
        const Array& in = input(i).array;
        return has_bit(step.owned_inputs, i) && in.valid() && is_hollow(in) &&
               in.writable_in_place() && in.num_elements() == shape.num_elements() &&
               dtype_size(in.dtype()) == dtype_size(dtype);
      });
      if (reused < 0) return all.hollow(memory, dtype, shape);
      const Array& in = input(static_cast<std::size_t>(reused)).array;
      return Array(dtype, shape, in.buffer(), in.raw_data());
    }

    Value view(const Value& of) {
      const DType dtype = step.output_dtypes[0];
      if (!of.array.valid() || is_object(dtype)) return of;
      const PartialShape shape = shape_of(0);
      if (!shape.is_fully_known()) return {};
      return {Array(dtype, shape.to_shape(), of.array.buffer(), of.array.raw_data()), {}};
    }

    PartialShape shape_of(std::size_t o) {
      const PartialShape& planned = node.output_shape(static_cast<int>(o));
      if (planned.is_fully_known() || is_object(step.output_dtypes[o])) return planned;
      if (!inferred) inferred = infer();
      return (*inferred)[o];
    }

    // The shapes that depend on the values of a call.
    std::vector<PartialShape> infer() const {
      std::vector<PartialShape> shapes;
      for (int o = 0; o < node.num_outputs(); ++o) shapes.push_back(node.output_shape(o));
      if (is_copy(node) && input(0).array.valid()) return {PartialShape(input(0).array.shape())};
      if (node.kind() != NodeKind::kPlain) return shapes;
      try {
        const OpRegistry& ops = all.runtime_.ops();
        Graph graph;
        Graph::NodeSpec again;
        again.op = &node.op();
        again.attrs = node.attrs();
        for (std::size_t i = 0; i < step.inputs.size(); ++i) {
          const Value& in = input(i);
          const Output from = node.inputs()[i];
          Graph::NodeSpec given;
          if (is_small(in.known)) {
            given.op = &ops.of_kind(NodeKind::kConst);
            given.attrs = AttrMap{{"dtype", in.known.dtype()}, {"value", in.known}};
          } else {
            given.op = &ops.of_kind(NodeKind::kArg);
            given.attrs = AttrMap{{"T", from.node->output_dtype(from.index)},
                                  {"index", static_cast<std::int64_t>(i)}};
          }
          Node* const value = graph.add(std::move(given));
          graph.set_output_shape(value, 0,
                                 in.array.valid() ? PartialShape(in.array.shape())
                                                  : from.node->output_shape(from.index));
          again.inputs.push_back({value, 0});
        }
        const Node* const twin = graph.add(std::move(again));
        for (std::size_t o = 0; o < shapes.size(); ++o)
          shapes[o] = twin->output_shape(static_cast<int>(o));
      } catch (const Error&) {  // the call will report it
      }
      if (!shapes.empty() && !step.inputs.empty()) shapes[0] = of_list(shapes[0], input(0).known);
      return shapes;
    }

    // The items of a list, stacked or joined.
    static PartialShape of_list(const PartialShape& shape, const Array& handle) {
      if (shape.is_fully_known() || !shape.has_rank() || handle.dtype() != DType::kVariant ||
          handle.rank() != 0)
        return shape;
      const auto* const list = handle.data<Variant>()->as<TensorList>();
      if (!list || list->items().empty()) return shape;
      const Array& item = list->items().front();
      if (!item.valid() || item.rank() + 1 != shape.rank()) return shape;
      std::vector<std::int64_t> dims{static_cast<std::int64_t>(list->items().size())};
      for (int i = 0; i < item.rank(); ++i) dims.push_back(item.dim(i));
      return PartialShape(std::move(dims));
    }

    std::vector<Value> inputs_from(std::size_t first) const {
      std::vector<Value> args;
      for (std::size_t i = first; i < step.inputs.size(); ++i) args.push_back(input(i));
      return args;
    }

    void run_functions() {
      std::vector<Value> results;
      if (node.kind() == NodeKind::kWhile) {
        results = loop();
      } else if (node.kind() == NodeKind::kIf || node.op().find_attr("branches")) {
        results = branch();
      } else if (node.op().find_attr("f")) {
        results = all.call(*node.attr<FunctionRef>("f"), inputs_from(0), device());
      }
      results.resize(step.outputs.size());
      for (std::size_t o = 0; o < results.size(); ++o) {
        const PartialShape& shape = node.output_shape(static_cast<int>(o));
        const DType dtype = step.output_dtypes[o];
        if (!results[o].array.valid() && shape.is_fully_known() && !is_object(dtype) &&
            !is_ref(dtype)) {
          results[o].array = all.hollow(memory_of(plan, step.outputs[o]), dtype, shape.to_shape());
        }
        output(o) = std::move(results[o]);
      }
    }

    // Once where only the run shows how often.
    std::vector<Value> loop() {
      const Function& condition = *node.attr<FunctionRef>("cond");
      const Function& body = *node.attr<FunctionRef>("body");
      std::vector<Value> state = inputs_from(0);
      for (;;) {
        const std::vector<Value> go_on = all.call(condition, state, device());
        const auto known = number_of(go_on.at(0).known);
        if (known == 0) return state;
        state = all.call(body, std::move(state), device());
        if (!known || all.steps_left_ <= 0) return state;
      }
    }

    // The branch that takes most where only the run shows which: memory that one leaves is given
    // back before the next.
    std::vector<Value> branch() {
      std::vector<const Function*> branches;
      std::optional<std::int64_t> chosen = number_of(input(0).known);
      if (node.op().find_attr("branches")) {
        for (const FunctionRef& f : node.attr<std::vector<FunctionRef>>("branches"))
          branches.push_back(f.get());
        const auto last = static_cast<std::int64_t>(branches.size()) - 1;
        if (chosen && (*chosen < 0 || *chosen > last)) chosen = last;
      } else {
        branches = {node.attr<FunctionRef>("then_branch").get(),
                    node.attr<FunctionRef>("else_branch").get()};
        if (chosen) chosen = *chosen == 0 ? 1 : 0;
      }
      if (chosen)
        return all.call(*branches[static_cast<std::size_t>(*chosen)], inputs_from(1), device());
      std::vector<Value> results;
      for (const Function* f : branches) {
        results.clear();
        auto frames = all.frames_;
        results = all.call(*f, inputs_from(1), device());
        if (f != branches.back()) all.frames_ = std::move(frames);
      }
      return results;
    }
  };

  Runtime& runtime_;
  KernelEvaluator evaluator_;
  Meter meter_;  // before all that reports to it
  int steps_left_ = kMaxSteps;
  int depth_ = 0;
  std::vector<std::shared_ptr<Executable>> plans_;
  std::map<const Plan*, Frames> frames_;
  std::vector<Ref<Buffer>> lent_;  // so that no holder is the only one
};

}  // namespace

std::vector<std::size_t> simulate_memory(const Function& function, const std::vector<Array>& args,
                                         std::size_t outlines, const Device& device) {
  MemorySimulation simulation(Runtime::current());
  std::vector<Value> values;
  for (const Array& a : args) {
    // Lists are not followed: kernels would work on the caller's own.
    values.push_back({a, is_small(a) && values.size() >= outlines ? a : Array()});
  }
  simulation.call(function, std::move(values), device);
  return simulation.peak();
}

}  // namespace tandem
