// Which arguments lie in host memory whatever the device.

#include <algorithm>

#include "tandem/placement/placement.h"

namespace tandem {
namespace {

// Strings, handles and variants are objects; a reference names a variable, which knows where its
// value is.
bool is_host_dtype(DType dtype) { return is_object(dtype) || is_ref(dtype); }

DType input_dtype(const Node& node, int i) {
  const Output& in = node.inputs()[static_cast<std::size_t>(i)];
  return in.node ? in.node->output_dtype(in.index) : DType::kInvalid;
}

// The last bit stands for the rest of a long list.
bool has_bit(std::uint32_t mask, std::size_t i) {
  return (mask >> std::min<std::size_t>(i, 31) & 1) != 0;
}

// Which of the declared inputs an input belongs to. In ops that take lists the bits of
// `host_inputs` stand for these, so that what comes behind a list has one (the axis of ConcatV2).
std::size_t declared_input(const OpDef& op, const AttrMap& attrs, int i) {
  if (op.plain_arguments) return static_cast<std::size_t>(i);
  std::int64_t end = 0;
  for (std::size_t a = 0; a < op.inputs.size(); ++a) {
    const ArgDef& arg = op.inputs[a];
    if (!arg.number_attr.empty()) {
      end += *attrs.find(arg.number_attr)->get_if<std::int64_t>();
    } else if (!arg.type_list_attr.empty()) {
      end += static_cast<std::int64_t>(
          attrs.find(arg.type_list_attr)->get_if<std::vector<DType>>()->size());
    } else {
      ++end;
    }
    if (i < end) return a;
  }
  return op.inputs.size();
}

bool declared_on_host(const Node& node, int input) {
  return declared_on_host(node.op(), node.attrs(), input);
}

// TensorFlow's rule: numbers that count and index, and what is computed of them alone, are of use
// on the host; comparisons of such numbers too.
bool on_small_integers_alone(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kSend:
    case NodeKind::kRecv:
    case NodeKind::kCopyToHost:
    case NodeKind::kCopyToDevice: return false;
    default: break;
  }
  bool any = false;
  for (int i = 0; i < static_cast<int>(node.inputs().size()); ++i) {
    const DType dtype = input_dtype(node, i);
    if (is_object(dtype) || declared_on_host(node, i)) continue;
    if (base_dtype(dtype) != DType::kInt32) return false;
    any = true;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const DType dtype = node.output_dtype(i);
    if (is_object(dtype) || has_bit(node.op().traits.host_outputs, static_cast<std::size_t>(i)))
      continue;
    if (base_dtype(dtype) == DType::kInt32) {
      any = true;
    } else if (dtype != DType::kBool || !any) {
      return false;
    }
  }
  return any;
}

}  // namespace

bool declared_on_host(const OpDef& op, const AttrMap& attrs, int input) {
  const std::uint32_t mask = op.traits.host_inputs;
  return mask != 0 && has_bit(mask, declared_input(op, attrs, input));
}

bool input_on_host(const Node& node, int i) {
  const DType dtype = input_dtype(node, i);
  if (is_host_dtype(dtype)) return true;
  if (calls_functions(node.kind()) && dtype == DType::kInt32) return true;
  return declared_on_host(node, i) || on_small_integers_alone(node);
}

bool is_host_work(const Node& node) {
  if (!needs_device_kernel(node.kind())) return true;
  for (int i = 0; i < static_cast<int>(node.inputs().size()); ++i) {
    const DType dtype = input_dtype(node, i);  // these lead to values wherever they lie
    if (dtype == DType::kResource || dtype == DType::kVariant || is_ref(dtype)) return false;
    if (!input_on_host(node, i)) return false;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!output_on_host(node, i)) return false;
  }
  return true;
}

bool output_on_host(const Node& node, int i) {
  const DType dtype = node.output_dtype(i);
  if (is_host_dtype(dtype)) return true;
  if (calls_functions(node.kind())) return dtype == DType::kInt32;
  // A mask names the outputs of a kernel that are to be on the host.
  if (i >= 32) return false;
  return (node.op().traits.host_outputs >> i & 1) != 0 || on_small_integers_alone(node);
}

}  // namespace tandem
