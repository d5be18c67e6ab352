#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/graph/passes.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Numbers between -1 and 1 without a short period, another series for each seed; float or
/// bfloat16. A constant if made while a function is traced.
Tensor numbers(const Shape& shape, int seed, DType dtype = DType::kFloat);
/// A copy that becomes a constant of the function that is being traced.
Tensor fixed(const Tensor& t);

/// The graph that runs when `body` is traced and called with these arguments.
MutableFunction optimized_graph(const Body& body, const std::vector<Tensor>& args);
/// How many nodes of the graph are of this op.
int count_op(const MutableFunction& f, std::string_view op);
/// The only node of this op; a failure and null if there is another number.
const Node* only_node(const MutableFunction& f, std::string_view op);
/// Attribute fused_ops of the only node of `op`, joined by blanks.
std::string fused_ops(const MutableFunction& f, std::string_view op);

/// The largest difference, relative to the largest value of `b`; NaN where one is and the other is
/// not counts as infinite, as does an infinity that the other lacks.
double distance(const Tensor& a, const Tensor& b);

/// Calls the traced function often enough for plans to settle; every call must give what the body
/// gives eagerly.
void expect_as_eager(const Body& body, const std::vector<Tensor>& args, double tolerance);

}  // namespace tandem
