#include "tandem/graph/inference_context.h"

namespace tandem {

InferenceContext::InferenceContext(const OpDef& op, const AttrMap& attrs,
                                   std::vector<PartialShape> inputs,
                                   std::vector<DType> input_dtypes, int num_outputs,
                                   std::function<const Array*(int)> value_of,
                                   std::function<std::optional<PartialShape>(int)> shape_value_of)
    : op_(op),
      attrs_(attrs),
      inputs_(std::move(inputs)),
      input_dtypes_(std::move(input_dtypes)),
      outputs_(static_cast<std::size_t>(num_outputs)),
      value_of_(std::move(value_of)),
      shape_value_of_(std::move(shape_value_of)) {}

std::optional<std::vector<std::int64_t>> InferenceContext::input_ints(int i) const {
  const Array* value = input_value(i);
  if (!value) return std::nullopt;
  std::vector<std::int64_t> ints;
  ints.reserve(static_cast<std::size_t>(value->num_elements()));
  for (std::int64_t k = 0; k < value->num_elements(); ++k) {
    if (value->dtype() == DType::kInt32) {
      ints.push_back(value->data<std::int32_t>()[k]);
    } else if (value->dtype() == DType::kInt64) {
      ints.push_back(value->data<std::int64_t>()[k]);
    } else {
      return std::nullopt;
    }
  }
  return ints;
}

PartialShape InferenceContext::input_as_shape(int i) const {
  return shape_value_of_(i).value_or(PartialShape::unknown());
}

void InferenceContext::require_rank(int i, int rank) const {
  if (input(i).has_rank() && input(i).rank() != rank) {
    fail(cat("input ", i, " must have rank ", rank, " but has shape ", input(i), "."));
  }
}

void InferenceContext::require_rank_at_least(int i, int rank) const {
  if (input(i).has_rank() && input(i).rank() < rank) {
    fail(cat("input ", i, " must have rank at least ", rank, " but has shape ", input(i), "."));
  }
}

std::int64_t InferenceContext::merge_dim(std::int64_t a, std::int64_t b,
                                         std::string_view what) const {
  if (a >= 0 && b >= 0 && a != b) fail(cat(what, " must agree but are ", a, " and ", b, "."));
  return a >= 0 ? a : b;
}

void InferenceContext::fail(const std::string& message) const {
  throw InvalidArgumentError(cat("Op ", op_.name, ": ", message));
}

namespace shapes {

void unchanged(InferenceContext& c) { c.set_output(0, c.input(0)); }

void broadcast_binary(InferenceContext& c) { c.set_output(0, broadcast(c.input(0), c.input(1))); }

void scalar(InferenceContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::scalar());
}

void none(InferenceContext&) {}

void unknown(InferenceContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::unknown());
}

}  // namespace shapes
}  // namespace tandem
