#include "tandem/kernels/cuda/linalg/contraction_library.h"

#include <utility>

#include "tandem/kernels/cuda/array/copy.h"
#include "tandem/kernels/cuda/cublaslt/cublaslt.h"
#include "tandem/kernels/cuda/cublaslt/product.h"

namespace tandem::cuda {
namespace {

using contraction::Axes;
using contraction::Axis;
using contraction::Labels;
using contraction::MatrixOrder;
using contraction::operator+;

// Multiplications. With fewer of them a copy, which is a launch, takes longer than our own kernel.
constexpr std::int64_t kWorthCopies = std::int64_t{1} << 18;

std::int64_t count(const Axes& axes, const Labels& labels) {
  std::int64_t n = 1;
  for (const int label : labels) {
    if (const Axis* a = contraction::find(axes, label)) n *= a->size;
  }
  return n;
}

// The walk over axes of these labels.
Strides<1> walk_of(const Axes& axes, const Labels& labels) {
  Sizes sizes, strides;
  for (const int label : labels) {
    const Axis* a = contraction::find(axes, label);
    sizes.push_back(a->size);
    strides.push_back(a->stride);
  }
  return walk(sizes, strides);
}

// All the matrices of an operand, or one that serves all of the result.
bool has_batches(const Axes& axes, const Axes& result, const Labels& batch) {
  const std::int64_t own = count(axes, batch);
  return own == 1 || own == count(result, batch);
}

// An operand as matrices, copied to memory of its own where it lies in another order.
struct Matrices {
  const ContractionOperand& operand;
  MatrixOrder order;
  std::int64_t elements;
  void* copy = nullptr;

  Matrices(const ContractionOperand& from, const Labels& batch, const Labels& rows,
           const Labels& columns)
      : operand(from),
        order(from.axes, batch, rows, columns),
        elements(count(from.axes, order.labels)) {}

  const void* data() const { return copy ? copy : operand.data; }
  void make_room(const KernelCall& call, std::size_t bytes) {
    if (!order.in_place) copy = call.scratch(static_cast<std::size_t>(elements) * bytes);
  }
  void gather(std::size_t bytes) const {
    if (!copy) return;
    copy_elements(bytes, operand.data, walk_of(operand.axes, order.labels), copy,
                  walk({elements}, {1}), elements);
  }
};

// Where the result is [batch, columns, rows] the operands change their roles.
bool is_turned(const Axes& y, const Labels& rows_first, const Labels& columns_first) {
  return !contraction::lies_in_order(y, rows_first) && contraction::lies_in_order(y, columns_first);
}

}  // namespace

bool contract_by_library(const KernelCall& call, Type type, const ContractionOperand& a,
                         const ContractionOperand& b, void* y, const Axes& y_axes) {
  const contraction::Roles roles(a.axes, b.axes, contraction::labels_of(y_axes));
  const Labels &batch = roles.batch, &inner = roles.contracted;
  if (is_turned(y_axes, batch + roles.free_a + roles.free_b, batch + roles.free_b + roles.free_a) &&
      !roles.free_a.empty() && !roles.free_b.empty())
    return contract_by_library(call, type, b, a, y, y_axes);
  const Labels result = batch + roles.free_a + roles.free_b;
  if (a.axes.size() != (batch + roles.free_a + inner).size() ||
      b.axes.size() != (batch + inner + roles.free_b).size() || !cublaslt().usable() ||
      count(a.axes, inner) != count(b.axes, inner) || !has_batches(a.axes, y_axes, batch) ||
      !has_batches(b.axes, y_axes, batch))
    return false;
  Matrices left(a, batch, roles.free_a, inner), right(b, batch, inner, roles.free_b);
  Product p{.type = type,
            .result_type = type,
            .rows = count(y_axes, roles.free_a),
            .columns = count(y_axes, roles.free_b),
            .depth = count(a.axes, inner),
            .transpose_a = left.order.transposed,
            .transpose_b = right.order.transposed,
            .batch = count(y_axes, batch)};
  const bool in_order = contraction::lies_in_order(y_axes, result);
  if (!(left.order.in_place && right.order.in_place && in_order) &&
      p.rows * p.columns * p.depth * p.batch < kWorthCopies)
    return false;
  p.a_step = count(a.axes, batch) == 1 ? 0 : p.rows * p.depth;
  p.b_step = count(b.axes, batch) == 1 ? 0 : p.depth * p.columns;
  if (p.batch > 1 && !p.transpose_a && p.b_step == 0 && p.a_step != 0) {
    p.rows *= p.batch;  // one b for all: the matrices of a are one with more rows
    p.batch = 1;
  }
  const std::size_t bytes = size_of(type);
  const std::int64_t elements = p.rows * p.columns * p.batch;
  left.make_room(call, bytes);
  right.make_room(call, bytes);
  p.a = left.data();
  p.b = right.data();
  p.y = in_order ? y : call.scratch(static_cast<std::size_t>(elements) * bytes);
  const auto prepare = [&] {
    left.gather(bytes);
    right.gather(bytes);
  };
  if (!multiply_by_cublaslt(call, p, prepare)) return false;
  if (!in_order)
    copy_elements(bytes, p.y, walk({elements}, {1}), y, walk_of(y_axes, result), elements);
  return true;
}

}  // namespace tandem::cuda
