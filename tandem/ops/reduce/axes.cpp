#include "tandem/ops/axes.h"

#include <numeric>

#include "tandem/ops/internal/known.h"

namespace tandem {

Tensor Axes::to_tensor(const Tensor& x) const {
  if (tensor_.defined()) return tensor_;
  if (list_) return internal::int_vector(*list_, int32);
  const int rank = x.rank();
  if (rank < 0) {
    return internal::op1("Range", {Tensor(0), internal::op1("Rank", {x}), Tensor(1)});
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(rank));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return internal::int_vector(all, int32);
}

}  // namespace tandem
