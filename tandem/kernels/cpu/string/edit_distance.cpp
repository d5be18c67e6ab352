// Levenshtein distances between the rows of two sparse arrays.

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// The rows of a sparse array, by the row-major number of their place in `groups`: places of their
// values.
using Rows = std::map<std::int64_t, std::vector<std::int64_t>>;

struct Sparse {
  const Array &indices, &values, &shape;
};

void check(const Sparse& x, const char* name) {
  if (x.indices.rank() != 2) {
    throw InvalidArgumentError(
        cat(name, "_indices should be a matrix, but got shape: ", x.indices.shape()));
  }
  if (x.values.rank() != 1 || x.values.shape()[0] != x.indices.shape()[0]) {
    throw InvalidArgumentError(cat(name, "_values should be a vector of ", x.indices.shape()[0],
                                   " elements, but got shape: ", x.values.shape()));
  }
  if (x.shape.rank() != 1 || x.shape.shape()[0] != x.indices.shape()[1]) {
    throw InvalidArgumentError(cat(name, "_shape should be a vector of ", x.indices.shape()[1],
                                   " elements, but got shape: ", x.shape.shape()));
  }
  for (const std::int64_t size : x.shape.values<std::int64_t>()) {
    if (size < 0) throw InvalidArgumentError(cat(name, "_shape holds ", size));
  }
}

Rows rows_of(const Sparse& x, const Shape& groups, const char* name) {
  Rows rows;
  const int rank = groups.rank() + 1;
  const auto* index = x.indices.data<std::int64_t>();
  const auto* bounds = x.shape.data<std::int64_t>();
  for (std::int64_t i = 0; i < x.values.num_elements(); ++i, index += rank) {
    std::int64_t group = 0;
    for (int k = 0; k < rank; ++k) {
      if (index[k] < 0 || index[k] >= bounds[k]) {
        throw InvalidArgumentError(cat(name, "_indices[", i, "] is out of bounds: ", index[k],
                                       " not in [0, ", bounds[k], ")"));
      }
      if (k + 1 < rank) group = group * groups[k] + index[k];
    }
    rows[group].push_back(i);
  }
  return rows;
}

template <class T>
bool equal(const T& a, const T& b) {
  if constexpr (is_float16<T>) {
    return widen(a) == widen(b);
  } else {
    return a == b;
  }
}

template <class Equal>
std::int64_t levenshtein(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                         Equal same) {
  std::vector<std::int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t corner = row[0];
    row[0] = static_cast<std::int64_t>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int64_t change = corner + (same(a[i], b[j]) ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, corner + 1});
    }
  }
  return row.back();
}

void edit_distance(KernelContext& c) {
  const Sparse hypothesis{c.input(0), c.input(1), c.input(2)};
  const Sparse truth{c.input(3), c.input(4), c.input(5)};
  check(hypothesis, "hypothesis");
  check(truth, "truth");
  const std::int64_t rank = hypothesis.shape.num_elements();
  if (rank != truth.shape.num_elements()) {
    throw InvalidArgumentError(cat("Expected hypothesis and truth of one rank, but got ", rank,
                                   " and ", truth.shape.num_elements()));
  }
  if (rank < 2 || rank > Shape::kMaxRank) {
    throw InvalidArgumentError(cat("There must be at least two dimensions, but there are ", rank));
  }
  Shape groups;
  for (std::int64_t k = 0; k + 1 < rank; ++k) {
    groups.add_dim(
        std::max(hypothesis.shape.data<std::int64_t>()[k], truth.shape.data<std::int64_t>()[k]));
  }
  if (groups.num_elements() == 0) {
    throw InvalidArgumentError(cat("Got output shape ", groups, " which has 0 elements"));
  }
  const bool normalize = c.attr<bool>("normalize");
  const Rows ours = rows_of(hypothesis, groups, "hypothesis"),
             theirs = rows_of(truth, groups, "truth");
  Array& out = c.allocate_output(0, groups);
  auto* to = out.data<float>();
  std::fill(to, to + out.num_elements(), 0.0f);
  for (const auto& [group, row] : ours) {
    if (theirs.count(group) != 0) continue;
    to[group] = normalize ? std::numeric_limits<float>::infinity() : static_cast<float>(row.size());
  }
  const auto compare = [&]<class T>() {
    const T* a = hypothesis.values.data<T>();
    const T* b = truth.values.data<T>();
    for (const auto& [group, row] : theirs) {
      const auto found = ours.find(group);
      const auto size = static_cast<float>(row.size());
      if (found == ours.end()) {
        to[group] = normalize ? 1.0f : size;
        continue;
      }
      const std::int64_t distance = levenshtein(
          row, found->second, [&](std::int64_t i, std::int64_t j) { return equal(b[i], a[j]); });
      to[group] = normalize ? static_cast<float>(distance) / size : static_cast<float>(distance);
    }
  };
  switch (hypothesis.values.dtype()) {
    case DType::kString: return compare.template operator()<std::string>();
    case DType::kBool: return compare.template operator()<bool>();
    default: with_number(hypothesis.values.dtype(), compare);
  }
}

const KernelRegistration kDistance{{.op = "EditDistance", .run = edit_distance}};

}  // namespace
}  // namespace tandem::cpu
