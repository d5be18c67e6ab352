#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/internal/einsum_equation.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/fuse_attention.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// The size of a label, as far as known; only axes of ellipses broadcast.
std::int64_t label_size(InferenceContext& c, const EinsumLabels& labels, int label) {
  std::int64_t size = PartialShape::kUnknown;
  bool unknown = false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const std::vector<int>& axes = labels.operands[static_cast<std::size_t>(i)];
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis] != label) continue;
      const std::int64_t here = c.input(i).dim(static_cast<int>(axis));
      if (label < EinsumLabels::kEllipsis) {
        size = c.merge_dim(size, here, "sizes of axes with the same label");
      } else if (here < 0) {
        unknown = true;
      } else if (here != 1) {
        size = size == 1 ? here : c.merge_dim(size, here, "sizes of the axes of an ellipsis");
      } else if (size < 0) {
        size = 1;
      }
    }
  }
  return unknown && size == 1 ? PartialShape::kUnknown : size;
}

void einsum_shape(InferenceContext& c) {
  const EinsumEquation equation = EinsumEquation::parse(c.attr<std::string>("equation"));
  if (!equation.has_result) c.fail("the equation must have a \"->\".");
  if (c.num_inputs() > 2) c.fail(cat("takes one or two operands but got ", c.num_inputs(), "."));
  if (equation.operands.size() != static_cast<std::size_t>(c.num_inputs())) {
    c.fail(cat("the equation is for ", equation.operands.size(), " operands but got ",
               c.num_inputs(), "."));
  }
  std::vector<int> ranks;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).has_rank()) return c.set_output(0, PartialShape::unknown());
    ranks.push_back(c.input(i).rank());
  }
  const EinsumLabels labels(equation, ranks);
  for (const auto& operand : labels.operands) {
    for (const int label : operand) label_size(c, labels, label);
  }
  std::vector<std::int64_t> sizes;
  for (const int label : labels.result) sizes.push_back(label_size(c, labels, label));
  c.set_output(0, PartialShape(std::move(sizes)));
}

void einsum_grad(GradientContext& g);

const OpRegistration kEinsum{{
    .name = "Einsum",
    .inputs = "inputs: N * T",
    .outputs = "output: T",
    .attrs = "equation: string; N: int >= 1; T: type",
    .shape = einsum_shape,
    .gradient = einsum_grad,
    .fuse = internal::fuse_attention,
    .flops = flops::einsum,
    .doc =
        "Sum of products of one or two operands by Einstein's notation, such as \"bij,bjk->bik\".",
}};

Tensor run(const EinsumEquation& equation, std::span<const Tensor> inputs) {
  return call1(kEinsum, inputs, {{"equation", equation.to_string()}});
}
Tensor run(std::vector<std::string> operands, std::string result,
           std::initializer_list<Tensor> inputs) {
  return run({std::move(operands), std::move(result), true},
             std::span<const Tensor>(inputs.begin(), inputs.size()));
}

// Each label once, an ellipsis first.
std::string distinct(const std::string& labels) {
  std::string once = has(labels, '.') ? "." : "";
  for (const char c : labels) {
    if (!has(once, c)) once += c;
  }
  return once;
}

// The gradient of one operand: the result's gradient times the other operand (if any), transposed
// to the operand's axes. What the op did to the operand is undone step by step: sums over a label
// by repeating, broadcasting of an ellipsis by adding up, diagonals by setting them in zeros.
Tensor operand_grad(const Tensor& grad, const std::string& result, const Tensor& operand,
                    const std::string& labels, const Tensor& other,
                    const std::string& other_labels) {
  std::string kept, summed;
  for (const char c : distinct(labels)) {
    const bool anywhere = c == '.' || has(result, c) || (other.defined() && has(other_labels, c));
    (anywhere ? kept : summed) += c;
  }
  // An ellipsis of the other factors that the operand does not have is summed, so it needs a place
  // in the product.
  const bool spread = has(result, '.') || (other.defined() && has(other_labels, '.'));
  const std::string product_labels = spread && !has(kept, '.') ? "." + kept : kept;
  Tensor x = other.defined() ? run({result, other_labels}, product_labels, {grad, other})
                             : run({result}, product_labels, {grad});
  if (spread) {
    const PartialShape have = x.partial_shape();
    const Tensor like = run({labels}, kept, {operand});
    if (!(have.is_fully_known() && have == like.partial_shape()))
      x = sum_to_shape_of(std::move(x), like);
  }
  if (!summed.empty()) {
    const Tensor like = run({labels}, kept + summed, {operand});
    for (std::size_t i = 0; i < summed.size(); ++i) x = expand_dims(std::move(x), -1);
    x = broadcast_to(std::move(x), like.partial_shape().is_fully_known() ? IntList(like.shape())
                                                                         : IntList(shape(like)));
  }
  const std::string now = kept + summed;
  return now == labels ? x : run({now}, labels, {x});
}

