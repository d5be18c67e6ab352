#include "tests/unit/ops/fusion_util.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/runtime/optimized.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {

Tensor numbers(const Shape& shape, int seed, DType dtype) {
  Array values(dtype, shape);
  auto state = static_cast<std::uint32_t>(seed) * 2654435761u + 1;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float v = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
    if (dtype == DType::kFloat) {
      values.data<float>()[i] = v;
    } else {
      values.data<BFloat16>()[i] = BFloat16(v);
    }
  }
  return Tensor(std::move(values));
}

Tensor fixed(const Tensor& t) { return Tensor(t.array().clone()); }

namespace {

auto traced(const Body& body) {
  return function([body](std::vector<Tensor> args) { return body(args); });
}

}  // namespace

MutableFunction optimized_graph(const Body& body, const std::vector<Tensor>& args) {
  const ConcreteFunction concrete = traced(body).concrete(args);
  std::vector<PartialShape> shapes;
  for (const Tensor& t : args) shapes.emplace_back(t.shape());
  for (const Tensor& t : concrete.captures()) shapes.emplace_back(t.shape());
  return optimized(*concrete.function(), shapes);
}

int count_op(const MutableFunction& f, std::string_view op) {
  const auto& nodes = f.graph.nodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [&](const auto& node) { return node->op().name == op; }));
}

const Node* only_node(const MutableFunction& f, std::string_view op) {
  EXPECT_EQ(count_op(f, op), 1) << op << " in\n" << f.graph.to_string();
  for (const auto& node : f.graph.nodes())
    if (node->op().name == op) return node.get();
  return nullptr;
}

std::string fused_ops(const MutableFunction& f, std::string_view op) {
  const Node* node = only_node(f, op);
  std::string all;
  if (node) {
    for (const std::string& name : node->attr<std::vector<std::string>>("fused_ops"))
      all += cat(all.empty() ? "" : " ", name);
  }
  return all;
}

double distance(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype())
    return std::numeric_limits<double>::infinity();
  const Tensor x = cast(a, DType::kDouble), y = cast(b, DType::kDouble);
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    const double u = x.data<double>()[static_cast<std::size_t>(i)];
    const double v = y.data<double>()[static_cast<std::size_t>(i)];
    if ((std::isnan(u) && std::isnan(v)) || u == v) continue;
    if (!std::isfinite(u) || !std::isfinite(v)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(u - v));
  }
  for (const double v : y.data<double>())
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return difference / std::max(largest, 1e-30);
}

void expect_as_eager(const Body& body, const std::vector<Tensor>& args, double tolerance) {
  constexpr int kCalls = 12;
  const std::vector<Tensor> wanted = body(args);
  const auto run = traced(body);
  for (int call = 0; call < kCalls; ++call) {
    const std::vector<Tensor> got = run(args);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_LE(distance(got[i], wanted[i]), tolerance)
          << "call " << call << ", result " << i << " of\n"
          << optimized_graph(body, args).graph.to_string();
    }
  }
}

}  // namespace tandem
