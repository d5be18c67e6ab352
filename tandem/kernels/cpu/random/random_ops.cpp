// The random ops: where their numbers come from, and how many are set aside.

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/random/random.h"

namespace tandem::cpu {
namespace {

// ---- With a state ----

template <RandomFill kFill>
void stateful(KernelContext& c) {
  const Shape shape = shape_input(c, 0);
  kFill(c, shape, reserve_outputs(c, shape.num_elements()));
}

void stateful_int(KernelContext& c) {
  const Shape shape = shape_input(c, 0);
  fill_uniform_int(c, shape, 1, 2, reserve_outputs(c, shape.num_elements()));
}

void shuffle(KernelContext& c) {
  const Array& x = c.input(0);
  // A row that is alone needs no numbers.
  const std::int64_t rows = x.rank() == 0 ? 1 : x.shape()[0];
  if (rows <= 1 || x.num_elements() <= 1) return c.set_output(0, x);
  shuffle_rows(c, reserve_blocks(c, static_cast<std::uint64_t>((rows - 1 + 3) / 4)));
}

void multinomial(KernelContext& c) {
  const std::int64_t samples = class_samples(c);
  // Two numbers make a double; samples are rounded up to whole blocks.
  const std::int64_t each = (samples + 3) / 4 * 4 * 2;
  draw_classes(c, samples, reserve_outputs(c, checked_multiply(c.input(0).shape()[0], each)));
}

// ---- Of a seed ----

template <RandomFill kFill>
void stateless(KernelContext& c) {
  const Philox stream = seed_input(c, 1);
  kFill(c, shape_input(c, 0), stream);
}

void stateless_int(KernelContext& c) {
  const Philox stream = seed_input(c, 1);
  fill_uniform_int(c, shape_input(c, 0), 2, 3, stream);
}

void stateless_multinomial(KernelContext& c) {
  const Philox stream = seed_input(c, 2);
  draw_classes(c, class_samples(c), stream);
}

// ---- Of key and counter ----

template <RandomFill kFill>
void stateless_v2(KernelContext& c) {
  const Philox stream = key_counter_input(c, 1);
  kFill(c, shape_input(c, 0), stream);
}

void stateless_int_v2(KernelContext& c) {
  const Philox stream = key_counter_input(c, 1);
  fill_uniform_int(c, shape_input(c, 0), 4, 5, stream);
}

void stateless_shuffle(KernelContext& c) {
  const Array& x = c.input(0);
  const Philox stream = key_counter_input(c, 1);
  if (x.rank() == 0 || x.shape()[0] <= 1 || x.num_elements() <= 1) return c.set_output(0, x);
  shuffle_rows(c, stream);
}

void get_key_counter(KernelContext& c) {
  const Philox stream = seed_input(c, 0);
  *c.allocate_output(0, Shape{1}).data<std::uint64_t>() =
      Philox::join(stream.key()[0], stream.key()[1]);
  auto* counter = c.allocate_output(1, Shape{2}).data<std::uint64_t>();
  counter[0] = Philox::join(stream.counter()[0], stream.counter()[1]);
  counter[1] = Philox::join(stream.counter()[2], stream.counter()[3]);
  if (c.num_outputs() > 2) *c.allocate_output(2, Shape{}).data<std::int32_t>() = 1;
}

void get_algorithm(KernelContext& c) { *c.allocate_output(0, Shape{}).data<std::int32_t>() = 1; }

constexpr TypeConstraint kFloats{"dtype", kFloatTypes};
constexpr TypeConstraint kWords{"dtype",
                                {DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64}};

const KernelRegistration kUniform{
    {.op = "RandomUniform", .types = {kFloats}, .run = stateful<fill_uniform>}};
const KernelRegistration kNormal{
    {.op = "RandomStandardNormal", .types = {kFloats}, .run = stateful<fill_normal>}};
const KernelRegistration kTruncated{
    {.op = "TruncatedNormal", .types = {kFloats}, .run = stateful<fill_truncated_normal>}};
const KernelRegistration kUniformInt{
    {.op = "RandomUniformInt", .types = {{"Tout", kIndexTypes}}, .run = stateful_int}};
const KernelRegistration kShuffle{{.op = "RandomShuffle", .run = shuffle}};
const KernelRegistration kMultinomial{
    {.op = "Multinomial", .types = {{"T", kRealTypes}}, .run = multinomial}};

const KernelRegistration kStatelessUniform{
    {.op = "StatelessRandomUniform", .types = {kFloats}, .run = stateless<fill_uniform>}};
const KernelRegistration kStatelessNormal{
    {.op = "StatelessRandomNormal", .types = {kFloats}, .run = stateless<fill_normal>}};
const KernelRegistration kStatelessTruncated{{.op = "StatelessTruncatedNormal",
                                              .types = {kFloats},
                                              .run = stateless<fill_truncated_normal>}};
const KernelRegistration kStatelessInt{
    {.op = "StatelessRandomUniformInt", .types = {{"dtype", kIndexTypes}}, .run = stateless_int}};
const KernelRegistration kStatelessFullInt{
    {.op = "StatelessRandomUniformFullInt", .types = {kWords}, .run = stateless<fill_full_int>}};
const KernelRegistration kStatelessMultinomial{
    {.op = "StatelessMultinomial", .types = {{"T", kRealTypes}}, .run = stateless_multinomial}};

const KernelRegistration kUniformV2{
    {.op = "StatelessRandomUniformV2", .types = {kFloats}, .run = stateless_v2<fill_uniform>}};
const KernelRegistration kNormalV2{
    {.op = "StatelessRandomNormalV2", .types = {kFloats}, .run = stateless_v2<fill_normal>}};
const KernelRegistration kTruncatedV2{{.op = "StatelessTruncatedNormalV2",
                                       .types = {kFloats},
                                       .run = stateless_v2<fill_truncated_normal>}};
const KernelRegistration kIntV2{
    {.op = "StatelessRandomUniformIntV2", .types = {kWords}, .run = stateless_int_v2}};
const KernelRegistration kFullIntV2{{.op = "StatelessRandomUniformFullIntV2",
                                     .types = {kWords},
                                     .run = stateless_v2<fill_full_int>}};
const KernelRegistration kStatelessShuffle{{.op = "StatelessShuffle", .run = stateless_shuffle}};
const KernelRegistration kGetKeyCounter{
    {.op = "StatelessRandomGetKeyCounter", .run = get_key_counter}};
const KernelRegistration kGetKeyCounterAlg{
    {.op = "StatelessRandomGetKeyCounterAlg", .run = get_key_counter}};
const KernelRegistration kGetAlgorithm{{.op = "StatelessRandomGetAlg", .run = get_algorithm}};

}  // namespace
}  // namespace tandem::cpu
