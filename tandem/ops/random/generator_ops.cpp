// Random numbers whose state a variable keeps: the ops behind generators that users hold.

#include <random>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/random_generator.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

// The state is a variable of two int64 numbers of counter and one of key.
constexpr std::int64_t kStateSize = 3;

void drawn_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.require_rank(1, 0);
  c.set_output(0, internal::requested_shape(c, 2));
}

void drawn_int_shape(InferenceContext& c) {
  c.require_rank(3, 0);
  c.require_rank(4, 0);
  drawn_shape(c);
}

void skip_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) c.require_rank(i, 0);
}

void read_and_skip_shape(InferenceContext& c) {
  skip_shape(c);
  c.set_output(0, internal::vector_of(kStateSize));
}

constexpr const char* kInputs = "resource: resource, algorithm: int64, shape: shape_dtype";
constexpr const char* kFloatAttrs = "dtype: type = float; shape_dtype: type = int64";

constexpr OpDecl generator_op(const char* name, const char* inputs, const char* attrs,
                              ShapeFn shape, const char* doc) {
  return {.name = name,
          .inputs = inputs,
          .outputs = "output: dtype",
          .attrs = attrs,
          .shape = shape,
          .gradient = not_differentiable,
          .traits = {.stateful = true, .host_inputs = 0b111},
          .doc = doc};
}

const OpRegistration kUniform(generator_op("StatefulUniform", kInputs, kFloatAttrs, drawn_shape,
                                           "Numbers in [0, 1)."));
const OpRegistration kNormal(generator_op("StatefulStandardNormalV2", kInputs, kFloatAttrs,
                                          drawn_shape, "Normal numbers."));
const OpRegistration kTruncated(generator_op("StatefulTruncatedNormal", kInputs, kFloatAttrs,
                                             drawn_shape, "Normal numbers of magnitude below 2."));
const OpRegistration kFullInt(generator_op("StatefulUniformFullInt", kInputs,
                                           "dtype: type = uint64; shape_dtype: type = int64",
                                           drawn_shape, "Integers of the whole range."));
const OpRegistration kInt(generator_op(
    "StatefulUniformInt",
    "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype",
    "dtype: type = int64; shape_dtype: type = int64", drawn_int_shape,
    "Integers in [minval, maxval)."));

const OpRegistration kSkip{{.name = "RngSkip",
                            .inputs = "resource: resource, algorithm: int64, delta: int64",
                            .shape = skip_shape,
                            .traits = {.stateful = true, .host_inputs = 0b111},
                            .doc = "Moves a generator on as if delta numbers had been drawn."}};

const OpRegistration kReadAndSkip{{.name = "RngReadAndSkip",
                                   .inputs = "resource: resource, alg: int32, delta: uint64",
                                   .outputs = "value: int64",
                                   .shape = read_and_skip_shape,
                                   .gradient = not_differentiable,
                                   .traits = {.stateful = true, .host_inputs = 0b111},
                                   .doc = "The state before it is moved on as by RngSkip."}};

// ---- The generator that users hold. ----

constexpr std::int64_t kPhilox = 1;

Tensor draw(const OpRegistration& op, const Variable& state, const IntList& shape, DType dtype) {
  return call1(op, {state.handle(), Tensor(kPhilox), shape.tensor(DType::kInt64)},
               {{"dtype", dtype}});
}

// As TensorFlow cuts a Python integer of any size into words.
Tensor state_from_seed(std::int64_t seed) {
  const std::int64_t above = seed < 0 ? -1 : 0;
  return Tensor(Array::vector<std::int64_t>({seed, above, above}));
}

}  // namespace

namespace random {

Generator Generator::from_seed(std::int64_t seed) { return from_state(state_from_seed(seed)); }

Generator Generator::from_state(const Tensor& state) {
  if (state.dtype() != DType::kInt64 || !(state.shape() == Shape{kStateSize})) {
    throw InvalidArgumentError(cat("The state of a random generator is int64[", kStateSize,
                                   "], not ", state.dtype(), state.shape(), "."));
  }
  return Generator(Variable(state, {.trainable = false, .name = "StateVar"}));
}

Generator Generator::from_non_deterministic_state() {
  std::random_device device;
  std::vector<std::int64_t> words;
  for (std::int64_t i = 0; i < kStateSize; ++i) {
    const std::uint64_t high = device();
    words.push_back(static_cast<std::int64_t>(high << 32 | device()));
  }
  return from_state(Tensor(Array::vector<std::int64_t>(words)));
}

Tensor Generator::normal(const IntList& shape, const GeneratorOptions& o) const {
  return draw(kNormal, state_, shape, o.dtype);
}
Tensor Generator::truncated_normal(const IntList& shape, const GeneratorOptions& o) const {
  return draw(kTruncated, state_, shape, o.dtype);
}
Tensor Generator::uniform(const IntList& shape, const GeneratorOptions& o) const {
  return draw(kUniform, state_, shape, o.dtype);
}
Tensor Generator::uniform_int(const IntList& shape, const Tensor& minval,
                              const Tensor& maxval) const {
  return call1(kInt,
               {state_.handle(), Tensor(kPhilox), shape.tensor(DType::kInt64), minval, maxval},
               {{"dtype", minval.dtype()}});
}
void Generator::skip(std::int64_t count) const {
  if (count < 0) throw InvalidArgumentError(cat("A generator cannot skip ", count, " numbers."));
  call(kSkip, {state_.handle(), Tensor(kPhilox), Tensor(count)});
}
void Generator::reset_from_seed(std::int64_t seed) const { state_.assign(state_from_seed(seed)); }

}  // namespace random
}  // namespace tandem
