#include "tandem/keras/internal/seeds.h"

#include <random>

#include "tandem/runtime/runtime.h"

namespace tandem::keras::internal {

std::array<std::int64_t, 2> draw_seeds(std::optional<std::int64_t> seed) {
  if (seed) return {*seed, 0};
  const Runtime::SeedPair next = Runtime::current().next_seeds(false, 0);
  if (next.seed != 0 || next.seed2 != 0) return {next.seed, next.seed2};
  std::random_device entropy;
  return {static_cast<std::int64_t>(entropy()), static_cast<std::int64_t>(entropy())};
}

}  // namespace tandem::keras::internal
