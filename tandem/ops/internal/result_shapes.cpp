#include "tandem/ops/internal/result_shapes.h"

#include "tandem/core/error.h"

namespace tandem::internal {
namespace {

// Only short vectors of integers can be shapes.
bool may_hold_shape(const InferenceContext& c, int input) {
  const DType dtype = c.input_dtype(input);
  if (dtype == DType::kResource) return true;
  const PartialShape& shape = c.input(input);
  return kIndexTypes.contains(dtype) && shape.rank() == 1 && shape.dim(0) >= 0 &&
         shape.dim(0) <= Shape::kMaxRank;
}

}  // namespace

std::vector<KnownValue> known_args(const InferenceContext& c, int first) {
  std::vector<KnownValue> args;
  for (int i = first; i < c.num_inputs(); ++i) {
    KnownValue arg{c.input(i), std::nullopt};
    if (may_hold_shape(c, i)) {
      PartialShape held = c.input_as_shape(i);
      if (held.has_rank()) arg.held = std::move(held);
    }
    args.push_back(std::move(arg));
  }
  return args;
}

std::vector<KnownValue> known_results(const InferenceContext& c, const FunctionRef& f,
                                      const std::vector<KnownValue>& args) {
  std::vector<KnownValue> results = infer_results(f, args);
  if (static_cast<int>(results.size()) != c.num_outputs()) {
    c.fail(cat("function '", f->name(), "' returns ", results.size(), " values where ",
               c.num_outputs(), " are needed."));
  }
  return results;
}

KnownValue either(const KnownValue& a, const KnownValue& b) {
  KnownValue both{a.shape.relax(b.shape), std::nullopt};
  if (a.held && b.held) {
    PartialShape held = a.held->relax(*b.held);
    if (held.has_rank()) both.held = std::move(held);
  }
  return both;
}

void set_results(InferenceContext& c, const std::vector<KnownValue>& results) {
  const AttrValue* attr = c.attrs().find("output_shapes");
  const auto* given = attr ? attr->get_if<std::vector<PartialShape>>() : nullptr;
  if (given && given->empty()) given = nullptr;
  if (given && given->size() != results.size()) {
    c.fail(cat("`output_shapes` must be the same length as num outputs (", given->size(), " vs. ",
               results.size(), ")"));
  }
  // What it says of them is not relied on: TensorFlow runs nodes whose results are of other shapes,
  // as they are in graphs whose inputs were resized after they had been written.
  for (std::size_t i = 0; i < results.size(); ++i) {
    c.set_output(static_cast<int>(i), results[i].shape);
  }
}

void set_results_of_branches(InferenceContext& c, const std::vector<FunctionRef>& branches) {
  const std::vector<KnownValue> args = known_args(c, 1);
  std::vector<KnownValue> results = known_results(c, branches.at(0), args);
  for (const FunctionRef& branch : branches) {
    const std::vector<KnownValue> others = known_results(c, branch, args);
    for (std::size_t i = 0; i < results.size(); ++i) results[i] = either(results[i], others[i]);
  }
  set_results(c, results);
}

}  // namespace tandem::internal
