#include "tandem/graph/rewrite.h"

#include <algorithm>

namespace tandem {
namespace {

template <class T>
bool all_equal_to(const Array& a, double value) {
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    if (static_cast<double>(a.data<T>()[i]) != value) return false;
  }
  return true;
}

}  // namespace

const Array* RewriteContext::constant(int i) const {
  const Node* producer = node_.inputs()[static_cast<std::size_t>(i)].node;
  if (producer->kind() != NodeKind::kConst) return nullptr;
  return producer->attr<std::shared_ptr<const Array>>("value").get();
}

bool RewriteContext::is_constant(int i, double value) const {
  const Array* a = constant(i);
  if (!a || a->num_elements() == 0) return false;
  switch (a->dtype()) {
    case DType::kFloat: return all_equal_to<float>(*a, value);
    case DType::kDouble: return all_equal_to<double>(*a, value);
    case DType::kInt32: return all_equal_to<std::int32_t>(*a, value);
    case DType::kInt64: return all_equal_to<std::int64_t>(*a, value);
    default: return false;
  }
}

// Where not even the rank is known, an operand that broadcasts may still decide the shape.
bool RewriteContext::others_are_scalars(Output value) const {
  return std::all_of(node_.inputs().begin(), node_.inputs().end(), [&](const Output& in) {
    return in == value || in.node->output_shape(in.index) == PartialShape::scalar();
  });
}

bool RewriteContext::replace_with(Output value) {
  if (value.node->output_dtype(value.index) != node_.output_dtype(0)) return false;
  // A value of another (or less well known) shape would change what users see.
  if (!(value.node->output_shape(value.index) == node_.output_shape(0))) return false;
  if (!node_.output_shape(0).has_rank() && !others_are_scalars(value)) return false;
  graph_.replace_uses({&node_, 0}, value);
  replacement_ = value;
  return true;
}

}  // namespace tandem
