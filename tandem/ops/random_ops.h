#pragma once

#include <cstdint>
#include <optional>

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

struct UniformOptions {
  double minval = 0;
  std::optional<double> maxval =
      std::nullopt;  ///< not included; 1 for floating point, must be given for integers
  DTypeLike dtype = float32;
  std::optional<std::int64_t> seed = std::nullopt;
};
TANDEM_EXPORT Tensor uniform(const IntList& shape, const UniformOptions& options = {});
/// From minval to maxval, by position.
inline Tensor uniform(const IntList& shape, double minval, double maxval,
                      DTypeLike dtype = float32) {
  return uniform(shape, {.minval = minval, .maxval = maxval, .dtype = dtype});
}

struct NormalOptions {
  double mean = 0;
  double stddev = 1;
  DTypeLike dtype = float32;
  std::optional<std::int64_t> seed = std::nullopt;
};
TANDEM_EXPORT Tensor normal(const IntList& shape, const NormalOptions& options = {});
/// With this mean and deviation, by position.
inline Tensor normal(const IntList& shape, double mean, double stddev = 1,
                     DTypeLike dtype = float32) {
  return normal(shape, {.mean = mean, .stddev = stddev, .dtype = dtype});
}
/// Normal numbers, those further than two standard deviations from the mean drawn again.
TANDEM_EXPORT Tensor truncated_normal(const IntList& shape, const NormalOptions& options = {});
/// The rows of the first axis in random order.
TANDEM_EXPORT Tensor shuffle(Tensor value, std::optional<std::int64_t> seed = {});
/// For each row of logits (rank 2), num_samples draws of class numbers.
TANDEM_EXPORT Tensor categorical(Tensor logits, std::int64_t num_samples, DType dtype = int64,
                                 std::optional<std::int64_t> seed = {});
/// Gamma variates of scale 1: of shape `shape`, followed by alpha's, whose gradient they have.
/// half, float or double.
TANDEM_EXPORT Tensor gamma(const IntList& shape, Tensor alpha,
                           std::optional<std::int64_t> seed = {});
/// Poisson variates: of shape `shape`, followed by that of the rates.
TANDEM_EXPORT Tensor poisson(const IntList& shape, Tensor rate, DType dtype = float32,
                             std::optional<std::int64_t> seed = {});

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
/// Integers from the whole range of int32, int64, uint32 or uint64.
TANDEM_EXPORT Tensor stateless_uniform_full_int(const IntList& shape, const IntList& seed,
                                                DType dtype = uint64);
TANDEM_EXPORT Tensor stateless_normal(const IntList& shape, const IntList& seed,
                                      const StatelessNormalOptions& options = {});
TANDEM_EXPORT Tensor stateless_truncated_normal(const IntList& shape, const IntList& seed,
                                                const StatelessNormalOptions& options = {});
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