void einsum_grad(GradientContext& g) {
  const EinsumEquation equation = EinsumEquation::parse(g.attr<std::string>("equation"));
  const Tensor grad = g.grad();
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (!g.needs(i)) continue;
    const int j = 1 - i;
    Tensor other;
    if (g.num_inputs() == 2) other = is_complex(grad.dtype()) ? math::conj(g.input(j)) : g.input(j);
    const std::string other_labels =
        other.defined() ? equation.operands[static_cast<std::size_t>(j)] : "";
    g.set(i, operand_grad(grad, equation.result, g.input(i),
                          equation.operands[static_cast<std::size_t>(i)], other, other_labels));
  }
}

// Without an arrow: the ellipsis, then the labels that occur once in all, in alphabetical order.
std::string implied_result(const EinsumEquation& equation) {
  std::string all, result;
  for (const std::string& labels : equation.operands) all += labels;
  if (has(all, '.')) result = ".";
  std::string once;
  for (const char c : all) {
    if (c != '.' && std::count(all.begin(), all.end(), c) == 1) once += c;
  }
  std::sort(once.begin(), once.end());
  return result + once;
}

}  // namespace

Tensor einsum(StringView text, std::span<const Tensor> inputs) {
  EinsumEquation equation = EinsumEquation::parse(text);
  if (inputs.empty() || equation.operands.size() != inputs.size()) {
    throw InvalidArgumentError(cat("einsum: the equation '", text, "' is for ",
                                   equation.operands.size(), " operands but got ", inputs.size(),
                                   "."));
  }
  if (!equation.has_result) {
    equation.result = implied_result(equation);
    equation.has_result = true;
  }
  Tensor product = inputs[0];
  std::string labels = equation.operands[0];
  for (std::size_t i = 1; i + 1 < inputs.size(); ++i) {
    // Keep what the result or a later operand still needs.
    std::string later = equation.result, both = distinct(labels + equation.operands[i]), kept;
    for (std::size_t j = i + 1; j < inputs.size(); ++j) later += equation.operands[j];
    for (const char c : both) {
      if (c == '.' || has(later, c)) kept += c;
    }
    product = run({labels, equation.operands[i]}, kept, {product, inputs[i]});
    labels = kept;
  }
  if (inputs.size() == 1) return run({labels}, equation.result, {product});
  return run({labels, equation.operands.back()}, equation.result, {product, inputs.back()});
}

Tensor einsum(StringView equation, std::initializer_list<Tensor> inputs) {
  return einsum(equation, std::span<const Tensor>(inputs.begin(), inputs.size()));
}

Tensor tensordot(Tensor a, Tensor b, const std::vector<std::int64_t>& a_axes,
                 const std::vector<std::int64_t>& b_axes) {
  if (a_axes.size() != b_axes.size()) {
    throw InvalidArgumentError(
        cat("tensordot: 'a_axes' and 'b_axes' must have equal lengths but have ", a_axes.size(),
            " and ", b_axes.size(), "."));
  }
  if (a.rank() < 0 || b.rank() < 0) {
    throw InvalidArgumentError("tensordot: the ranks of both operands must be known.");
  }
  const auto label = [](int i) {
    if (i >= 52) throw InvalidArgumentError("tensordot: the operands have more than 52 axes.");
    return static_cast<char>(i < 26 ? 'a' + i : 'A' + (i - 26));
  };
  std::string first, second(static_cast<std::size_t>(b.rank()), ' '), result;
  for (int i = 0; i < a.rank(); ++i) first += label(i);
  std::string rest = first;
  for (std::size_t i = 0; i < a_axes.size(); ++i) {
    const auto from = static_cast<std::size_t>(normalize_axis(a_axes[i], a.rank()));
    const auto to = static_cast<std::size_t>(normalize_axis(b_axes[i], b.rank()));
    if (second[to] != ' ' || rest[from] == ' ') {
      throw InvalidArgumentError("tensordot: an axis is named twice.");
    }
    second[to] = first[from];
    rest[from] = ' ';
  }
  for (const char c : rest) {
    if (c != ' ') result += c;
  }
  int next = a.rank();
  for (char& c : second) {
    if (c == ' ') result += c = label(next++);
  }
  return run({first, second}, result, {std::move(a), std::move(b)});
}

Tensor tensordot(Tensor a, Tensor b, int axes) {
  if (axes < 0 || axes > a.rank() || axes > b.rank()) {
    throw InvalidArgumentError(cat("tensordot: 'axes' must be between 0 and the operands' ranks ",
                                   a.rank(), " and ", b.rank(), " but is ", axes, "."));
  }
  std::vector<std::int64_t> last, first;
  for (int i = 0; i < axes; ++i) {
    last.push_back(a.rank() - axes + i);
    first.push_back(i);
  }
  return tensordot(std::move(a), std::move(b), last, first);
}

}  // namespace tandem
