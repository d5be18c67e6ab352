#include "tandem/ops/internal/flops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/graph/internal/attention_axes.h"
#include "tandem/graph/internal/einsum_equation.h"
#include "tandem/placement/cost_model.h"

namespace tandem::flops {
namespace {

constexpr double kUnknown = -1;

const PartialShape& input_shape(const Node& node, int i) {
  const Output& in = node.inputs()[static_cast<std::size_t>(i)];
  return in.node->output_shape(in.index);
}

double size(std::int64_t dim) { return dim < 0 ? 1 : static_cast<double>(dim); }

// Dimension -1 is the last one.
double dim(const PartialShape& shape, int i) {
  const int at = i < 0 ? shape.rank() + i : i;
  return at < 0 || at >= shape.rank() ? 1 : size(shape.dim(at));
}

double products(const Node& node, bool turned, int outer_from_end) {
  const PartialShape& a = input_shape(node, 0);
  const double result = of_output(node, 0);
  if (!a.has_rank() || result < 0) return kUnknown;
  return 2 * result * dim(a, turned ? -outer_from_end : -1);
}

// What is known of functions while that of one which calls them is found: thirty that each call the
// next one twice would else be gone through a billion times.
class KnownBodies {
 public:
  KnownBodies() : outermost_(current() == nullptr) {
    if (outermost_) current() = &own_;
  }
  ~KnownBodies() {
    if (outermost_) current() = nullptr;
  }
  KnownBodies(const KnownBodies&) = delete;
  KnownBodies& operator=(const KnownBodies&) = delete;
  double* find(const Function& function) const {
    const auto found = current()->find(&function);
    return found == current()->end() ? nullptr : &found->second;
  }
  void add(const Function& function, double flops) { current()->emplace(&function, flops); }

 private:
  using Map = std::unordered_map<const Function*, double>;
  static Map*& current() {
    thread_local Map* map = nullptr;
    return map;
  }
  Map own_;
  bool outermost_;
};

double body(const AttrValue& value) {
  const auto* function = value.get_if<FunctionRef>();
  if (!function || !*function) return 0;
  KnownBodies known;
  if (const double* flops = known.find(**function)) return *flops;
  double sum = 0;
  for (const auto& node : (*function)->body().nodes()) sum += CostModel::flops(*node);
  known.add(**function, sum);
  return sum;
}

}  // namespace

double elements(const PartialShape& shape) {
  if (!shape.has_rank()) return kUnknown;
  double product = 1;
  for (int i = 0; i < shape.rank(); ++i) product *= size(shape.dim(i));
  return product;
}

double of_input(const Node& node, int i) { return elements(input_shape(node, i)); }
double of_output(const Node& node, int i) { return elements(node.output_shape(i)); }

// ---- Products ----

double matmul(const Node& node) { return products(node, node.attr<bool>("transpose_a"), 2); }

double batch_matmul(const Node& node) { return products(node, node.attr<bool>("adj_x"), 2); }

double sparse_dense_matmul(const Node& node) {
  const PartialShape& b = input_shape(node, 3);
  const double stored = of_input(node, 1);
  if (!b.has_rank() || stored < 0) return kUnknown;
  return 2 * stored * dim(b, node.attr<bool>("adjoint_b") ? -2 : -1);
}

double einsum(const Node& node) {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const PartialShape& shape = input_shape(node, static_cast<int>(i));
    if (!shape.has_rank()) return kUnknown;
    ranks.push_back(shape.rank());
  }
  try {
    const EinsumLabels labels(EinsumEquation::parse(node.attr<std::string>("equation")), ranks);
    std::map<int, double> sizes;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      for (std::size_t k = 0; k < labels.operands[i].size(); ++k) {
        double& longest = sizes[labels.operands[i][k]];
        longest =
            std::max(longest, dim(input_shape(node, static_cast<int>(i)), static_cast<int>(k)));
      }
    }
    double product = ranks.size() > 1 ? 2 : 1;
    for (const auto& [label, length] : sizes) product *= length;
    return product;
  } catch (const InvalidArgumentError&) {
    return kUnknown;  // the kernel knows
  }
}

double attention(const Node& node) {
  try {
    const auto axes = AttentionAxes::read(node.attr<std::vector<std::string>>("axes"));
    const AttentionSizes sizes(axes, input_shape(node, 0), input_shape(node, 1),
                               input_shape(node, 2));
    const double steps =
        4 + static_cast<double>(node.attr<std::vector<std::string>>("fused_ops").size());
    return elements(sizes.shape(axes.of[AttentionAxes::kScores])) *
           (2 * size(sizes['D']) + 2 * size(sizes['E']) + steps);
  } catch (const InvalidArgumentError&) {
    return kUnknown;  // the kernel knows
  }
}

