#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/internal/einsum_equation.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/linalg/matrix_product.h"
#include "tandem/kernels/cpu/support/number_types.h"
#include "tandem/kernels/shared/contraction.h"

namespace tandem::cpu {
namespace {

using contraction::Axes;
using contraction::Axis;
using contraction::find;
using contraction::has;
using contraction::Labels;
using contraction::lies_in_order;
using contraction::MatrixOrder;
using contraction::operator+;
using contraction::Roles;

Axes distinct_axes(const Labels& labels, const Shape& shape) {
  Axes axes;
  const Strides strides(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    const int label = labels[static_cast<std::size_t>(i)];
    if (const Axis* known = find(axes, label)) {
      if (known->size != shape[i]) {
        throw InvalidArgumentError(
            cat("Expected the axes of one label to have equal sizes, but they have ", known->size,
                " and ", shape[i], " in an operand of shape ", shape, "."));
      }
      axes[static_cast<std::size_t>(known - axes.data())].stride += strides[i];
    } else {
      axes.push_back({label, shape[i], strides[i]});
    }
  }
  return axes;
}

// Sizes of the labels over all operands; only axes of ellipses broadcast.
class Sizes {
 public:
  void add(const Axes& axes) {
    for (const Axis& a : axes) {
      Axis* known = const_cast<Axis*>(find(sizes_, a.label));
      if (!known) {
        sizes_.push_back(a);
      } else if (known->size != a.size) {
        const bool broadcasts =
            a.label >= EinsumLabels::kEllipsis && (known->size == 1 || a.size == 1);
        if (!broadcasts) {
          throw InvalidArgumentError(cat("Operands disagree on the size of ", name(a.label), ": ",
                                         known->size, " and ", a.size, "."));
        }
        if (known->size == 1) known->size = a.size;
      }
    }
  }
  std::int64_t operator[](int label) const {
    const Axis* a = find(sizes_, label);
    return a ? a->size : 1;
  }

