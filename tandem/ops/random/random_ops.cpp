#include "tandem/ops/random_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/op_seeds.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

void shape_input(InferenceContext& c) {
  c.require_rank(0, 1);
  c.set_output(0, internal::requested_shape(c, 0));
}

void int_range_shape(InferenceContext& c) {
  c.require_rank(1, 0);
  c.require_rank(2, 0);
  shape_input(c);
}

void multinomial_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 0);
  const auto n = internal::input_int(c, 1);
  c.set_output(0, PartialShape({c.input(0).has_rank() ? c.input(0).dim(0) : internal::kUnknown,
                                n.value_or(internal::kUnknown)}));
}

constexpr OpTraits kStatefulRandom{.stateful = true, .keeps_state = true, .host_inputs = 1};

// ---- Ops that keep a state ----

const OpRegistration kRandomUniform{
    {.name = "RandomUniform",
     .inputs = "shape: T",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; dtype: floats; T: index",
     .shape = shape_input,
     .gradient = not_differentiable,
     .traits = kStatefulRandom,
     .doc = "Numbers from [0, 1). Both seeds 0: another sequence in every run."}};

const OpRegistration kRandomUniformInt{
    {.name = "RandomUniformInt",
     .inputs = "shape: T, minval: Tout, maxval: Tout",
     .outputs = "output: Tout",
     .attrs = "seed: int = 0; seed2: int = 0; Tout: index; T: index",
     .shape = int_range_shape,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .keeps_state = true, .host_inputs = 0b111},
     .doc = "Integers from [minval, maxval)."}};

const OpRegistration kRandomStandardNormal{
    {.name = "RandomStandardNormal",
     .inputs = "shape: T",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; dtype: floats; T: index",
     .shape = shape_input,
     .gradient = not_differentiable,
     .traits = kStatefulRandom,
     .doc = "Normal numbers of mean 0 and standard deviation 1."}};

const OpRegistration kTruncatedNormal{
    {.name = "TruncatedNormal",
     .inputs = "shape: T",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; dtype: floats; T: index",
     .shape = shape_input,
     .gradient = not_differentiable,
     .traits = kStatefulRandom,
     .doc = "Normal numbers, those beyond two standard deviations drawn again."}};

const OpRegistration kRandomShuffle{{.name = "RandomShuffle",
                                     .inputs = "value: T",
                                     .outputs = "output: T",
                                     .attrs = "seed: int = 0; seed2: int = 0; T: type",
                                     .shape = shapes::unchanged,
                                     .gradient = not_differentiable,
                                     .traits = {.stateful = true, .keeps_state = true},
                                     .doc = "The rows of the first axis in random order."}};

const OpRegistration kMultinomial{
    {.name = "Multinomial",
     .inputs = "logits: T, num_samples: int32",
     .outputs = "output: output_dtype",
     .attrs = "seed: int = 0; seed2: int = 0; T: reals; output_dtype: index = int64",
     .shape = multinomial_shape,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .keeps_state = true, .host_inputs = 0b10},
     .doc = "For each row of logits, draws of class numbers."}};

// ---- Ops of a seed alone ----

void stateless_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  c.merge_dim(c.input(1).has_rank() ? c.input(1).dim(0) : internal::kUnknown, 2,
              "seed must have 2 elements; sizes");
  shape_input(c);
}

void stateless_v2_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  c.require_rank(3, 0);
  shape_input(c);
}

void get_key_counter_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.set_output(0, PartialShape({1}));
  c.set_output(1, PartialShape({2}));
  if (c.num_outputs() > 2) c.set_output(2, PartialShape::scalar());
}

constexpr OpTraits kHostShapeAndSeed{.host_inputs = 0b11};
constexpr OpTraits kHostShapeAndKey{.host_inputs = 0b1111};

const OpRegistration kStatelessRandomUniform{
    {.name = "StatelessRandomUniform",
     .inputs = "shape: T, seed: Tseed",
     .outputs = "output: dtype",
     .attrs = "dtype: floats = float; T: index = int32; Tseed: index = int64",
     .shape = stateless_shape,
     .gradient = not_differentiable,
     .traits = kHostShapeAndSeed,
     .doc = "Numbers from [0, 1) that follow from the seed."}};

