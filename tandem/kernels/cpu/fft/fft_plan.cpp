#include "tandem/kernels/cpu/fft/fft_plan.h"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "tandem/core/never_destroyed.h"
#include "tandem/kernels/cpu/fft/fft_lines.h"

namespace tandem::cpu {
namespace {

using Complex = std::complex<double>;

// Primes up to this one are transformed by their definition.
constexpr std::int64_t kLargestRadix = 61;

std::vector<std::int64_t> radices(std::int64_t n) {
  std::vector<std::int64_t> found;
  for (const std::int64_t radix : {4, 2, 3, 5}) {
    for (; n % radix == 0; n /= radix) found.push_back(radix);
  }
  for (std::int64_t radix = 7; radix <= kLargestRadix; radix += 2) {
    for (; n % radix == 0; n /= radix) found.push_back(radix);
  }
  if (n != 1) found.clear();
  return found;
}

// Values by size; when there are many all are recomputed, and those of large sizes, which cost too
// much memory, each time.
template <class T>
class Kept {
 public:
  template <class Make>
  std::shared_ptr<const T> get(std::int64_t n, Make make) {
    constexpr std::int64_t kLargest = 1 << 16;
    constexpr std::size_t kMax = 64;
    if (n > kLargest) return make();
    {
      const std::scoped_lock lock(mutex_);
      if (const auto found = values_.find(n); found != values_.end()) return found->second;
    }
    std::shared_ptr<const T> made = make();
    const std::scoped_lock lock(mutex_);
    if (values_.size() >= kMax) values_.clear();
    values_[n] = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<const T>> values_;
};

}  // namespace

Complex root_of_unity(std::int64_t k, std::int64_t n) {
  // The angle in eighths of a turn and what is left of it, in n-ths of an eighth.
  const std::int64_t eighth = 8 * k / n;
  const std::int64_t left = 8 * k - eighth * n;
  const bool back = eighth % 2 == 1;
  const double angle =
      std::numbers::pi / 4 * static_cast<double>(back ? n - left : left) / static_cast<double>(n);
  double x = std::cos(angle), y = std::sin(angle);
  if (eighth % 4 == 1 || eighth % 4 == 2) std::swap(x, y);
  if (eighth % 8 >= 2 && eighth % 8 <= 5) x = -x;
  if (eighth % 8 >= 4) y = -y;
  return {x, -y};
}

bool fft_has_passes(std::int64_t n) { return n == 1 || !radices(n).empty(); }

std::int64_t fft_good_size(std::int64_t n) {
  for (;; ++n) {
    std::int64_t rest = n;
    for (const std::int64_t prime : {2, 3, 5}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest == 1) return n;
  }
}

FftPlan::FftPlan(std::int64_t size) : n(size) {
  std::int64_t before = 1;
  for (const std::int64_t radix : radices(n)) {
    const std::int64_t after = n / (before * radix);
    FftPass pass{radix, before, after, numbers.size(), 0};
    for (std::int64_t j = 0; j < radix; ++j) {
      for (std::int64_t i = 0; i < after; ++i) numbers.push_back(root_of_unity(j * before * i, n));
    }
    pass.roots = numbers.size();
    for (std::int64_t j = 0; radix > 5 && j < radix; ++j) {
      numbers.push_back(root_of_unity(j, radix));
    }
    passes.push_back(pass);
    before *= radix;
  }
  if (n == 1 || !passes.empty()) return;
  for (std::int64_t k = 0, square = 0; k < n; ++k) {  // `square` is k² modulo 2n
    chirp.push_back(root_of_unity(square, 2 * n));
    square = (square + 2 * k + 1) % (2 * n);
  }
  const std::int64_t m = fft_good_size(2 * n - 1);
  convolution = fft_plan(m);
  filter.assign(static_cast<std::size_t>(m), Complex(0));
  for (std::int64_t k = 0; k < n; ++k) {
    const Complex value = std::conj(chirp[static_cast<std::size_t>(k)]) / static_cast<double>(m);
    filter[static_cast<std::size_t>(k)] = value;
    filter[static_cast<std::size_t>(k == 0 ? 0 : m - k)] = value;
  }
  std::vector<Complex> other(filter.size());
  auto* a = reinterpret_cast<double*>(filter.data());
  if (fft_run_one(*convolution, a, reinterpret_cast<double*>(other.data())) != a) filter = other;
}

std::shared_ptr<const FftPlan> fft_plan(std::int64_t n) {
  static NeverDestroyed<Kept<FftPlan>> kept;
  return kept->get(n, [n] { return std::make_shared<const FftPlan>(n); });
}

std::shared_ptr<const std::vector<Complex>> fft_half_roots(std::int64_t n) {
  static NeverDestroyed<Kept<std::vector<Complex>>> kept;
  return kept->get(n, [n] {
    auto roots = std::make_shared<std::vector<Complex>>();
    for (std::int64_t k = 0; k <= n / 2; ++k) roots->push_back(root_of_unity(k, n));
    return std::shared_ptr<const std::vector<Complex>>(roots);
  });
}

}  // namespace tandem::cpu
