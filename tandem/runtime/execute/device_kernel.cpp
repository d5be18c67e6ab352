#include "tandem/runtime/execute/device_kernel.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"
#include "tandem/device/kernel_class.h"
#include "tandem/device/memory_space.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/placement/cost_model.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

bool has_bit(std::uint32_t mask, int i) { return i < 32 && ((mask >> i) & 1) != 0; }

bool on_host(const KernelContext& c, int output) {
  return has_bit(c.host_outputs_, output) || is_object(base_dtype(c.output_dtype(output)));
}

// Kernels may forward arrays of either memory (a constant of theirs, an input as it is).
void put_in_place(KernelContext& c, int i) {
  Array& value = *c.outputs_[i];
  if (!value.valid() || is_object(value.dtype()) || is_ref(c.output_dtype(i))) return;
  const bool host = on_host(c, i);
  if (value.on_host() == host) return;
  const Array from = value;
  if (host) {
    value = Array(from.dtype(), from.shape());
  } else {
    value = kernel_view(allocate_on(c.device(), from.dtype(), from.shape()));
  }
  if (from.num_bytes() != 0) std::memcpy(value.raw_data(), from.raw_data(), from.num_bytes());
}

bool is_planned(const KernelContext& c, int output) {
  return output < 64 && ((c.planned_outputs_ >> output) & 1) != 0;
}

bool writes_variables(const OpTraits& traits) { return traits.stateful && !traits.reads_only; }

// A new value, whatever the old one was.
bool assigns(const OpTraits& traits) {
  return writes_variables(traits) && traits.retains_inputs != 0;
}

VariableResource* variable_at(const KernelContext& c, int input) {
  const Array& handle = c.input(input);
  if (handle.dtype() != DType::kResource || handle.num_elements() != 1) return nullptr;
  return dynamic_cast<VariableResource*>(handle.data<ResourceHandle>()->resource());
}

// Steps of optimizers and the like: only the variables' values change.
bool only_changes_variables(const KernelContext& c) {
  if (!c.op().traits.stateful || c.num_inputs() == 0 || c.input(0).dtype() != DType::kResource)
    return false;
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (is_inexact(c.input(i).dtype())) return true;
  }
  return false;
}

// True if nothing that the kernel would do can be seen from the host.
bool may_skip(const KernelContext& c, const Node* node, const UnmaterializedInputs& inputs) {
  const OpTraits& traits = c.op().traits;
  if (traits.kind != NodeKind::kPlain || traits.shares_memory != 0 ||
      traits.owns_output_memory != 0 || traits.retains_inputs != 0)
    return false;
  if (c.num_outputs() == 0) return !c.device().properties().computes && only_changes_variables(c);
  for (int i = 0; i < c.num_outputs(); ++i) {
    const DType dtype = c.output_dtype(i);
    if (is_object(dtype) || is_ref(dtype) || !comes_unmaterialized(c, i, inputs)) return false;
    if (!is_planned(c, i) && !(node && node->output_shape(i).is_fully_known())) return false;
    // Booleans of booleans follow from those that are there.
    if (dtype == DType::kBool && !inputs.numbers) return false;
  }
  return !traits.stateful || traits.keeps_state;
}

void mark_variables(const KernelContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    VariableResource* const variable = variable_at(c, i);
    if (!variable) continue;
    std::lock_guard lock(variable->mutex());
    if (variable->initialized()) mark_unmaterialized(variable->value());
  }
}

}  // namespace

const KernelList& kernels_on(const Runtime& runtime, const Device& device, const OpDef& op,
                             const AttrMap& attrs, bool host_work) {
  const KernelRegistry& kernels = runtime.kernels();
  const std::string& host_class = runtime.default_device().kernel_class();
  if (host_work && device.kernel_class() != host_class) {
    if (const KernelList* list = kernels.find(op, host_class, attrs)) return *list;
  }
  return kernels.get(op, device.kernel_class(), attrs);
}

const KernelList& kernels_on(const Runtime& runtime, const Device& device, const Node& node) {
  return kernels_on(runtime, device, node.op(), node.attrs(), is_host_work(node));
}

UnmaterializedInputs::UnmaterializedInputs(const KernelContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Array& in = c.input(i);
    if (!is_computed(in)) add(c, i);
    if (assigns(c.op().traits)) continue;
    if (VariableResource* const variable = variable_at(c, i)) {
      std::lock_guard lock(variable->mutex());
      if (variable->initialized() && !is_computed(variable->value())) any = numbers = true;
    }
  }
}

void UnmaterializedInputs::add(const KernelContext& c, int input) {
  const DType dtype = c.input(input).dtype();
  any = true;
  if (dtype != DType::kBool) numbers = true;
  if (!has_bit(c.op().traits.host_inputs, input)) return;
  on_host = true;
  if (is_integer(dtype)) host_integers = input;
}

bool comes_unmaterialized(const KernelContext& c, int output, const UnmaterializedInputs& inputs) {
  const OpTraits& traits = c.op().traits;
  const DType dtype = c.output_dtype(output);
  if (is_ref(dtype) || dtype == DType::kResource) return false;
  // Shapes, and lengths of lists, follow from no element.
  if (inputs.any && (inputs.on_host || !has_bit(traits.host_outputs, output))) return true;
  return !c.device().properties().computes && !on_host(c, output) && is_inexact(dtype) &&
         ((traits.shares_memory >> std::min(output, 31)) & 1) == 0;
}

