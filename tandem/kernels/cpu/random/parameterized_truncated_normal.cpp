// Normal numbers of given mean and deviation between given bounds.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/random/distributions.h"
#include "tandem/kernels/cpu/random/random.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

constexpr int kMaxTries = 1000;

// Groups of numbers from one stream, in TensorFlow's arithmetic: T itself, or float for half.
template <class T>
struct Draws {
  using A = Wide<T>;
  static constexpr int kGroup = Uniform<T>::kGroup;
  explicit Draws(const Philox& from) : stream(from) {}

  template <class Distribution>
  void operator()(A* to) {
    T values[kGroup];
    const Philox::Block block = stream();
    Distribution()(block.data(), values);
    for (int i = 0; i < kGroup; ++i) to[i] = widen(values[i]);
  }
  Philox stream;
};

template <class T>
class Sampler {
 public:
  using A = Wide<T>;
  static constexpr int kGroup = Draws<T>::kGroup;

  Sampler(A mean, A deviation, A low, A high, Draws<T>& draws)
      : mean_(mean), deviation_(deviation), draws_(draws) {
    if (!(deviation > 0 && low < high && (std::isfinite(low) || std::isfinite(high)))) {
      throw InvalidArgumentError(
          "Invalid parameters: deviations must be positive, and each lower "
          "bound below the upper one, one of them finite.");
    }
    // The bound that counts is the lower one.
    if ((std::isinf(low) && low < 0) || high < mean) {
      std::swap(low, high);
      deviation_ = -deviation_;
    }
    low_ = round((low - mean) / deviation_);
    high_ = round((high - mean) / deviation_);
  }

  void fill(T* to, std::int64_t n) {
    to_ = to;
    end_ = to + n;
    const A root = round(std::sqrt(round(low_ * low_) + 4));
    const A cutoff = round(2 * std::exp(A(0.5) + (low_ * (low_ - root)) / 4) / (low_ + root));
    constexpr A kInside = A(1.3);
    if ((low_ < -kInside && high_ >= 0) || (high_ > kInside && low_ <= 0)) return from_normal();
    if (round(high_ - low_) < cutoff) return from_uniform();
    from_exponential();
  }

 private:
  // The value rounded to T.
  static A round(A x) { return widen(static_cast<T>(x)); }

  // Takes a candidate or not; true when all are there.
  bool take(A z, bool accepted) {
    if (!accepted) {
      if (++tries_ >= kMaxTries) {
        throw InternalError("TruncatedNormal: a rejection sampler failed to accept a sample.");
      }
      return false;
    }
    *to_++ = static_cast<T>(z * deviation_ + mean_);
    tries_ = 0;
    return to_ == end_;
  }

  void from_normal() {
    A x[kGroup];
    while (to_ != end_) {
      draws_.template operator()<Normal<T>>(x);
      for (const A z : x) {
        if (take(z, z >= low_ && z <= high_)) return;
      }
    }
  }

  void from_uniform() {
    const A width = high_ - low_, nearest = low_ < 0 ? 0 : low_ * low_;
    A x[kGroup], u[kGroup];
    while (to_ != end_) {
      draws_.template operator()<Uniform<T>>(x);
      draws_.template operator()<Uniform<T>>(u);
      for (int i = 0; i < kGroup; ++i) {
        const A z = x[i] * width + low_;
        if (take(z, u[i] <= std::exp((nearest - z * z) / 2))) return;
      }
    }
  }

  void from_exponential() {
    const A alpha = (low_ + std::sqrt(low_ * low_ + 4)) / 2;
    A x[kGroup];
    while (to_ != end_) {
      draws_.template operator()<Uniform<T>>(x);
      for (int i = 0; i < kGroup; i += 2) {
        const A z = -std::log(x[i]) / alpha + low_;
        const A far = low_ < alpha ? alpha - z : low_ - alpha;
        if (take(z, x[i + 1] <= std::exp(-far * far / 2) && z < high_)) return;
      }
    }
  }

  A mean_, deviation_, low_, high_;
  Draws<T>& draws_;
  T* to_ = nullptr;
  T* end_ = nullptr;
  int tries_ = 0;
};

std::uint64_t blocks_for(std::int64_t batches, std::int64_t each) {
  return static_cast<std::uint64_t>(checked_multiply(batches, 2 * kMaxTries)) *
         static_cast<std::uint64_t>(each + 3) / 4;
}

void stateful(KernelContext& c) {
  const Shape shape = shape_input(c, 0);
  if (shape.rank() == 0) throw InvalidArgumentError("Shape tensor must not be empty, got []");
  for (int i = 1; i < 5; ++i) {
    if (c.input(i).rank() > 1) {
      throw InvalidArgumentError(
          cat("Input ", c.op().inputs[static_cast<std::size_t>(i)].name,
              " should be a scalar or vector, got shape: ", c.input(i).shape()));
    }
  }
  std::int64_t batches = shape[0], each = shape.product(1, shape.rank());
  const std::int64_t all = shape.num_elements();
  const auto alone = [&](int i) { return c.input(i).num_elements() == 1; };
  if (alone(1) && alone(2) && c.input(3).rank() == 0 && c.input(4).rank() == 0) {
    each = 100;
    batches = all / each + (all % each != 0);
  } else {
    for (int i = 1; i < 5; ++i) {
      if (!alone(i) && c.input(i).num_elements() != batches) {
        throw InvalidArgumentError(
            cat("Input ", c.op().inputs[static_cast<std::size_t>(i)].name,
                " should have length 1 or shape[0], got shape: ", c.input(i).shape()));
      }
    }
  }
  Array& out = c.allocate_output(0, shape);
  const Philox stream = reserve_blocks(c, blocks_for(batches, each));
  with_floating(out.dtype(), [&]<class T>() {
    Draws<T> draws(stream);
    for (std::int64_t b = 0; b < batches; ++b) {
      const auto parameter = [&](int i) { return widen(c.input(i).data<T>()[alone(i) ? 0 : b]); };
      Sampler<T> sampler(parameter(1), parameter(2), parameter(3), parameter(4), draws);
      const std::int64_t begin = b * each, end = std::min(all, begin + each);
      if (begin < end) sampler.fill(out.data<T>() + begin, end - begin);
    }
  });
}

const KernelRegistration kStateful{
    {.op = "ParameterizedTruncatedNormal", .types = {{"dtype", kFloatTypes}}, .run = stateful}};

}  // namespace
}  // namespace tandem::cpu
