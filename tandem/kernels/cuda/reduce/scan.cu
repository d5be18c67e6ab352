// Running sums and products along an axis.

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

// A thread for each line: [outer, n, inner].
template <class T, bool kProduct>
TANDEM_KERNEL scan_kernel(const T* x, T* y, std::int64_t lines, std::int64_t n, std::int64_t inner,
                          bool exclusive, bool reverse) {
  for (auto line = first_index<std::int64_t>(); line < lines; line += index_step<std::int64_t>()) {
    const std::int64_t first = line / inner * n * inner + line % inner;
    Sum<T> sum = kProduct ? Sum<T>(1) : Sum<T>(0);
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t i = first + (reverse ? n - 1 - k : k) * inner;
      const Sum<T> value = static_cast<Sum<T>>(load(x[i]));
      const Sum<T> next = kProduct ? sum * value : sum + value;
      y[i] = store<T>(exclusive ? sum : next);
      sum = next;
    }
  }
}

template <bool kProduct>
void scan(KernelCall& call) {
  const TensorView x = call.input(0);
  const std::int64_t given = call.input(1).host_scalar("ScanOp: axis");
  const std::int64_t rank = x.rank();
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) {
    refuse("ScanOp: Expected scan axis in the range [" + std::to_string(-rank) + ", " +
           std::to_string(rank) + ")");
  }
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t n = x.sizes[at], inner = product(std::span(x.sizes).subspan(at + 1));
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH((scan_kernel<T, kProduct>), shape_for(y.count / n), 0, x.as<T>(), y.as<T>(),
                  y.count / n, n, inner, call.attr_bool("exclusive"), call.attr_bool("reverse"));
  });
}

}  // namespace

void scan_sum(KernelCall& call) { scan<false>(call); }
void scan_product(KernelCall& call) { scan<true>(call); }

}  // namespace tandem::cuda
