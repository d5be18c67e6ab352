#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// How an Einstein sum of two operands becomes a product of batches of matrices: what kernels of all
// devices decide alike. Only the standard library is used, since some of them do not link
// libtandem.

namespace tandem::contraction {

using Labels = std::vector<int>;

/// An axis of an operand, or of the result. Labels are distinct: an axis whose label occurs twice
/// is a diagonal, whose stride is the sum of both.
struct Axis {
  int label;
  std::int64_t size;
  std::int64_t stride;  ///< in elements
};
using Axes = std::vector<Axis>;

inline const Axis* find(const Axes& axes, int label) {
  const auto at =
      std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.label == label; });
  return at == axes.end() ? nullptr : &*at;
}

inline bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

inline Labels labels_of(const Axes& axes) {
  Labels labels;
  for (const Axis& a : axes) labels.push_back(a.label);
  return labels;
}

inline Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// True if `axes`, taken in the order of `labels`, lie row-major without gaps. Labels that it lacks
/// have size 1.
inline bool lies_in_order(const Axes& axes, const Labels& labels) {
  std::int64_t stride = 1;
  for (std::size_t i = labels.size(); i-- > 0;) {
    const Axis* a = find(axes, labels[i]);
    if (!a || a->size == 1) continue;
    if (a->stride != stride) return false;
    stride *= a->size;
  }
  return true;
}

/// The labels of two operands, each once, by what becomes of them. What only one operand has and
/// the result lacks is in none of the lists: it is summed up before the product.
struct Roles {
  Labels batch, free_a, free_b, contracted;

  Roles(const Axes& a, const Axes& b, const Labels& result) {
    for (const int label : result) {
      const bool in_a = find(a, label), in_b = find(b, label);
      Labels& role = in_a && in_b ? batch : in_a ? free_a : free_b;
      if ((in_a || in_b) && !has(role, label)) role.push_back(label);
    }
    for (const int label : labels_of(a)) {
      if (!has(result, label) && find(b, label)) contracted.push_back(label);
    }
  }
};

/// One operand of the product: [batch, rows, columns], or with rows and columns exchanged where it
/// lies so.
struct MatrixOrder {
  Labels labels;
  bool transposed = false;
  bool in_place = false;  ///< it lies in this order, and has no axis that is to be summed up

  MatrixOrder(const Axes& axes, const Labels& batch, const Labels& rows, const Labels& columns)
      : labels(batch + rows + columns) {
    if (axes.size() != labels.size()) return;
    in_place = lies_in_order(axes, labels);
    const Labels turned = batch + columns + rows;
    if (in_place || !lies_in_order(axes, turned)) return;
    labels = turned;
    transposed = in_place = true;
  }
};

}  // namespace tandem::contraction
