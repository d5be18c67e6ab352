#include "tandem/runtime/internal/device_kernel.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"
#include "tandem/device/memory_space.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/cost_model.h"

namespace tandem {
namespace {

bool has_bit(std::uint32_t mask, int i) { return i < 32 && ((mask >> i) & 1) != 0; }

bool on_host(const KernelContext& c, int output) {
  return has_bit(c.host_outputs_, output) || is_object(base_dtype(c.output_dtype(output)));
}

// Kernels may hand on arrays of either memory (a constant of theirs, an input as it is).
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

// True if nothing that the kernel would do can be seen from the host.
bool only_inexact_results(const KernelContext& c, const Node* node) {
  const OpTraits& traits = c.op().traits;
  if (traits.kind != NodeKind::kPlain || traits.shares_memory != 0 || traits.brings_memory != 0 ||
      traits.keeps_inputs != 0)
    return false;
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (on_host(c, i) || !is_inexact(c.output_dtype(i))) return false;
    const bool planned = i < 64 && ((c.planned_outputs_ >> i) & 1) != 0;
    if (!planned && !(node && node->output_shape(i).is_fully_known())) return false;
  }
  if (c.num_outputs() > 0) return !traits.stateful || traits.keeps_state;
  // Steps of optimizers and the like: only the variables' values change.
  if (!traits.stateful || c.num_inputs() == 0 || c.input(0).dtype() != DType::kResource)
    return false;
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (is_inexact(c.input(i).dtype())) return true;
  }
  return false;
}

// What is compared with values that were not computed counts as true, so that a loop goes round as
// often as its maximum_iterations say.
void answer_unknown_comparisons(KernelContext& c) {
  bool unknown = false;
  for (int i = 0; i < c.num_inputs() && !unknown; ++i) {
    const Array& in = c.input(i);
    unknown = !in.on_host() && is_inexact(in.dtype()) && !in.buffer()->computed();
  }
  for (int i = 0; unknown && i < c.num_outputs(); ++i) {
    Array& value = *c.outputs_[i];
    if (value.valid() && value.dtype() == DType::kBool)
      std::memset(value.raw_data(), 1, value.num_bytes());
  }
}

void skip_kernel(KernelContext& c, const Node* node) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const bool planned = i < 64 && ((c.planned_outputs_ >> i) & 1) != 0;
    if (!planned) c.allocate_output(i, node->output_shape(i).to_shape());
  }
}

}  // namespace

void run_device_kernel(const KernelList& kernels, KernelContext& c, const Node* node) {
  const AllocationScope holder(c.node_name());
  const ScopedFlushDenormals flush;
  const bool computes = c.device().properties().computes;
  if (!computes && only_inexact_results(c, node)) {
    skip_kernel(c, node);
  } else {
    kernels.choose(c).run(c);
    if (!computes) answer_unknown_comparisons(c);
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    put_in_place(c, i);
    Array& value = *c.outputs_[i];
    if (!computes && value.valid() && !value.on_host() && is_inexact(value.dtype()) &&
        value.buffer()->computed())
      value.buffer()->mark_uncomputed();
  }
}

KernelWork work_of(const Node& node) {
  return {.flops = CostModel::flops(node), .bytes = CostModel::bytes(node)};
}

CalledNode::CalledNode(const OpRegistry& ops, const OpDef& op, const std::vector<Array>& inputs,
                       const AttrMap& attrs) {
  for (const Array& input : inputs) handed_over_ += static_cast<double>(input.num_bytes());
  // A reference does not tell the shape of what it refers to.
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

KernelWork CalledNode::work() const {
  return node_ ? work_of(*node_) : KernelWork{.flops = 0, .bytes = handed_over_};
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
