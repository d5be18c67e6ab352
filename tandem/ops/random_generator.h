#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::random {

enum class Algorithm : std::int64_t { kPhilox = 1, kThreefry = 2, kAutoSelect = 3 };

/// Random numbers from a state that is kept in a variable (int64, [3]) and moves on with each call:
/// TensorFlow's numbers for equal seeds. In traced functions each call of the function draws new
/// ones. A handle: copies share the state.
///
///     auto g = td::random::Generator::from_seed(1);
///     td::Tensor x = g.normal({2, 3});
class TANDEM_EXPORT Generator {
 public:
  static Generator from_seed(std::int64_t seed, Algorithm algorithm = Algorithm::kPhilox);
  static Generator from_non_deterministic_state(Algorithm algorithm = Algorithm::kPhilox);
  static Generator from_state(const Tensor& state, Algorithm algorithm = Algorithm::kPhilox);
  static Generator from_key_counter(std::uint64_t key, const std::vector<std::uint64_t>& counter,
                                    Algorithm algorithm = Algorithm::kPhilox);

  const Variable& state() const { return state_; }
  Algorithm algorithm() const { return algorithm_; }
  Tensor key() const;
  void reset(const Tensor& state) const;
  void reset_from_seed(std::int64_t seed) const;
  /// As if so many samples had been drawn; returns the state before.
  Tensor skip(std::int64_t delta) const;
  /// Generators of their own, for parts that run at the same time.
  std::vector<Generator> split(std::int64_t count = 1) const;
  /// [2, count]: seeds for the stateless functions.
  Tensor make_seeds(std::int64_t count = 1) const;

  Tensor normal(const IntList& shape, double mean = 0, double stddev = 1,
                DType dtype = float32) const;
  Tensor truncated_normal(const IntList& shape, double mean = 0, double stddev = 1,
                          DType dtype = float32) const;
  /// [minval, maxval); integers need a maxval.
  Tensor uniform(const IntList& shape, double minval = 0, std::optional<double> maxval = {},
                 DType dtype = float32) const;
  Tensor uniform_full_int(const IntList& shape, DType dtype = uint64) const;
  Tensor binomial(const IntList& shape, const Tensor& counts, const Tensor& probs,
                  DType dtype = int32) const;

 private:
  Generator(const Tensor& state, Algorithm algorithm);
  Variable state_;
  Algorithm algorithm_;
};

/// The one generator of the program; made from no seed at first use.
TANDEM_EXPORT Generator get_global_generator();
TANDEM_EXPORT void set_global_generator(const Generator& generator);
/// The state that Generator::from_seed begins with.
TANDEM_EXPORT Tensor create_rng_state(std::int64_t seed, Algorithm algorithm = Algorithm::kPhilox);

// Seeds of the stateless functions, vectors of two integers.

/// [num, 2]: new seeds from one.
TANDEM_EXPORT Tensor split(const IntList& seed, std::int64_t num = 2);
/// A new seed from one and a number, of a step or a replica, say.
TANDEM_EXPORT Tensor fold_in(const IntList& seed, const Tensor& data);
/// For each row of logits, num_samples draws of class numbers.
TANDEM_EXPORT Tensor stateless_categorical(const Tensor& logits, std::int64_t num_samples,
                                           const IntList& seed, DType dtype = int64);
namespace experimental {
using random::get_global_generator;
using random::set_global_generator;
}  // namespace experimental

}  // namespace tandem::random
