#pragma once

#include <cstdint>

#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/random/philox.h"

namespace tandem::cpu {

/// The place in its stream from which an execution of a stateful op takes its numbers; the node's
/// state moves on by so many blocks. The stream is that of the attributes seed and seed2, or of
/// chance if both are 0. Where the thread has a RngPosition the numbers follow from that instead.
Philox reserve_blocks(KernelContext& c, std::uint64_t blocks);

/// What a node keeps beside its stream, made when it is first asked for.
Ref<RefCounted> beside_stream(KernelContext& c, Ref<RefCounted> (*make)(const KernelContext&));

/// Reserves random numbers as TensorFlow does: 256 blocks for each of n outputs.
inline Philox reserve_outputs(KernelContext& c, std::int64_t n) {
  return reserve_blocks(c, static_cast<std::uint64_t>(n) * 256);
}

/// The stream at the state of the variable in input 0, by the algorithm in input 1. The state moves
/// on by 256 blocks for each of so many numbers.
Philox take_variable_blocks(KernelContext& c, std::uint64_t numbers);

/// The stream of a stateless op's `seed` input.
Philox seed_input(const KernelContext& c, int input);
/// The stream of the inputs key, counter and alg that begin at `first`.
Philox key_counter_input(const KernelContext& c, int first);

// Fill output 0 of the shape in input 0, from a stream.
using RandomFill = void (*)(KernelContext&, const Shape&, const Philox&);
void fill_uniform(KernelContext& c, const Shape& shape, const Philox& stream);
void fill_normal(KernelContext& c, const Shape& shape, const Philox& stream);
void fill_truncated_normal(KernelContext& c, const Shape& shape, const Philox& stream);
void fill_full_int(KernelContext& c, const Shape& shape, const Philox& stream);

/// The range [minval, maxval) in two inputs, for output 0. Checked where there is anything to draw.
void fill_uniform_int(KernelContext& c, const Shape& shape, int minval, int maxval,
                      const Philox& stream);

/// Output 0: the rows of input 0 in a random order.
void shuffle_rows(KernelContext& c, const Philox& stream);

/// Output 0: for each row of the logits in input 0, as many draws as input 1 says.
void draw_classes(KernelContext& c, std::int64_t samples, const Philox& stream);
/// Checks the inputs of draw_classes and returns the number of draws for a row.
std::int64_t class_samples(const KernelContext& c);

}  // namespace tandem::cpu
