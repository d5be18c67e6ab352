#include "tandem/ops/nn_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/shape_ops.h"

namespace tandem::nn {

Tensor dropout(const Tensor& x, double rate, const DropoutOptions& options) {
  if (!(rate >= 0 && rate < 1)) {
    throw InvalidArgumentError(
        cat("td::nn::dropout: `rate` must be in the range [0, 1). Received: rate=", rate));
  }
  if (!is_floating(x.dtype())) {
    throw InvalidArgumentError(
        cat("td::nn::dropout: x is scaled, so its dtype must be a floating one, not ", x.dtype(),
            ": use td::cast."));
  }
  if (rate == 0) return x;
  IntList noise_shape;
  if (options.noise_shape.defined()) {
    noise_shape = options.noise_shape;
  } else if (auto dims = internal::known_dims(x)) {
    noise_shape = std::move(*dims);
  } else {
    noise_shape = shape(x, int64);
  }
  const Tensor noise = random::uniform(noise_shape, {.dtype = x.dtype(), .seed = options.seed});
  return where(noise >= rate, x * (1 / (1 - rate)), 0.0);
}

Tensor embedding_lookup(const Tensor& params, const Tensor& ids) { return gather(params, ids); }

}  // namespace tandem::nn
