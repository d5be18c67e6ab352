// Where the largest and the smallest element of each line lies; of equals the first.

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

// A thread for each line: [outer, n, inner]. As in TensorFlow a NaN is never the result.
template <class T, class Index>
TANDEM_KERNEL arg_kernel(const T* x, Index* y, std::int64_t lines, std::int64_t n,
                         std::int64_t inner, bool largest) {
  for (auto line = first_index<std::int64_t>(); line < lines; line += index_step<std::int64_t>()) {
    const T* from = x + line / inner * n * inner + line % inner;
    // Begins with what no element is better than, so that a NaN in front is passed over.
    using Limits = std::numeric_limits<Compute<T>>;
    Compute<T> best = largest ? Limits::lowest() : Limits::max();
    if constexpr (kIsFloating<T>) best = largest ? -Limits::infinity() : Limits::infinity();
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const Compute<T> value = load(from[i * inner]);
      if (largest ? best < value : value < best) {
        best = value;
        place = i;
      }
    }
    y[line] = static_cast<Index>(place);
  }
}

void arg(KernelCall& call, bool largest) {
  const TensorView x = call.input(0);
  const std::int64_t given = call.input(1).host_scalar("dim");
  const std::int64_t rank = x.rank();
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) {
    refuse("Expected dimension in the range [" + std::to_string(-rank) + ", " +
           std::to_string(rank) + "), but got " + std::to_string(given));
  }
  const auto at = static_cast<std::size_t>(axis);
  Sizes sizes = x.sizes;
  const std::int64_t n = sizes[at];
  if (n == 0) refuse("Reduction axis " + std::to_string(given) + " is empty in shape");
  const std::int64_t inner = product(std::span(sizes).subspan(at + 1));
  sizes.erase(sizes.begin() + axis);
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  visit_numbers(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool known = visit_integers(y.type, [&](auto index) {
      using Index = typename decltype(index)::type;
      if constexpr (std::is_same_v<Index, std::int32_t> || std::is_same_v<Index, std::int64_t>) {
        TANDEM_LAUNCH((arg_kernel<T, Index>), shape_for(y.count), 0, x.as<T>(), y.as<Index>(),
                      y.count, n, inner, largest);
      } else {
        no_kernel_for(y.type);
      }
    });
    if (!known) no_kernel_for(y.type);
  });
}

}  // namespace

void reduce_arg_max(KernelCall& call) { arg(call, true); }
void reduce_arg_min(KernelCall& call) { arg(call, false); }

}  // namespace tandem::cuda
