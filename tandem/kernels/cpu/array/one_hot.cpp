// OneHot.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// Where the new axis lies: `depth` rows of `behind` elements, `before` times.
struct Places {
  std::int64_t before, depth, behind;
  std::int64_t block() const { return depth * behind; }
};

template <class T>
void fill_elements(T* to, T value, std::int64_t n) {
  constexpr std::int64_t kPiece = 16;  // a constant count becomes vector instructions
  std::int64_t i = 0;
  if constexpr (sizeof(T) > 1 && std::is_integral_v<T>) {
    for (; i + kPiece <= n; i += kPiece) {
      for (std::int64_t k = 0; k < kPiece; ++k) to[i + k] = value;
    }
  }
  std::fill_n(to + i, n - i, value);
}

// Takes all by value, which no store can change.
template <class T, class Index>
void mark(Places p, const Index* indices, T on, T* to, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t k = 0; k < p.behind; ++k) {
      const auto at = static_cast<std::int64_t>(indices[i * p.behind + k]);
      if (at >= 0 && at < p.depth) to[i * p.block() + at * p.behind + k] = on;
    }
  }
}

template <class T>
void mark(const Places& p, const Array& indices, const T& on, T* to, std::int64_t begin,
          std::int64_t end) {
  switch (indices.dtype()) {
    case DType::kInt32: return mark(p, indices.data<std::int32_t>(), on, to, begin, end);
    case DType::kUint8: return mark(p, indices.data<std::uint8_t>(), on, to, begin, end);
    case DType::kInt8: return mark(p, indices.data<std::int8_t>(), on, to, begin, end);
    default: return mark(p, indices.data<std::int64_t>(), on, to, begin, end);
  }
}

// Fills a piece that stays in the cache, then marks it: short rows cost no more than long ones.
template <class T>
void one_hot_blocks(IntraOpPool& pool, const Places& p, const Array& indices, const T& on,
                    const T& off, T* to, double cost) {
  constexpr std::int64_t kElements = 4096;
  const std::int64_t step =
      std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, p.block()));
  pool.parallel_for(p.before, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += step) {
      const std::int64_t last = std::min(i + step, end);
      fill_elements(to + i * p.block(), off, (last - i) * p.block());
      mark(p, indices, on, to, i, last);
    }
  });
}

void one_hot(KernelContext& c) {
  const Array& indices = c.input(0);
  const std::int64_t depth = scalar_int_input(c, 1, "depth");
  if (depth < 0) throw InvalidArgumentError(cat("depth must be non-negative, got: ", depth));
  for (int i : {2, 3}) {
    if (c.input(i).rank() != 0) {
      throw InvalidArgumentError(cat(i == 2 ? "on_value" : "off_value",
                                     " must be a scalar, but got: ", c.input(i).shape()));
    }
  }
  const auto attr = c.attr<std::int64_t>("axis");
  if (attr < -1 || attr > indices.rank()) {
    throw InvalidArgumentError(cat("Expected axis to be -1 or between [0, ", indices.rank() + 1,
                                   ").  But received: ", attr));
  }
  const int axis = attr == -1 ? indices.rank() : static_cast<int>(attr);
  Shape shape;
  for (int i = 0; i <= indices.rank(); ++i) {
    if (i == axis) shape.add_dim(depth);
    if (i < indices.rank()) shape.add_dim(indices.shape()[i]);
  }
  Array& out = c.allocate_output(0, shape);
  const Places places{indices.shape().product(0, axis), depth,
                      indices.shape().product(axis, indices.rank())};
  with_element(out.dtype(), [&]<class T>() {
    const double cost = static_cast<double>(places.block()) * move_cost(out.dtype()) +
                        static_cast<double>(places.behind);
    one_hot_blocks(c.intra_op(), places, indices, *static_cast<const T*>(c.input(2).raw_data()),
                   *static_cast<const T*>(c.input(3).raw_data()), static_cast<T*>(out.raw_data()),
                   cost);
  });
}

const KernelRegistration kOneHot{{.op = "OneHot", .run = one_hot}};

}  // namespace
}  // namespace tandem::cpu
