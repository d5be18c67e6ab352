#include "tandem/data/sources/draws.h"

#include <memory>
#include <random>
#include <utility>

#include "tandem/core/host_allocator.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::data {
namespace {

std::optional<RngPosition::Stream> stream_made_here() {
  const ThreadContext& thread = thread_context();
  if (!thread.draws || thread.trace) return std::nullopt;
  return thread.draws->next_stream();
}

std::uint64_t chance() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::pair<std::uint64_t, std::uint64_t> seeds_of_runtime(std::optional<std::int64_t> seed) {
  const auto pair = Runtime::current().next_seeds(seed.has_value(), seed.value_or(0));
  if (pair.seed == 0 && pair.seed2 == 0) return {chance(), chance()};
  return {static_cast<std::uint64_t>(pair.seed), static_cast<std::uint64_t>(pair.seed2)};
}

}  // namespace

std::pair<std::uint64_t, std::uint64_t> stage_seeds(std::optional<std::int64_t> seed) {
  if (!seed) {
    if (const auto stream = stream_made_here()) return {stream->seed, stream->seed2};
  }
  return seeds_of_runtime(seed);
}

FunctionRng::FunctionRng() : origin_(stream_made_here()) {}

const std::shared_ptr<SeedSequence>& FunctionRng::sequence() const {
  std::call_once(drawing_, [this] {
    const auto [seed, seed2] =
        origin_ ? std::pair(origin_->seed, origin_->seed2) : seeds_of_runtime(std::nullopt);
    sequence_ = std::make_shared<SeedSequence>(seed, seed2);
    drawn_ = true;
  });
  return sequence_;
}

void FunctionRng::visit_state(StateArchive& state, const IterationContext& context) const {
  bool drawn = drawn_;
  state.value(drawn);
  if (drawn) context.visit_state(state, sequence());
}

DrawPass::DrawPass(const FunctionRng* draws, const IterationContext& context) {
  if (!draws) return;
  draws_ = true;
  sequence_ = draws->sequence();
  context_ = context;
  const auto [seed, seed2] = sequence_->seeds();
  // A dataset made for an element belongs to this iteration alone, which need not remember it.
  nested_ = draws->origin() != 0;
  const std::uint64_t number = nested_ ? sequence_->next() : context.next_pass(sequence_);
  stream_ = {seed, seed2, number, draws->origin()};
}

DrawPass DrawPass::trial() {
  DrawPass pass;
  pass.draws_ = true;
  return pass;
}

void DrawPass::visit_state(StateArchive& state) {
  if (!sequence_) return;
  state.stage("Draws");
  if (nested_) {
    sequence_->visit_state(state);
  } else {
    context_->visit_state(state, sequence_);
  }
  state.value(stream_.seed);
  state.value(stream_.seed2);
  state.value(stream_.pass);
  state.value(stream_.origin);
}

DrawScope::DrawScope(const RngPosition::Stream* stream, std::int64_t element)
    : set_(stream != nullptr) {
  if (!set_) return;
  saved_ = std::exchange(thread_context().draws,
                         std::allocate_shared<RngPosition>(HostAllocator<RngPosition>(), *stream,
                                                           static_cast<std::uint64_t>(element)));
}

DrawScope::~DrawScope() {
  if (set_) thread_context().draws = std::move(saved_);
}

const RngPosition::Stream* DrawScope::current() {
  const ThreadContext& thread = thread_context();
  return thread.draws ? &thread.draws->stream() : nullptr;
}

}  // namespace tandem::data