 private:
  static std::string name(int label) {
    if (label >= EinsumLabels::kEllipsis) return "an axis of the ellipsis";
    return cat("label '", static_cast<char>(label), "'");
  }
  Axes sizes_;
};

Shape shape_of(const Labels& labels, const Axes& axes) {
  Shape shape;
  for (const int label : labels) {
    const Axis* a = find(axes, label);
    shape.add_dim(a ? a->size : 1);
  }
  return shape;
}

template <class T>
void sum_rows(const T* from, T* to, std::int64_t rows, std::int64_t length) {
  for (std::int64_t r = 0; r < rows; ++r) {
    Compute<T> sum{};
    for (std::int64_t i = 0; i < length; ++i) sum += widen(from[r * length + i]);
    to[r] = static_cast<T>(sum);
  }
}

// The elements in the order of `labels`, summed over all other axes.
Array gather_axes(KernelContext& c, const Array& x, const Axes& axes, const Labels& labels) {
  Labels order = labels;
  Shape all = shape_of(labels, axes);
  std::int64_t summed = 1;
  for (const Axis& a : axes) {
    if (has(labels, a.label)) continue;
    order.push_back(a.label);
    all.add_dim(a.size);
    summed *= a.size;
  }
  if (order.size() == labels.size() && lies_in_order(axes, labels)) return x.reshape(all);
  Array copy = c.allocate_temp(x.dtype(), all);
  if (copy.num_elements() != 0) {
    StridedCopy move;
    const Strides to(all);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (const Axis* a = find(axes, order[i]))
        move.add(a->size, to[static_cast<int>(i)], a->stride);
    }
    move.run(c.intra_op(), x.dtype(), copy.raw_data(), x.raw_data());
  }
  if (order.size() == labels.size()) return copy;
  Array sums = c.allocate_temp(x.dtype(), shape_of(labels, axes));
  with_addable(x.dtype(), [&]<class T>() {
    sum_rows(copy.data<T>(), sums.data<T>(), sums.num_elements(), summed);
  });
  return sums;
}

// Puts values into the result, where their axes come in another order, are repeated or form
// diagonals.
void scatter_axes(KernelContext& c, const Array& values, const Axes& axes, const Labels& result,
                  Array& out) {
  if (out.num_elements() == 0) return;
  const Axes target = distinct_axes(result, out.shape());
  if (target.size() != result.size()) {
    clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
  }
  StridedCopy move;
  for (const Axis& to : target) {
    const Axis* from = find(axes, to.label);
    move.add(to.size, to.stride, from && from->size != 1 ? from->stride : 0);
  }
  move.run(c.intra_op(), out.dtype(), out.raw_data(), values.raw_data());
}

// One operand of the matrix product: [batch, rows, columns], or with rows and columns exchanged
// where it lies so.
Array matrix_operand(KernelContext& c, const Array& x, const Axes& axes, const Labels& batch,
                     const Labels& rows, const Labels& columns, bool& transposed) {
  const MatrixOrder order(axes, batch, rows, columns);
  transposed = order.transposed;
  return gather_axes(c, x, axes, order.labels);
}

void multiply_operands(KernelContext& c, const Axes axes[2], const Sizes& sizes,
                       const Labels& result, Array& out) {
  const Roles roles(axes[0], axes[1], result);
  const auto product_of = [&](const Labels& labels) {
    Shape shape;
    for (const int label : labels) shape.add_dim(sizes[label]);
    return shape;
  };
  MatrixProduct p;
  p.dtype = out.dtype();
  const Array a = matrix_operand(c, c.input(0), axes[0], roles.batch, roles.free_a,
                                 roles.contracted, p.transpose_a);
  const Array b = matrix_operand(c, c.input(1), axes[1], roles.batch, roles.contracted,
                                 roles.free_b, p.transpose_b);
  const Shape batch = product_of(roles.batch);
  p.m = product_of(roles.free_a).num_elements();
  p.n = product_of(roles.free_b).num_elements();
  p.k = product_of(roles.contracted).num_elements();
  p.batch = batch.num_elements();
  if (out.num_elements() == 0) return;

  const Shape batch_a = shape_of(roles.batch, axes[0]), batch_b = shape_of(roles.batch, axes[1]);
  std::vector<std::int64_t> a_index, b_index;
  p.a_once = batch_a.num_elements() == 1;
  p.b_once = batch_b.num_elements() == 1;
  if (!p.a_once && !(batch_a == batch)) a_index = matrix_numbers(batch_a, batch);
  if (!p.b_once && !(batch_b == batch)) b_index = matrix_numbers(batch_b, batch);
  p.a_index = a_index;
  p.b_index = b_index;
  p.a = a.raw_data();
  p.b = b.raw_data();

  const Labels order = roles.batch + roles.free_a + roles.free_b;
  if (order == result) {
    p.c = out.raw_data();
    return multiply_matrices(c, p);
  }
  const Array values = c.allocate_temp(out.dtype(), product_of(order));
  p.c = values.raw_data();
  multiply_matrices(c, p);
  scatter_axes(c, values, distinct_axes(order, values.shape()), result, out);
}

void einsum(KernelContext& c) {
  const EinsumEquation equation = EinsumEquation::parse(c.attr<std::string>("equation"));
  if (!equation.has_result) {
    throw InvalidArgumentError(
        cat("The einsum equation '", equation.to_string(), "' must have a \"->\"."));
  }
  if (c.num_inputs() > 2) {
    throw InvalidArgumentError(cat("Einsum takes one or two operands but got ", c.num_inputs(),
                                   ". td::einsum contracts more of them step by step."));
  }
  std::vector<int> ranks;
  for (int i = 0; i < c.num_inputs(); ++i) ranks.push_back(c.input(i).rank());
  const EinsumLabels labels(equation, ranks);
  Axes axes[2];
  Sizes sizes;
  for (int i = 0; i < c.num_inputs(); ++i) {
    axes[i] = distinct_axes(labels.operands[static_cast<std::size_t>(i)], c.input(i).shape());
    sizes.add(axes[i]);
  }
  Shape shape;
  for (const int label : labels.result) shape.add_dim(sizes[label]);
  Array& out = c.allocate_output(0, shape);
  if (c.num_inputs() == 2) return multiply_operands(c, axes, sizes, labels.result, out);

  Labels kept;
  bool summed = false;
  for (const Axis& a : axes[0]) {
    if (has(labels.result, a.label)) {
      kept.push_back(a.label);
    } else {
      summed = true;
    }
  }
  if (!summed) return scatter_axes(c, c.input(0), axes[0], labels.result, out);
  const Array sums = gather_axes(c, c.input(0), axes[0], kept);
  scatter_axes(c, sums, distinct_axes(kept, sums.shape()), labels.result, out);
}

const KernelRegistration kEinsum{{.op = "Einsum", .types = {{"T", kNumberTypes}}, .run = einsum}};

}  // namespace
}  // namespace tandem::cpu