const OpRegistration kStatelessRandomNormal{
    {.name = "StatelessRandomNormal",
     .inputs = "shape: T, seed: Tseed",
     .outputs = "output: dtype",
     .attrs = "dtype: floats = float; T: index = int32; Tseed: index = int64",
     .shape = stateless_shape,
     .gradient = not_differentiable,
     .traits = kHostShapeAndSeed,
     .doc = "Normal numbers that follow from the seed."}};

const OpRegistration kStatelessTruncatedNormal{
    {.name = "StatelessTruncatedNormal",
     .inputs = "shape: T, seed: Tseed",
     .outputs = "output: dtype",
     .attrs = "dtype: floats = float; T: index = int32; Tseed: index = int64",
     .shape = stateless_shape,
     .gradient = not_differentiable,
     .traits = kHostShapeAndSeed,
     .doc = "Normal numbers within two standard deviations that follow from the seed."}};

const OpRegistration kStatelessRandomUniformInt{
    {.name = "StatelessRandomUniformInt",
     .inputs = "shape: T, seed: Tseed, minval: dtype, maxval: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: index; T: index; Tseed: index = int64",
     .shape = stateless_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b1111},
     .doc = "Integers from [minval, maxval) that follow from the seed."}};

const OpRegistration kStatelessRandomUniformFullInt{
    {.name = "StatelessRandomUniformFullInt",
     .inputs = "shape: T, seed: Tseed",
     .outputs = "output: dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64} = uint64; T: index = int32; "
              "Tseed: {int32, int64, uint32, uint64} = int64",
     .shape = stateless_shape,
     .gradient = not_differentiable,
     .traits = kHostShapeAndSeed,
     .doc = "Integers of the whole range that follow from the seed."}};

void stateless_multinomial_shape(InferenceContext& c) {
  c.require_rank(2, 1);
  c.merge_dim(c.input(2).has_rank() ? c.input(2).dim(0) : internal::kUnknown, 2,
              "seed must have 2 elements; sizes");
  multinomial_shape(c);
}

const OpRegistration kStatelessMultinomial{
    {.name = "StatelessMultinomial",
     .inputs = "logits: T, num_samples: int32, seed: Tseed",
     .outputs = "output: output_dtype",
     .attrs = "T: reals; Tseed: index = int64; output_dtype: index = int64",
     .shape = stateless_multinomial_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b110},
     .doc = "For each row of logits, draws of class numbers that follow from the seed."}};

const OpRegistration kStatelessRandomUniformV2{
    {.name = "StatelessRandomUniformV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: floats = float; Tshape: index = int32",
     .shape = stateless_v2_shape,
     .gradient = not_differentiable,
     .traits = kHostShapeAndKey,
     .doc = "Numbers from [0, 1) that follow from key and counter."}};

const OpRegistration kStatelessRandomNormalV2{
    {.name = "StatelessRandomNormalV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: floats = float; Tshape: index = int32",
     .shape = stateless_v2_shape,
     .gradient = not_differentiable,
     .traits = kHostShapeAndKey,
     .doc = "Normal numbers that follow from key and counter."}};

const OpRegistration kStatelessTruncatedNormalV2{
    {.name = "StatelessTruncatedNormalV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: floats = float; Tshape: index = int32",
     .shape = stateless_v2_shape,
     .gradient = not_differentiable,
     .traits = kHostShapeAndKey,
     .doc = "Normal numbers within two standard deviations that follow from key and counter."}};

const OpRegistration kStatelessRandomUniformIntV2{
    {.name = "StatelessRandomUniformIntV2",
     .inputs =
         "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64}; Tshape: index = int32",
     .shape = stateless_v2_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b111111},
     .doc = "Integers from [minval, maxval) that follow from key and counter."}};

const OpRegistration kStatelessRandomUniformFullIntV2{
    {.name = "StatelessRandomUniformFullIntV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64} = uint64; Tshape: index = int32",
     .shape = stateless_v2_shape,
     .gradient = not_differentiable,
     .traits = kHostShapeAndKey,
     .doc = "Integers of the whole range that follow from key and counter."}};

const OpRegistration kStatelessRandomGetKeyCounter{
    {.name = "StatelessRandomGetKeyCounter",
     .inputs = "seed: Tseed",
     .outputs = "key: uint64, counter: uint64",
     .attrs = "Tseed: index = int64",
     .shape = get_key_counter_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 1, .host_outputs = 0b11},
     .doc = "A seed scrambled into key and counter."}};

