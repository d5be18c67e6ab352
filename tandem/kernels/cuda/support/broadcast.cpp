#include "tandem/kernels/cuda/support/broadcast.h"

#include <algorithm>

namespace tandem::cuda {

Sizes broadcast_sizes(const Sizes& a, const Sizes& b) {
  Sizes result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto size = [&](const Sizes& s) {
      const std::size_t missing = result.size() - s.size();
      return i < missing ? 1 : s[i - missing];
    };
    if (size(a) != size(b) && size(a) != 1 && size(b) != 1) {
      refuse("the operands' shapes do not fit together by broadcasting");
    }
    result[i] = size(a) == 1 ? size(b) : size(a);
  }
  return result;
}

}  // namespace tandem::cuda
