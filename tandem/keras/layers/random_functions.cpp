#include "tandem/core/never_destroyed.h"
#include "tandem/keras/random.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_generator.h"
#include "tandem/ops/sort_ops.h"

namespace tandem::keras::random {

namespace stateless = tandem::random;

Tensor RandomSeed::draw() const {
  if (generator_) return generator_->next();
  if (number_) return Tensor(std::vector<std::int32_t>{static_cast<std::int32_t>(*number_), 0});
  static const NeverDestroyed<SeedGenerator> shared([] { return SeedGenerator(); });
  return (*shared).next();
}

Tensor normal(const IntList& shape, const NormalOptions& o) {
  return stateless::stateless_normal(shape, IntList(o.seed.draw()),
                                     {.mean = o.mean, .stddev = o.stddev, .dtype = o.dtype});
}
Tensor truncated_normal(const IntList& shape, const NormalOptions& o) {
  return stateless::stateless_truncated_normal(
      shape, IntList(o.seed.draw()), {.mean = o.mean, .stddev = o.stddev, .dtype = o.dtype});
}
Tensor uniform(const IntList& shape, const UniformOptions& o) {
  return stateless::stateless_uniform(shape, IntList(o.seed.draw()),
                                      {.minval = o.minval, .maxval = o.maxval, .dtype = o.dtype});
}
Tensor randint(const IntList& shape, std::int64_t minval, std::int64_t maxval, DTypeLike dtype,
               const RandomSeed& seed) {
  // Other integers are drawn as int32, as Keras does.
  const DType drawn = dtype == int32 || dtype == int64 ? DType(dtype) : int32;
  const Tensor x = stateless::stateless_uniform(shape, IntList(seed.draw()),
                                                {.minval = static_cast<double>(minval),
                                                 .maxval = static_cast<double>(maxval),
                                                 .dtype = drawn});
  return cast(x, dtype);
}
Tensor categorical(const Tensor& logits, std::int64_t num_samples, DTypeLike dtype,
                   const RandomSeed& seed) {
  return cast(stateless::stateless_categorical(logits, num_samples, IntList(seed.draw()), int64),
              dtype);
}
Tensor shuffle(const Tensor& x, int axis, const RandomSeed& seed) {
  const int at = axis < 0 ? axis + x.rank() : axis;
  const Tensor size = reshape(shape(x)[at], {1});
  const Tensor drawn = stateless::stateless_uniform(IntList(size), IntList(seed.draw()));
  return gather(x, argsort(drawn), at);
}
Tensor dropout(const Tensor& inputs, double rate, const Tensor& noise_shape,
               const RandomSeed& seed) {
  return nn::experimental::stateless_dropout(inputs, rate, seed.draw(), noise_shape);
}
Tensor gamma(const IntList& shape, const Tensor& alpha, DTypeLike dtype, const RandomSeed& seed) {
  return stateless::stateless_gamma(shape, IntList(seed.draw()), cast(alpha, dtype));
}
Tensor beta(const IntList& shape, const Tensor& alpha, const Tensor& beta, DTypeLike dtype,
            const RandomSeed& seed) {
  const Tensor first = seed.draw(), second = first + 12;
  const Tensor a = stateless::stateless_gamma(shape, IntList(first), cast(alpha, dtype));
  const Tensor b = stateless::stateless_gamma(shape, IntList(second), cast(beta, dtype));
  return a / (a + b);
}
Tensor binomial(const IntList& shape, const Tensor& counts, const Tensor& probabilities,
                DTypeLike dtype, const RandomSeed& seed) {
  const DType real = probabilities.dtype();
  return cast(stateless::stateless_binomial(shape, IntList(seed.draw()), cast(counts, real),
                                            probabilities, int32),
              dtype);
}

}  // namespace tandem::keras::random
