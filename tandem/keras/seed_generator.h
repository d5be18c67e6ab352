#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::random {

/// Where random layers get their numbers from: a variable of two uint32 numbers, a seed and a
/// counter, of which `next` gives the value before it counts on. So random layers draw in traced
/// functions too, equal seeds draw equal numbers (Keras' own), and a training that is resumed with
/// the variable's value draws what it would have drawn.
///
/// A handle: copies count together. One variable for all replicas of a distribution strategy.
///
///     td::keras::random::SeedGenerator seeds(1337);
///     td::Tensor x = td::keras::random::normal({2, 2}, {.seed = seeds});
class TANDEM_EXPORT SeedGenerator {
 public:
  /// Without a seed the next one from td::random::set_seed, else one that differs from run to run.
  explicit SeedGenerator(std::optional<std::int64_t> seed = {},
                         const String& name = "seed_generator");
  /// An int32 vector of two numbers, as the stateless random ops take it.
  Tensor next() const;
  const Variable& state() const { return state_; }

 private:
  Variable state_;
};

}  // namespace tandem::keras::random
