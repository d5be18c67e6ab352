// Random orders and random classes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/random/distributions.h"
#include "tandem/kernels/cpu/random/random.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {

void shuffle_rows(KernelContext& c, const Philox& stream) {
  const Array& x = c.input(0);
  const std::int64_t rows = x.shape()[0];
  if (rows > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgumentError(
        cat("Only values of less than 2^32 rows can be shuffled, not of ", rows, "."));
  }
  // Fisher and Yates, from the front.
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  PhiloxNumbers next(stream);
  for (std::int64_t i = 0; i + 1 < rows; ++i) {
    const std::int64_t other = i + next() % static_cast<std::uint32_t>(rows - i);
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(other)]);
  }
  Array& out = c.allocate_output(0, x.shape());
  const std::int64_t inner = x.shape().product(1, x.rank());
  with_element(x.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const double cost = 5.0 + static_cast<double>(inner) * move_cost(x.dtype());
    c.intra_op().parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        copy_elements(to + i * inner, from + order[static_cast<std::size_t>(i)] * inner, inner);
      }
    });
  });
}

std::int64_t class_samples(const KernelContext& c) {
  const Array& logits = c.input(0);
  if (logits.rank() != 2) {
    throw InvalidArgumentError(cat("logits should be a matrix, got shape ", logits.shape()));
  }
  const std::int64_t samples = scalar_int_input(c, 1, "num_samples");
  if (samples < 0)
    throw InvalidArgumentError(cat("num_samples should be non-negative, got ", samples));
  if (logits.shape()[1] <= 0) {
    throw InvalidArgumentError(cat("num_classes should be positive, got ", logits.shape()[1]));
  }
  return samples;
}

namespace {

template <class T, class Out>
void draw(KernelContext& c, std::int64_t samples, const Philox& stream, Array& out) {
  const Array& logits = c.input(0);
  const std::int64_t classes = logits.shape()[1];
  PhiloxNumbers next(stream);
  std::vector<double> sums(static_cast<std::size_t>(classes));
  for (std::int64_t row = 0; row < logits.shape()[0]; ++row) {
    const T* x = logits.data<T>() + row * classes;
    const auto value = [x](std::int64_t k) {
      if constexpr (is_float16<T>) {
        return static_cast<double>(static_cast<float>(x[k]));
      } else {
        return static_cast<double>(x[k]);
      }
    };
    // The largest is taken off, so that no exponential overflows.
    double largest = std::numeric_limits<double>::lowest();
    for (std::int64_t k = 0; k < classes; ++k) {
      if (std::isfinite(value(k))) largest = std::max(largest, value(k));
    }
    double total = 0;
    for (std::int64_t k = 0; k < classes; ++k) {
      if (std::isfinite(value(k))) total += std::exp(value(k) - largest);
      sums[static_cast<std::size_t>(k)] = total;
    }
    for (std::int64_t s = 0; s < samples; ++s) {
      const std::uint32_t x0 = next();
      const double wanted = unit_double(x0, next()) * total;
      const auto found = std::upper_bound(sums.begin(), sums.end(), wanted);
      out.data<Out>()[row * samples + s] = static_cast<Out>(found - sums.begin());
    }
  }
}

}  // namespace

void draw_classes(KernelContext& c, std::int64_t samples, const Philox& stream) {
  Array& out = c.allocate_output(0, Shape{c.input(0).shape()[0], samples});
  with_real(c.input(0).dtype(), [&]<class T>() {
    if (out.dtype() == DType::kInt32) {
      draw<T, std::int32_t>(c, samples, stream, out);
    } else {
      draw<T, std::int64_t>(c, samples, stream, out);
    }
  });
}

}  // namespace tandem::cpu
