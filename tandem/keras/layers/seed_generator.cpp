#include "tandem/keras/seed_generator.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/seeds.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::keras::random {
namespace {

// The state is one plain variable whatever is traced, recorded or distributed around.
class PlainVariableScope {
 public:
  PlainVariableScope()
      : trace_(nullptr), creators_(std::exchange(thread_context().variable_creators, nullptr)) {}
  ~PlainVariableScope() { thread_context().variable_creators = std::move(creators_); }
  PlainVariableScope(const PlainVariableScope&) = delete;
  PlainVariableScope& operator=(const PlainVariableScope&) = delete;

 private:
  TraceScope trace_;
  StopRecording quiet_;
  decltype(ThreadContext::variable_creators) creators_;
};

}  // namespace

SeedGenerator::SeedGenerator(std::optional<std::int64_t> seed, const String& name) {
  if (seed && *seed < 0) {
    throw InvalidArgumentError(
        cat("SeedGenerator: Argument `seed` must be a non-negative integer. Received: seed=", *seed,
            "."));
  }
  const PlainVariableScope scope;
  const auto first = static_cast<std::uint32_t>(internal::draw_seeds(seed)[0]);
  state_ = Variable(Tensor::from(std::vector<std::uint32_t>{first, 0}),
                    {.trainable = false, .name = name + "/seed_generator_state"});
}

Tensor SeedGenerator::next() const {
  const Tensor now = state_.read_value();
  state_.assign_add(Tensor::from(std::vector<std::uint32_t>{0, 1}));
  return cast(now, int32);
}

}  // namespace tandem::keras::random