const OpRegistration kStatelessRandomGetKeyCounterAlg{
    {.name = "StatelessRandomGetKeyCounterAlg",
     .inputs = "seed: Tseed",
     .outputs = "key: uint64, counter: uint64, alg: int32",
     .attrs = "Tseed: index = int64",
     .shape = get_key_counter_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 1, .host_outputs = 0b111},
     .doc = "A seed scrambled into key and counter, and the number of the algorithm."}};

const OpRegistration kStatelessRandomGetAlg{
    {.name = "StatelessRandomGetAlg",
     .outputs = "alg: int32",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .reads_only = true, .host_outputs = 1},
     .doc = "The number of the algorithm that the device "
            "prefers: 1, Philox."}};

void stateless_shuffle_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  c.require_rank(3, 0);
  c.set_output(0, c.input(0));
}

const OpRegistration kStatelessShuffle{
    {.name = "StatelessShuffle",
     .inputs = "value: T, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = stateless_shuffle_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b1110},
     .doc = "The rows of the first axis in an order that follows from key and counter."}};

// ---- Public functions ----

Tensor number(double value, DType dtype) { return constant(Tensor(Array::scalar(value)), dtype); }

// x * scale + offset, with nothing done for 1 and 0.
Tensor scaled(Tensor x, double scale, double offset) {
  const DType dtype = x.dtype();
  if (scale != 1) x = std::move(x) * number(scale, dtype);
  if (offset != 0) x = std::move(x) + number(offset, dtype);
  return x;
}

double upper_end(const std::optional<double>& maxval, DType dtype, const char* function) {
  if (maxval) return *maxval;
  if (is_floating(dtype)) return 1;
  throw InvalidArgumentError(
      cat("Must specify maxval for integer dtype ", dtype, " of ", function, "."));
}

// The scale rounded as the values are: maxval - minval in the dtype itself.
Tensor between(Tensor unit, double minval, double maxval) {
  const DType dtype = unit.dtype();
  if (minval == 0 && maxval == 1) return unit;
  const Tensor low = number(minval, dtype);
  const Tensor width = number(maxval, dtype) - low;
  Tensor wide = std::move(unit) * width;
  return std::move(wide) + low;
}

Tensor seed_tensor(const IntList& seed) {
  const auto known = seed.known();
  if (known && known->size() != 2) {
    throw InvalidArgumentError(cat("seed must have shape [2], not [", known->size(), "]"));
  }
  return seed.tensor();
}

struct KeyCounter {
  Tensor key;
  Tensor counter;
};
KeyCounter scrambled(const IntList& seed) {
  auto out = call(kStatelessRandomGetKeyCounter, {seed_tensor(seed)});
  return {std::move(out[0]), std::move(out[1])};
}

// TensorFlow's number of Philox.
Tensor philox() { return Tensor(1); }

Tensor stateless(const OpRegistration& op, const IntList& shape, const IntList& seed, DType dtype) {
  KeyCounter k = scrambled(seed);
  return call1(op, {shape.tensor(), std::move(k.key), std::move(k.counter), philox()},
               {{"dtype", dtype}});
}

Tensor stateful(const OpRegistration& op, const IntList& shape, const random::NormalOptions& o) {
  AttrMap attrs = internal::op_seeds(o.seed);
  attrs.set("dtype", DType(o.dtype));
  return scaled(call1(op, {shape.tensor()}, attrs), o.stddev, o.mean);
}

}  // namespace

