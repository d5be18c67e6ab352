#pragma once

#include <cstdint>
#include <memory>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::random {

struct GeneratorOptions {
  DType dtype = DType::kFloat;
};

/// A source of random numbers whose place a variable keeps, as tf.random.Generator with Philox:
/// the same seed gives TensorFlow's numbers, and a checkpoint holds where it is
/// (td::train::Checkpoint). A handle; copies draw from one stream. Thread-safe.
///
///     auto g = td::random::Generator::from_seed(7);
///     td::Tensor x = g.normal({2, 3});
class TANDEM_EXPORT Generator {
 public:
  static Generator from_seed(std::int64_t seed);
  /// At a state that `state()` had: the 128-bit counter and the key, as three int64 numbers.
  static Generator from_state(const Tensor& state);
  /// Seeded by chance.
  static Generator from_non_deterministic_state();

  Tensor normal(const IntList& shape, const GeneratorOptions& options = {}) const;
  /// Normal numbers of magnitude below 2.
  Tensor truncated_normal(const IntList& shape, const GeneratorOptions& options = {}) const;
  /// In [0, 1).
  Tensor uniform(const IntList& shape, const GeneratorOptions& options = {}) const;
  /// Integers in [minval, maxval), of their dtype.
  Tensor uniform_int(const IntList& shape, const Tensor& minval, const Tensor& maxval) const;
  /// Goes on as if so many numbers had been drawn.
  void skip(std::int64_t count) const;
  /// Begins again.
  void reset_from_seed(std::int64_t seed) const;

  const Variable& state() const { return state_; }

 private:
  explicit Generator(Variable state) : state_(std::move(state)) {}
  Variable state_;
};

}  // namespace tandem::random
