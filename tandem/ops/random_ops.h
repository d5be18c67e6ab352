#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#include "tandem/core/dtype.h"
#include "tandem/core/dtype_like.h"
#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem::random {

// Random numbers by Philox, with TensorFlow's values for equal seeds. half, bfloat16, float and
// double; uniform also int32 and int64.
//
// The first group keeps a state: each call with equal seeds goes on where the one before ended. An
// op without a seed of its own takes one from set_seed, or, if there is none, a fresh one that
// differs from run to run.

/// The seed from which all ops without a seed of their own get theirs; setting it restarts their
/// sequences.
TANDEM_EXPORT void set_seed(std::int64_t seed);

/// `{.seed = 3}` behind arguments that are given by position.
struct SeedOptions {
  std::optional<std::int64_t> seed = std::nullopt;
};

struct UniformOptions {
  double minval = 0;
  std::optional<double> maxval =
      std::nullopt;  ///< not included; 1 for floating point, must be given for integers
  DTypeLike dtype = float32;
  std::optional<std::int64_t> seed = std::nullopt;
};
TANDEM_EXPORT Tensor uniform(const IntList& shape, const UniformOptions& options = {});
/// From minval to maxval. What is given by position may be followed by options: `uniform({2, 3}, 0,
/// 10, {.dtype = td::int32, .seed = 1})`. An argument that is given both ways is an
/// InvalidArgumentError.
TANDEM_EXPORT Tensor uniform(const IntList& shape, double minval, double maxval,
                             const UniformOptions& options);
TANDEM_EXPORT Tensor uniform(const IntList& shape, double minval, const UniformOptions& options);
inline Tensor uniform(const IntList& shape, double minval, double maxval, DTypeLike dtype = float32,
                      std::optional<std::int64_t> seed = {}) {
  return uniform(shape, {.minval = minval, .maxval = maxval, .dtype = dtype, .seed = seed});
}
inline Tensor uniform(const IntList& shape, double minval, double maxval, DTypeLike dtype,
                      const SeedOptions& options) {
  return uniform(shape, minval, maxval, dtype, options.seed);
}

struct NormalOptions {
  double mean = 0;
  double stddev = 1;
  DTypeLike dtype = float32;
  std::optional<std::int64_t> seed = std::nullopt;
};
TANDEM_EXPORT Tensor normal(const IntList& shape, const NormalOptions& options = {});
/// With this mean and deviation, by position; then perhaps options, as `uniform` takes them.
TANDEM_EXPORT Tensor normal(const IntList& shape, double mean, double stddev,
                            const NormalOptions& options);
TANDEM_EXPORT Tensor normal(const IntList& shape, double mean, const NormalOptions& options);
inline Tensor normal(const IntList& shape, double mean, double stddev = 1,
                     DTypeLike dtype = float32, std::optional<std::int64_t> seed = {}) {
  return normal(shape, {.mean = mean, .stddev = stddev, .dtype = dtype, .seed = seed});
}
inline Tensor normal(const IntList& shape, double mean, double stddev, DTypeLike dtype,
                     const SeedOptions& options) {
  return normal(shape, mean, stddev, dtype, options.seed);
}
/// Normal numbers, those further than two standard deviations from the mean drawn again.
TANDEM_EXPORT Tensor truncated_normal(const IntList& shape, const NormalOptions& options = {});
TANDEM_EXPORT Tensor truncated_normal(const IntList& shape, double mean, double stddev,
                                      const NormalOptions& options);
TANDEM_EXPORT Tensor truncated_normal(const IntList& shape, double mean,
                                      const NormalOptions& options);
inline Tensor truncated_normal(const IntList& shape, double mean, double stddev = 1,
                               DTypeLike dtype = float32, std::optional<std::int64_t> seed = {}) {
  return truncated_normal(shape, {.mean = mean, .stddev = stddev, .dtype = dtype, .seed = seed});
}
inline Tensor truncated_normal(const IntList& shape, double mean, double stddev, DTypeLike dtype,
                               const SeedOptions& options) {
  return truncated_normal(shape, mean, stddev, dtype, options.seed);
}
/// The rows of the first axis in random order.
TANDEM_EXPORT Tensor shuffle(Tensor value, std::optional<std::int64_t> seed = {});
inline Tensor shuffle(Tensor value, const SeedOptions& options) {
  return shuffle(std::move(value), options.seed);
}
struct CategoricalOptions {
  DTypeLike dtype = int64;
  std::optional<std::int64_t> seed = std::nullopt;
};
/// For each row of logits (rank 2), num_samples draws of class numbers.
TANDEM_EXPORT Tensor categorical(Tensor logits, std::int64_t num_samples, DType dtype = int64,
                                 std::optional<std::int64_t> seed = {});