namespace random {

void set_seed(std::int64_t seed) { Runtime::current().set_seed(seed); }

namespace {

// An argument by position, which the options must leave as it is by default.
double given_once(double by_position, double by_name, double unset, const char* name) {
  if (by_name != unset && by_name != by_position) {
    throw InvalidArgumentError(cat("td::random: '", name, "' is given twice, ", by_position,
                                   " by position and ", by_name,
                                   " in the options: leave one of them out."));
  }
  return by_position;
}

NormalOptions with_mean(double mean, NormalOptions options) {
  options.mean = given_once(mean, options.mean, NormalOptions().mean, "mean");
  return options;
}

NormalOptions with_deviation(double stddev, NormalOptions options) {
  options.stddev = given_once(stddev, options.stddev, NormalOptions().stddev, "stddev");
  return options;
}

}  // namespace

Tensor uniform(const IntList& shape, const UniformOptions& o) {
  const double maxval = upper_end(o.maxval, o.dtype, "td::random::uniform");
  AttrMap attrs = internal::op_seeds(o.seed);
  if (is_integer(o.dtype)) {
    return call1(kRandomUniformInt,
                 {shape.tensor(), number(o.minval, o.dtype), number(maxval, o.dtype)}, attrs);
  }
  attrs.set("dtype", DType(o.dtype));
  return between(call1(kRandomUniform, {shape.tensor()}, attrs), o.minval, maxval);
}

Tensor uniform(const IntList& shape, double minval, const UniformOptions& options) {
  UniformOptions all = options;
  all.minval = given_once(minval, options.minval, UniformOptions().minval, "minval");
  return uniform(shape, all);
}

Tensor uniform(const IntList& shape, double minval, double maxval, const UniformOptions& options) {
  UniformOptions all = options;
  all.minval = given_once(minval, options.minval, UniformOptions().minval, "minval");
  all.maxval = given_once(maxval, options.maxval.value_or(maxval), maxval, "maxval");
  return uniform(shape, all);
}

Tensor normal(const IntList& shape, const NormalOptions& options) {
  return stateful(kRandomStandardNormal, shape, options);
}

Tensor normal(const IntList& shape, double mean, const NormalOptions& options) {
  return normal(shape, with_mean(mean, options));
}

Tensor normal(const IntList& shape, double mean, double stddev, const NormalOptions& options) {
  return normal(shape, with_deviation(stddev, with_mean(mean, options)));
}

Tensor truncated_normal(const IntList& shape, const NormalOptions& options) {
  return stateful(kTruncatedNormal, shape, options);
}

Tensor truncated_normal(const IntList& shape, double mean, const NormalOptions& options) {
  return truncated_normal(shape, with_mean(mean, options));
}

Tensor truncated_normal(const IntList& shape, double mean, double stddev,
                        const NormalOptions& options) {
  return truncated_normal(shape, with_deviation(stddev, with_mean(mean, options)));
}

Tensor shuffle(Tensor value, std::optional<std::int64_t> seed) {
  return call1(kRandomShuffle, {std::move(value)}, internal::op_seeds(seed));
}

Tensor categorical(Tensor logits, std::int64_t num_samples, DType dtype,
                   std::optional<std::int64_t> seed) {
  if (num_samples < 0 || num_samples > INT32_MAX) {
    throw InvalidArgumentError(
        cat("num_samples should be nonnegative and below 2^31, got ", num_samples));
  }
  AttrMap attrs = internal::op_seeds(seed);
  attrs.set("output_dtype", dtype);
  return call1(kMultinomial, {std::move(logits), internal::int_scalar(num_samples, int32)}, attrs);
}

Tensor stateless_uniform(const IntList& shape, const IntList& seed,
                         const StatelessUniformOptions& o) {
  const double maxval = upper_end(o.maxval, o.dtype, "td::random::stateless_uniform");
  if (is_integer(o.dtype)) {
    KeyCounter k = scrambled(seed);
    return call1(kStatelessRandomUniformIntV2,
                 {shape.tensor(), std::move(k.key), std::move(k.counter), philox(),
                  number(o.minval, o.dtype), number(maxval, o.dtype)});
  }
  return between(stateless(kStatelessRandomUniformV2, shape, seed, o.dtype), o.minval, maxval);
}

Tensor stateless_uniform_full_int(const IntList& shape, const IntList& seed, DType dtype) {
  return stateless(kStatelessRandomUniformFullIntV2, shape, seed, dtype);
}

Tensor stateless_normal(const IntList& shape, const IntList& seed,
                        const StatelessNormalOptions& o) {
  return scaled(stateless(kStatelessRandomNormalV2, shape, seed, o.dtype), o.stddev, o.mean);
}

Tensor stateless_truncated_normal(const IntList& shape, const IntList& seed,
                                  const StatelessNormalOptions& o) {
  return scaled(stateless(kStatelessTruncatedNormalV2, shape, seed, o.dtype), o.stddev, o.mean);
}

Tensor stateless_shuffle(Tensor value, const IntList& seed) {
  KeyCounter k = scrambled(seed);
  return call1(kStatelessShuffle,
               {std::move(value), std::move(k.key), std::move(k.counter), philox()});
}

}  // namespace random
}  // namespace tandem
