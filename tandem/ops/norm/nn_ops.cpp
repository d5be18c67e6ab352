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

namespace {

// Where elements of a dropout are kept, drawn by `draw` from a shape.
template <class Draw>
Tensor drop(const Tensor& x, double rate, const Tensor& given_shape, Draw draw) {
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
  if (given_shape.defined()) {
    noise_shape = given_shape;
  } else if (auto dims = internal::known_dims(x)) {
    noise_shape = std::move(*dims);
  } else {
    noise_shape = shape(x, int64);
  }
  return where(draw(noise_shape) >= rate, x * (1 / (1 - rate)), 0.0);
}

}  // namespace

Tensor dropout(const Tensor& x, double rate, const DropoutOptions& options) {
  return drop(x, rate, options.noise_shape, [&](const IntList& shape) {
    return random::uniform(shape, {.dtype = x.dtype(), .seed = options.seed});
  });
}

Tensor experimental::stateless_dropout(const Tensor& x, double rate, const Tensor& seed,
                                       const Tensor& noise_shape) {
  return drop(x, rate, noise_shape, [&](const IntList& shape) {
    return random::stateless_uniform(shape, IntList(seed), {.dtype = x.dtype()});
  });
}

Tensor embedding_lookup(const Tensor& params, const Tensor& ids) { return gather(params, ids); }

}  // namespace tandem::nn
