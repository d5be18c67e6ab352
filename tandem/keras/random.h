#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/keras/seed_generator.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/random_ops.h"
#include "tandem/runtime/tensor.h"

/// keras.random: random numbers from a seed (equal seeds, equal numbers, which are Keras'), from a
/// SeedGenerator, or, without either, from one that all such calls share.
namespace tandem::keras::random {

/// A number, a SeedGenerator, or nothing.
class RandomSeed {
 public:
  RandomSeed() = default;
  RandomSeed(std::nullopt_t) {}
  RandomSeed(int seed) : number_(seed) {}
  RandomSeed(std::int64_t seed) : number_(seed) {}
  RandomSeed(SeedGenerator generator) : generator_(std::move(generator)) {}
  RandomSeed(std::optional<std::int64_t> seed) : number_(seed) {}
  /// Two int32 numbers for the stateless ops.
  Tensor draw() const;

 private:
  std::optional<std::int64_t> number_;
  std::optional<SeedGenerator> generator_;
};

using tandem::random::set_seed;

struct NormalOptions {
  double mean = 0;
  double stddev = 1;
  DTypeLike dtype = float32;
  RandomSeed seed = {};
};
TANDEM_EXPORT Tensor normal(const IntList& shape, const NormalOptions& options = {});
inline Tensor normal(const IntList& shape, double mean, double stddev = 1,
                     DTypeLike dtype = float32, const RandomSeed& seed = {}) {
  return normal(shape, {.mean = mean, .stddev = stddev, .dtype = dtype, .seed = seed});
}
/// Values further than two deviations from the mean are drawn again.
TANDEM_EXPORT Tensor truncated_normal(const IntList& shape, const NormalOptions& options = {});
inline Tensor truncated_normal(const IntList& shape, double mean, double stddev = 1,
                               DTypeLike dtype = float32, const RandomSeed& seed = {}) {
  return truncated_normal(shape, {.mean = mean, .stddev = stddev, .dtype = dtype, .seed = seed});
}
struct UniformOptions {
  double minval = 0;
  std::optional<double> maxval = std::nullopt;  ///< not included; 1 for floats
  DTypeLike dtype = float32;
  RandomSeed seed = {};
};
TANDEM_EXPORT Tensor uniform(const IntList& shape, const UniformOptions& options = {});
inline Tensor uniform(const IntList& shape, double minval, double maxval, DTypeLike dtype = float32,
                      const RandomSeed& seed = {}) {
  return uniform(shape, {.minval = minval, .maxval = maxval, .dtype = dtype, .seed = seed});
}
/// Draw options behind numbers that are given by position: `uniform({2, 3}, 0, 10, {.seed = 1})`.
struct DrawOptions {
  DTypeLike dtype = float32;
  RandomSeed seed = {};
};
inline Tensor normal(const IntList& shape, double mean, double stddev, const DrawOptions& options) {
  return normal(shape, mean, stddev, options.dtype, options.seed);
}
inline Tensor truncated_normal(const IntList& shape, double mean, double stddev,
                               const DrawOptions& options) {
  return truncated_normal(shape, mean, stddev, options.dtype, options.seed);
}
inline Tensor uniform(const IntList& shape, double minval, double maxval,
                      const DrawOptions& options) {
  return uniform(shape, minval, maxval, options.dtype, options.seed);
}
/// Integers in [minval, maxval).
TANDEM_EXPORT Tensor randint(const IntList& shape, std::int64_t minval, std::int64_t maxval,
                             DTypeLike dtype = int32, const RandomSeed& seed = {});
/// For each row of logits, num_samples class numbers.
TANDEM_EXPORT Tensor categorical(const Tensor& logits, std::int64_t num_samples,
                                 DTypeLike dtype = int32, const RandomSeed& seed = {});
TANDEM_EXPORT Tensor shuffle(const Tensor& x, int axis = 0, const RandomSeed& seed = {});
/// While elements are dropped with probability `rate`, the others are scaled by 1 / (1 - rate).
TANDEM_EXPORT Tensor dropout(const Tensor& inputs, double rate, const Tensor& noise_shape = {},
                             const RandomSeed& seed = {});
TANDEM_EXPORT Tensor gamma(const IntList& shape, const Tensor& alpha, DTypeLike dtype = float32,
                           const RandomSeed& seed = {});
TANDEM_EXPORT Tensor beta(const IntList& shape, const Tensor& alpha, const Tensor& beta,
                          DTypeLike dtype = float32, const RandomSeed& seed = {});
TANDEM_EXPORT Tensor binomial(const IntList& shape, const Tensor& counts,
                              const Tensor& probabilities, DTypeLike dtype = float32,
                              const RandomSeed& seed = {});

}  // namespace tandem::keras::random
