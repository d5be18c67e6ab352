#include "tandem/runtime/eager/device_call_plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "tandem/device/host_reads.h"
#include "tandem/device/memory_space.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/eager/eager_choice.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

bool int32_alone(const DeviceCall& call) {
  const auto is_int32 = [](DType t) { return t == DType::kInt32; };
  return !(call.inputs.empty() && call.output_dtypes.empty()) &&
         std::all_of(call.inputs.begin(), call.inputs.end(),
                     [&](const Tensor& t) { return is_int32(t.dtype()); }) &&
         std::all_of(call.output_dtypes.begin(), call.output_dtypes.end(), is_int32);
}

const std::string& scope_of_thread() {
  static const std::string none;
  const auto& scopes = thread_context().devices;
  return scopes.empty() ? none : scopes.back();
}

// Without the call that comparing memory is.
bool same(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || a.num_elements() != b.num_elements()) return false;
  const std::int64_t* const sizes = a.data();
  const std::int64_t* const others = b.data();
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (sizes[axis] != others[axis]) return false;
  }
  return true;
}

// A kind of calls: those that a plan serves.
struct CallKind {
  struct Input {
    DType dtype;
    Shape shape;
    const Device* place;  // null: the host
  };
  std::uint64_t runtime = 0;
  const OpDef* op = nullptr;
  bool soft_placement = false;
  std::string scope;
  AttrMap given;
  std::vector<Input> inputs;

  bool is_of(const Runtime& called_in, const OpDef& called, std::span<const Tensor> with,
             const AttrMap& attrs) const {
    if (op != &called || runtime != called_in.id() || inputs.size() != with.size() ||
        soft_placement != called_in.soft_placement() || scope != scope_of_thread())
      return false;
    for (std::size_t i = 0; i < with.size(); ++i) {
      const Array& a = with[i].impl()->array;
      if (a.dtype() != inputs[i].dtype || !same(a.shape(), inputs[i].shape) ||
          device_of(a) != inputs[i].place)
        return false;
    }
    return (given.empty() && attrs.empty()) || given == attrs;
  }
};

struct Known {
  CallKind kind;
  std::shared_ptr<const DeviceCallPlan> plan;
};

// Direct-mapped: a new kind of call takes the place of an old one.
constexpr std::size_t kKinds = 256;
Known& slot_of(const OpDef& op, std::span<const Tensor> inputs) {
  thread_local std::array<Known, kKinds> known;
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ull;
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&op) >> 4;
  for (const Tensor& t : inputs) {
    const Array& a = t.impl()->array;
    const Shape& shape = a.shape();
    hash ^= static_cast<std::uint64_t>(a.dtype()) ^ static_cast<std::uint64_t>(shape.num_elements())
                                                        << 8;
    if (shape.rank() > 1) hash ^= static_cast<std::uint64_t>(shape.data()[0]) << 32;
    hash *= kFactor;
  }
  return known[(hash >> 32) % kKinds];
}

// Functions and values in attributes would be kept for as long as the thread lives.
bool holds_objects(const AttrMap& attrs) {
  return std::any_of(attrs.begin(), attrs.end(), [](const auto& attr) {
    return attr.value.template get_if<FunctionRef>() ||
           attr.value.template get_if<std::vector<FunctionRef>>() ||
           attr.value.template get_if<std::shared_ptr<const Array>>();
  });
}

}  // namespace

DeviceCallPlan::DeviceCallPlan(Runtime& runtime, const OpDef& called,
                               std::span<const Tensor> inputs, const AttrMap& given)
    : op(called.shared_from_this()) {
  std::vector<DType> input_dtypes;
  for (const Tensor& t : inputs) input_dtypes.push_back(t.impl()->array.dtype());
  attrs = complete_attrs(called, input_dtypes, given);
  output_dtypes = tandem::output_dtypes(called, attrs);
  const DeviceCall call{runtime, called, inputs, attrs, output_dtypes};
  device = &choose_device(call);
  host_alone = device->memory_space() == nullptr || int32_alone(call);
  kernels = &kernels_on(runtime, *device, called, attrs,
                        host_alone || !needs_device_kernel(called.traits.kind));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    on_host.push_back(host_alone || declared_on_host(called, attrs, static_cast<int>(i)));
}