void mark_unmaterialized(const Array& value) {
  Buffer* const buffer = value.buffer().get();
  if (buffer && buffer->computed() && !buffer->planned()) buffer->mark_unmaterialized();
}

namespace {

// The host can write to the memory of devices that run its kernels, and to no other's.
void fill(const KernelContext& c, const Array& value, int byte) {
  if (value.num_bytes() == 0) return;
  if (value.on_host() || runs_host_kernels(c.device().kernel_class()))
    std::memset(value.raw_data(), byte, value.num_bytes());
}

}  // namespace

bool skip_kernel(KernelContext& c, const Node* node, const UnmaterializedInputs& inputs) {
  if (!may_skip(c, node, inputs)) {
    if (inputs.host_integers >= 0 && c.op().traits.kind == NodeKind::kPlain) {
      throw FailedPreconditionError(
          cat("Input ", inputs.host_integers,
              " was not computed: it comes of values of a device "
              "that does not compute, and what it decides cannot be known."));
    }
    return false;
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    Array& value =
        is_planned(c, i) ? *c.outputs_[i] : c.allocate_output(i, node->output_shape(i).to_shape());
    if (!is_inexact(value.dtype())) fill(c, value, value.dtype() == DType::kBool ? 1 : 0);
  }
  if (c.num_outputs() == 0) mark_variables(c);
  return true;
}

void mark_results(KernelContext& c, const UnmaterializedInputs& inputs) {
  if (inputs.any && writes_variables(c.op().traits)) mark_variables(c);
  for (int i = 0; i < c.num_outputs(); ++i) {
    Array& value = *c.outputs_[i];
    if (!value.valid() || !comes_unmaterialized(c, i, inputs)) continue;
    if (value.dtype() == DType::kBool && inputs.numbers) fill(c, value, 1);
    // Printed within a function, say.
    if (value.dtype() == DType::kString && c.op().traits.shares_memory == 0)
      std::fill_n(value.data<std::string>(), value.num_elements(), "<not computed>");
    mark_unmaterialized(value);
  }
}

void run_device_kernel(const KernelList& kernels, KernelContext& c, const Node* node,
                       const UnmaterializedInputs& inputs) {
  const AllocationScope holder(c.node_name());
  const ScopedFlushDenormals flush;
  if (!skip_kernel(c, node, inputs)) {
    const KernelDecl& kernel = kernels.choose(c);
    if (!kernel.run) {
      throw InternalError(cat("kernel '", kernel.name, "' of ", c.op().name,
                              " is asynchronous, but others of this op are not: give it a "
                              "synchronous form as well"));
    }
    run_kernel(kernel, c);
  }
  end_device_kernel(c, inputs);
}

bool only_asynchronous(const KernelList& kernels) {
  return std::all_of(kernels.candidates.begin(), kernels.candidates.end(),
                     [](const KernelDecl* kernel) { return !kernel->run; });
}

void end_device_kernel(KernelContext& c, const UnmaterializedInputs& inputs) {
  for (int i = 0; i < c.num_outputs(); ++i) put_in_place(c, i);
  mark_results(c, inputs);
}

KernelWork work_of(const Node& node, const Device& device) {
  if (!device.properties().computes && CostModel::makes_no_floats(node)) return {};
  return {.flops = CostModel::flops(node), .bytes = CostModel::bytes(node)};
}

CalledNode::CalledNode(const OpRegistry& ops, const OpDef& op, const std::vector<Array>& inputs,
                       const AttrMap& attrs) {
  for (const Array& input : inputs) handed_over_ += static_cast<double>(input.num_bytes());
  // A reference does not say the shape of what it refers to.
  if (std::any_of(inputs.begin(), inputs.end(), [](const Array& a) { return is_ref(a.dtype()); }))
    return;
  Graph::NodeSpec call;
  call.op = &op;
  call.attrs = attrs;
  for (const Array& input : inputs) {
    Graph::NodeSpec given;
    if (input.on_host() && !is_object(input.dtype())) {
      given.op = &ops.of_kind(NodeKind::kConst);
      given.attrs = AttrMap{{"dtype", input.dtype()}, {"value", input}};
    } else {
      given.op = &ops.of_kind(NodeKind::kArg);
      given.attrs =
          AttrMap{{"T", input.dtype()}, {"index", static_cast<std::int64_t>(call.inputs.size())}};
    }
    given.name = std::to_string(call.inputs.size());
    Node* node = graph_.add(std::move(given));
    graph_.set_output_shape(node, 0, input.shape());
    call.inputs.push_back({node, 0});
  }
  try {
    node_ = graph_.add(std::move(call));
  } catch (const Error&) {  // what is wrong with the inputs is the kernel's to say
  }
}

CalledNode::~CalledNode() = default;

KernelWork CalledNode::work(const Device& device) const {
  return node_ ? work_of(*node_, device) : KernelWork{.flops = 0, .bytes = handed_over_};
}

const Node* CalledNode::with_known_results() const {
  if (!node_ || node_->num_outputs() == 0 || node_->num_outputs() > 32) return nullptr;
  for (int i = 0; i < node_->num_outputs(); ++i) {
    const DType dtype = node_->output_dtype(i);
    if (has_bit(node_->op().traits.host_outputs, i) || is_object(dtype) || is_ref(dtype) ||
        !node_->output_shape(i).is_fully_known())
      return nullptr;
  }
  return node_;
}

}  // namespace tandem
