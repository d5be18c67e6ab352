#include "tandem/ops/internal/op_seeds.h"

#include "tandem/graph/rng_position.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::internal {
namespace {

AttrMap attrs_of(std::int64_t seed, std::int64_t seed2) {
  return {{"seed", seed}, {"seed2", seed2}};
}

}  // namespace

AttrMap op_seeds(std::optional<std::int64_t> seed) {
  const ThreadContext& thread = thread_context();
  // A function that is traced inside the dataset's may be called elsewhere too.
  RngPosition* position =
      thread.draws && thread.draws->trace() == thread.trace ? thread.draws.get() : nullptr;
  if (position && !seed) {
    const RngPosition::Seeds next = position->next();
    return attrs_of(next.seed, next.seed2);
  }
  const auto pair = Runtime::current().next_seeds(seed.has_value(), seed.value_or(0));
  if (!position) return attrs_of(pair.seed, pair.seed2);
  const RngPosition::Seeds next = position->next({pair.seed, pair.seed2});
  return attrs_of(next.seed, next.seed2);
}

}  // namespace tandem::internal