void DeviceCallPlan::complete(Runtime& runtime, std::span<const Tensor> inputs,
                              const std::vector<Array>& arrays) {
  const CalledNode node(runtime.ops(), *op, arrays, attrs);
  work = node.work(*device);
  if (const Node* known = node.with_known_results()) {
    results.emplace();
    for (int i = 0; i < known->num_outputs(); ++i)
      results->push_back(known->output_shape(i).to_shape());
  }
  device_index = runtime.index_of(*device);
  enqueued = true;
  if (!results) return;
  for (std::size_t i = 0; i < results->size(); ++i) {
    result_bytes.push_back(static_cast<std::size_t>((*results)[i].num_elements()) *
                           dtype_size(output_dtypes[i]));
  }
  const bool here = std::all_of(arrays.begin(), arrays.end(),
                                [&](const Array& a) { return device_of(a) == device; });
  if (may_be_pending() && here && device_index >= 0 && device->properties().computes)
    repeats_on = task_stream(*device);
  if (may_be_pending()) choose_host_reads(inputs);
}

// A kernel reads each element of an input once, or once for each operation that it is part of.
void DeviceCallPlan::choose_host_reads(std::span<const Tensor> inputs) {
  std::vector<double> bytes(inputs.size(), 0);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Array& a = inputs[i].impl()->array;
    if (on_host[i] || !a.on_host() || is_object(a.dtype()) || a.num_bytes() == 0) continue;
    bytes[i] = std::max(static_cast<double>(a.num_elements()), work.flops) *
               static_cast<double>(dtype_size(a.dtype()));
  }
  const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  if (all == 0) return;
  HostMemoryReader* const reader = host_memory_reader(*device);
  if (!reader || all > static_cast<double>(reader->host_read_limit())) return;
  host_reader = reader;
  for (const double of_input : bytes) host_reads.push_back(of_input != 0);
}

bool DeviceCallPlan::may_be_pending() const {
  const OpTraits& traits = op->traits;
  return traits.kind == NodeKind::kPlain && !traits.stateful && !traits.keeps_state &&
         traits.shares_memory == 0 && traits.owns_output_memory == 0 &&
         traits.retains_inputs == 0 && results.has_value();
}

std::shared_ptr<const DeviceCallPlan> known_plan(Runtime& runtime, const OpDef& op,
                                                 std::span<const Tensor> inputs,
                                                 const AttrMap& given) {
  const Known& known = slot_of(op, inputs);
  if (!known.plan || !known.kind.is_of(runtime, op, inputs, given)) return nullptr;
  const DeviceCallPlan& plan = *known.plan;
  const bool lost = plan.repeats_on ? plan.repeats_on->is_lost() : !plan.device->lost().empty();
  return lost ? nullptr : known.plan;
}

void keep_plan(Runtime& runtime, std::span<const Tensor> inputs, const AttrMap& given,
               std::shared_ptr<const DeviceCallPlan> plan) {
  const OpDef& op = *plan->op;
  const std::vector<bool>& on_host = plan->on_host;
  if (std::find(on_host.begin(), on_host.end(), true) != on_host.end() ||
      op.traits.kind != NodeKind::kPlain || holds_objects(plan->attrs))
    return;
  CallKind kind{runtime.id(), &op, runtime.soft_placement(), scope_of_thread(), given, {}};
  for (const Tensor& t : inputs) {
    const Array& a = t.impl()->array;
    if (is_object(a.dtype()) || is_ref(a.dtype())) return;
    kind.inputs.push_back({a.dtype(), a.shape(), device_of(a)});
  }
  Known& slot = slot_of(op, inputs);
  slot.kind = std::move(kind);
  slot.plan = std::move(plan);
}

}  // namespace tandem