// ---- Windows ----

double convolution(const PartialShape& result, const PartialShape& filter, bool depthwise) {
  const double out = elements(result), weights = elements(filter);
  if (out < 0 || weights < 0) return kUnknown;
  double channels = dim(filter, -1);
  if (depthwise) channels *= dim(filter, -2);
  return channels > 0 ? 2 * out * weights / channels : 0;
}

double fused_conv(const Node& node) {
  const bool depthwise = node.attr<bool>("depthwise");
  const auto& sizes = node.attr<std::vector<std::int64_t>>("filter_sizes");
  const double steps =
      static_cast<double>(node.attr<std::vector<std::string>>("fused_ops").size()) *
      std::max(0.0, of_output(node, 0));
  const double product = sizes.empty()
                             ? convolution(node.output_shape(0), input_shape(node, 1), depthwise)
                             : convolution(node.output_shape(0), PartialShape(sizes), depthwise);
  return product < 0 ? kUnknown : product + steps;
}

double windows(const Node& node, double count) {
  if (count < 0) return kUnknown;
  for (const std::int64_t k : node.attr<std::vector<std::int64_t>>("ksize")) count *= size(k);
  return count;
}

double pool(const Node& node) { return windows(node, of_output(node, 0)); }

// ---- Recurrent layers ----

double recurrent(const Node& node, int input, int first_weight, int num_weights, double each) {
  const PartialShape& x = input_shape(node, input);
  double weights = 0;
  for (int w = first_weight; w < first_weight + num_weights; ++w) {
    const double count = of_input(node, w);
    if (count < 0) return kUnknown;
    weights += count;
  }
  if (!x.has_rank() || x.rank() == 0) return kUnknown;
  double steps = each;
  for (int i = 0; i + 1 < x.rank(); ++i) steps *= size(x.dim(i));
  return steps * weights;
}

double fused_elementwise(const Node& node) {
  double most = of_output(node, 0);
  for (std::size_t i = 0; i < node.inputs().size(); ++i)
    most = std::max(most, of_input(node, static_cast<int>(i)));
  return most * static_cast<double>(node.attr<std::vector<std::string>>("ops").size());
}

// ---- Matrices and transforms ----

double cubic(const Node& node, double each) {
  const PartialShape& matrix = input_shape(node, 0);
  if (!matrix.has_rank()) return kUnknown;
  return each * elements(matrix) * std::min(dim(matrix, -1), dim(matrix, -2));
}

double solve(const Node& node) {
  const double factored = cubic(node, 2.0 / 3), solved = triangular_solve(node);
  return factored < 0 || solved < 0 ? kUnknown : factored + 2 * solved;
}

double triangular_solve(const Node& node) {
  const PartialShape& matrix = input_shape(node, 0);
  const double right = of_input(node, 1);
  return !matrix.has_rank() || right < 0 ? kUnknown : right * dim(matrix, -1);
}

double fourier(const Node& node) {
  const std::string_view name = node.op().name;
  const int axes = name.ends_with("2D") ? 2 : name.ends_with("3D") ? 3 : 1;
  const PartialShape& in = input_shape(node, 0);
  const PartialShape& out = node.output_shape(0);
  // One side of a real transform has all points.
  const PartialShape& points = elements(in) >= elements(out) ? in : out;
  if (!points.has_rank()) return kUnknown;
  double length = 1;
  for (int i = 1; i <= axes; ++i) length *= dim(points, -i);
  return 5 * elements(points) * std::log2(std::max(2.0, length));
}

// ---- Functions ----

double call(const Node& node) {
  const AttrValue* function = node.attrs().find("f");
  return function ? body(*function) : kUnknown;
}

double branches(const Node& node) {
  double most = 0;
  for (const char* name : {"then_branch", "else_branch"}) {
    if (const AttrValue* branch = node.attrs().find(name)) most = std::max(most, body(*branch));
  }
  if (const AttrValue* all = node.attrs().find("branches")) {
    if (const auto* functions = all->get_if<std::vector<FunctionRef>>()) {
      for (const FunctionRef& f : *functions) most = std::max(most, body(AttrValue(f)));
    }
  }
  return most;
}

double loop(const Node& node) {
  double sum = 0;
  for (const char* name : {"cond", "body"}) {
    if (const AttrValue* part = node.attrs().find(name)) sum += body(*part);
  }
  return sum;
}

}  // namespace tandem::flops
