#include "tandem/ops/random_generator.h"

#include <mutex>
#include <optional>
#include <random>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/bitwise_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::random {
namespace {

// What Philox' state holds: two numbers of counter and one of key.
constexpr std::int64_t kCounter = 2;
constexpr std::int64_t kMaxSeed = std::int64_t{1} << 62;
static_assert(kMaxSeed > 0);

void require_philox(Algorithm algorithm) {
  if (algorithm == Algorithm::kPhilox || algorithm == Algorithm::kAutoSelect) return;
  throw UnimplementedError(
      "td::random::Generator: Philox is the only algorithm here; ThreeFry serves TPUs.");
}

Tensor alg() { return Tensor(std::int64_t{1}); }

Tensor scaled(Tensor x, double factor, double plus) {
  if (factor != 1) x = x * factor;
  return plus != 0 ? x + plus : x;
}

}  // namespace

Tensor create_rng_state(std::int64_t seed, Algorithm algorithm) {
  require_philox(algorithm);
  // As TensorFlow: the seed in chunks of 64 bits, the sign carried on, from the counter on.
  const std::int64_t sign = seed < 0 ? -1 : 0;
  return Tensor(std::vector<std::int64_t>{seed, sign, sign});
}

Generator::Generator(const Tensor& state, Algorithm algorithm) : algorithm_(algorithm) {
  require_philox(algorithm);
  if (state.rank() != 1 || state.dim(0) != kCounter + 1) {
    throw InvalidArgumentError(
        cat("td::random::Generator: the state of Philox is a vector of three "
            "numbers, not of shape ",
            state.partial_shape(), "."));
  }
  state_ = Variable(cast(state, int64), {.trainable = false, .name = "StateVar"});
}
Generator Generator::from_seed(std::int64_t seed, Algorithm algorithm) {
  return Generator(create_rng_state(seed, algorithm), algorithm);
}
Generator Generator::from_non_deterministic_state(Algorithm algorithm) {
  std::random_device entropy;
  const auto draw = [&] {
    return static_cast<std::int64_t>((std::uint64_t{entropy()} << 32) | entropy());
  };
  return Generator(Tensor(std::vector<std::int64_t>{draw(), draw(), draw()}), algorithm);
}
Generator Generator::from_state(const Tensor& state, Algorithm algorithm) {
  return Generator(state, algorithm);
}
Generator Generator::from_key_counter(std::uint64_t key, const std::vector<std::uint64_t>& counter,
                                      Algorithm algorithm) {
  if (counter.size() != static_cast<std::size_t>(kCounter)) {
    throw InvalidArgumentError(
        cat("td::random::Generator: Philox' counter has two numbers, not ", counter.size(), "."));
  }
  return Generator(Tensor(std::vector<std::int64_t>{static_cast<std::int64_t>(counter[0]),
                                                    static_cast<std::int64_t>(counter[1]),
                                                    static_cast<std::int64_t>(key)}),
                   algorithm);
}

Tensor Generator::key() const { return bitcast(state_.read_value()[kCounter], uint64); }
void Generator::reset(const Tensor& state) const { state_.assign(cast(state, int64)); }
void Generator::reset_from_seed(std::int64_t seed) const {
  state_.assign(create_rng_state(seed, algorithm_));
}
Tensor Generator::skip(std::int64_t delta) const {
  return raw_op("RngReadAndSkip", {state_.handle(), Tensor(1), cast(Tensor(delta), uint64)})[0];
}

Tensor Generator::uniform_full_int(const IntList& shape, DType dtype) const {
  return raw_op("StatefulUniformFullInt", {state_.handle(), alg(), shape.tensor(int64)},
                {{"dtype", dtype}})[0];
}

std::vector<Generator> Generator::split(std::int64_t count) const {
  const Tensor keys = uniform_full_int({count}, int64);
  std::vector<Generator> parts;
  for (std::int64_t i = 0; i < count; ++i)
    parts.push_back(
        Generator(stack({Tensor(std::int64_t{0}), Tensor(std::int64_t{0}), keys[i]}), algorithm_));
  return parts;
}

Tensor Generator::make_seeds(std::int64_t count) const {
  const Tensor first = uniform_full_int({count}, int64);
  return stack({first, zeros_like(first)});
}

Tensor Generator::normal(const IntList& shape, double mean, double stddev, DType dtype) const {
  return scaled(raw_op("StatefulStandardNormalV2", {state_.handle(), alg(), shape.tensor(int64)},
                       {{"dtype", dtype}})[0],
                stddev, mean);
}
Tensor Generator::truncated_normal(const IntList& shape, double mean, double stddev,
                                   DType dtype) const {
  return scaled(raw_op("StatefulTruncatedNormal", {state_.handle(), alg(), shape.tensor(int64)},
                       {{"dtype", dtype}})[0],
                stddev, mean);
}
Tensor Generator::uniform(const IntList& shape, double minval, std::optional<double> maxval,
                          DType dtype) const {
  if (is_integer(dtype)) {
    if (!maxval) {
      throw InvalidArgumentError(cat(
          "td::random::Generator::uniform: must specify maxval for integer dtype ", dtype, "."));
    }
    return raw_op("StatefulUniformInt",
                  {state_.handle(), alg(), shape.tensor(int64),
                   internal::int_scalar(static_cast<std::int64_t>(minval), dtype),
                   internal::int_scalar(static_cast<std::int64_t>(*maxval), dtype)},
                  {{"dtype", dtype}})[0];
  }
  return scaled(raw_op("StatefulUniform", {state_.handle(), alg(), shape.tensor(int64)},
                       {{"dtype", dtype}})[0],
                maxval.value_or(1) - minval, minval);
}
Tensor Generator::binomial(const IntList& shape, const Tensor& counts, const Tensor& probs,
                           DType dtype) const {
  // A count that is an integer must not make one of a probability.
  const DType type = is_floating(counts.dtype()) ? counts.dtype() : probs.dtype();
  return raw_op(
      "StatefulRandomBinomial",
      {state_.handle(), alg(), shape.tensor(int32), cast(counts, type), cast(probs, type)},
      {{"dtype", dtype}})[0];
}

namespace {

struct Global {
  std::mutex mutex;
  std::optional<Generator> generator;
};
Global& global() {
  static NeverDestroyed<Global> instance;
  return *instance;
}

}  // namespace

Generator get_global_generator() {
  Global& g = global();
  const std::lock_guard lock(g.mutex);
  if (!g.generator) g.generator = Generator::from_non_deterministic_state();
  return *g.generator;
}
void set_global_generator(const Generator& generator) {
  Global& g = global();
  const std::lock_guard lock(g.mutex);
  g.generator = generator;
}

Tensor split(const IntList& seed, std::int64_t num) {
  return stateless_uniform_full_int({num, 2}, seed, seed.tensor().dtype());
}

Tensor fold_in(const IntList& seed, const Tensor& data) {
  const DType type = data.dtype();
  Tensor wide = seed.tensor();
  if (wide.dtype() != type) wide = cast(wide, type);
  const Tensor drawn = stateless_uniform_full_int({1}, IntList(wide), type);
  return concat({drawn, reshape(data, {1})}, 0);
}

Tensor stateless_categorical(const Tensor& logits, std::int64_t num_samples, const IntList& seed,
                             DType dtype) {
  return raw_op("StatelessMultinomial",
                {logits, internal::int_scalar(num_samples, int32), seed.tensor()},
                {{"output_dtype", dtype}})[0];
}

}  // namespace tandem::random
