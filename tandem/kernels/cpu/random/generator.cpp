// Random numbers whose state a variable keeps.

#include <mutex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/random/random.h"

namespace tandem::cpu {
namespace {

// Numbers are set aside in blocks: so many for each number drawn.
constexpr std::uint64_t kBlocksEach = 256;
constexpr std::int64_t kStateSize = 3;
constexpr std::int64_t kPhilox = 1, kAutomatic = 3;  // which is Philox on a CPU

// The stream at the state of the variable in input 0, which moves on by so many numbers.
// `before`, if given, receives the state as it was.
Philox take_stream(KernelContext& c, std::uint64_t numbers, std::int64_t* before = nullptr) {
  const std::int64_t algorithm = scalar_int_input(c, 1, "algorithm");
  if (algorithm != kPhilox && algorithm != kAutomatic) {
    throw InvalidArgumentError(
        cat("Unsupported algorithm id: ", algorithm, ". Use 1 (Philox) or 3 (the default)."));
  }
  VariableResource& variable = variable_of(c.input(0));
  const std::lock_guard lock(variable.mutex());
  const Array& value = variable.value();
  if (value.dtype() != DType::kInt64) {
    throw InvalidArgumentError(
        cat("dtype of RNG state variable must be int64, not ", value.dtype()));
  }
  if (value.rank() != 1 || value.num_elements() < kStateSize) {
    throw InvalidArgumentError(cat("RNG state must be a vector of at least ", kStateSize,
                                   " elements, got shape ", value.shape()));
  }
  std::int64_t* state = variable.writable_value().data<std::int64_t>();
  if (before != nullptr) std::copy(state, state + kStateSize, before);
  const auto word = [state](int i) { return static_cast<std::uint64_t>(state[i]); };
  const Philox stream(
      {Philox::low(word(0)), Philox::high(word(0)), Philox::low(word(1)), Philox::high(word(1))},
      {Philox::low(word(2)), Philox::high(word(2))});
  Philox next = stream;
  next.skip(numbers * kBlocksEach);
  const Philox::Block& counter = next.counter();
  state[0] = static_cast<std::int64_t>(Philox::join(counter[0], counter[1]));
  state[1] = static_cast<std::int64_t>(Philox::join(counter[2], counter[3]));
  return stream;
}

template <RandomFill kFill>
void draw(KernelContext& c) {
  const Shape shape = shape_input(c, 2);
  kFill(c, shape, take_stream(c, static_cast<std::uint64_t>(shape.num_elements())));
}

void draw_int(KernelContext& c) {
  const Shape shape = shape_input(c, 2);
  fill_uniform_int(c, shape, 3, 4,
                   take_stream(c, static_cast<std::uint64_t>(shape.num_elements())));
}

void skip(KernelContext& c) {
  take_stream(c, static_cast<std::uint64_t>(scalar_int_input(c, 2, "delta")));
}

void read_and_skip(KernelContext& c) {
  if (c.input(2).rank() != 0) {
    throw InvalidArgumentError(cat("delta must be a scalar, got shape ", c.input(2).shape()));
  }
  Array& before = c.allocate_output(0, Shape{kStateSize});
  take_stream(c, c.input(2).data<std::uint64_t>()[0], before.data<std::int64_t>());
}

constexpr TypeConstraint kFloats{"dtype", kFloatTypes};
constexpr TypeConstraint kWords{"dtype",
                                {DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64}};

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "StatefulUniform", .types = {kFloats}, .run = draw<fill_uniform>}),
    KernelRegistration(
        {.op = "StatefulStandardNormalV2", .types = {kFloats}, .run = draw<fill_normal>}),
    KernelRegistration(
        {.op = "StatefulTruncatedNormal", .types = {kFloats}, .run = draw<fill_truncated_normal>}),
    KernelRegistration(
        {.op = "StatefulUniformFullInt", .types = {kWords}, .run = draw<fill_full_int>}),
    KernelRegistration(
        {.op = "StatefulUniformInt", .types = {{"dtype", kIndexTypes}}, .run = draw_int}),
    KernelRegistration({.op = "RngSkip", .run = skip}),
    KernelRegistration({.op = "RngReadAndSkip", .run = read_and_skip}),
};

}  // namespace

Philox take_variable_blocks(KernelContext& c, std::uint64_t numbers) {
  return take_stream(c, numbers);
}

}  // namespace tandem::cpu