inline Tensor categorical(Tensor logits, std::int64_t num_samples,
                          const CategoricalOptions& options) {
  return categorical(std::move(logits), num_samples, options.dtype, options.seed);
}
struct GammaOptions {
  Tensor beta = {};  ///< the inverse of the scale; 1 if undefined
  std::optional<std::int64_t> seed = std::nullopt;
};
/// Gamma variates of scale 1: of shape `shape`, followed by alpha's, whose gradient they have.
/// half, float or double.
TANDEM_EXPORT Tensor gamma(const IntList& shape, Tensor alpha,
                           std::optional<std::int64_t> seed = {});
/// With scale 1 / beta: of shape `shape`, followed by what alpha and beta broadcast to.
TANDEM_EXPORT Tensor gamma(const IntList& shape, const Tensor& alpha, const GammaOptions& options);
/// TensorFlow's third argument is beta. An integer there could also be meant as the seed: name it.
template <std::floating_point T>
Tensor gamma(const IntList& shape, const Tensor& alpha, T beta) {
  return gamma(shape, alpha, GammaOptions{.beta = beta});
}
template <std::integral T>
Tensor gamma(const IntList& shape, const Tensor& alpha, T beta_or_seed) = delete;
struct PoissonOptions {
  DTypeLike dtype = float32;
  std::optional<std::int64_t> seed = std::nullopt;
};
/// Poisson variates: of shape `shape`, followed by that of the rates.
TANDEM_EXPORT Tensor poisson(const IntList& shape, Tensor rate, DType dtype = float32,
                             std::optional<std::int64_t> seed = {});
inline Tensor poisson(const IntList& shape, Tensor rate, const PoissonOptions& options) {
  return poisson(shape, std::move(rate), options.dtype, options.seed);
}

// The second group depends on shape and seed (two int32 or int64 numbers) alone: equal calls give
// equal numbers.

struct StatelessUniformOptions {
  double minval = 0;
  std::optional<double> maxval =
      std::nullopt;  ///< not included; 1 for floating point, must be given for integers
  DTypeLike dtype = float32;
};
struct StatelessNormalOptions {
  double mean = 0;
  double stddev = 1;
  DTypeLike dtype = float32;
};
TANDEM_EXPORT Tensor stateless_uniform(const IntList& shape, const IntList& seed,
                                       const StatelessUniformOptions& options = {});
inline Tensor stateless_uniform(const IntList& shape, const IntList& seed, double minval,
                                double maxval, DTypeLike dtype = float32) {
  return stateless_uniform(shape, seed, {.minval = minval, .maxval = maxval, .dtype = dtype});
}
/// Integers from the whole range of int32, int64, uint32 or uint64.
TANDEM_EXPORT Tensor stateless_uniform_full_int(const IntList& shape, const IntList& seed,
                                                DType dtype = uint64);
TANDEM_EXPORT Tensor stateless_normal(const IntList& shape, const IntList& seed,
                                      const StatelessNormalOptions& options = {});
inline Tensor stateless_normal(const IntList& shape, const IntList& seed, double mean,
                               double stddev = 1, DTypeLike dtype = float32) {
  return stateless_normal(shape, seed, {.mean = mean, .stddev = stddev, .dtype = dtype});
}
TANDEM_EXPORT Tensor stateless_truncated_normal(const IntList& shape, const IntList& seed,
                                                const StatelessNormalOptions& options = {});
inline Tensor stateless_truncated_normal(const IntList& shape, const IntList& seed, double mean,
                                         double stddev = 1, DTypeLike dtype = float32) {
  return stateless_truncated_normal(shape, seed, {.mean = mean, .stddev = stddev, .dtype = dtype});
}
/// Gamma variates, of a shape that ends with alpha's.
TANDEM_EXPORT Tensor stateless_gamma(const IntList& shape, const IntList& seed, Tensor alpha);
/// Poisson variates, of a shape that ends with that of the rates.
TANDEM_EXPORT Tensor stateless_poisson(const IntList& shape, const IntList& seed, Tensor rate,
                                       DType dtype = int32);
/// Binomial variates, of a shape that ends with what counts and probs broadcast to.
TANDEM_EXPORT Tensor stateless_binomial(const IntList& shape, const IntList& seed, Tensor counts,
                                        Tensor probs, DType dtype = int32);
TANDEM_EXPORT Tensor stateless_shuffle(Tensor value, const IntList& seed);

}  // namespace tandem::random
