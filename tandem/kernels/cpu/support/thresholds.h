#pragma once

#include <cstdint>

// The sizes at which kernels change their way, in one place, each with the measurement that set it.
// Where implementations compete, the machine at hand decides by measurement (kernel_tuner.h); what
// stands here is what that measurement starts from, and what holds where nothing may be measured.
//
// Unless it says otherwise, a figure was measured with oneDNN 2.6 on an x86-64 processor, float.

namespace tandem::cpu::tuning {

// ---- Work that is worth another thread. ----

/// Multiplications that are worth another thread in a product of matrices or a convolution: some 15
/// to 20 µs on one core, several times what handing over to a worker and joining it costs.
constexpr double kThreadMultiplications = 1e6;
/// The threshold for a filter's gradient, each of whose parts has another filter to add up.
constexpr double kFilterThreadMultiplications = 4e6;
/// Under determinism the number of parts follows from the sizes alone. They are larger than above,
/// as a machine may have fewer threads than there are parts; a choice, not a measurement.
constexpr double kFixedMatMulMultiplications = 1.6e7;
constexpr std::int64_t kMaxFixedMatMulParts = 16;
/// Convolutions have more to do for each multiplication, so their parts are smaller.
constexpr double kFixedConvMultiplications = 8e6;
constexpr std::int64_t kMaxFixedConvParts = 32;

// ---- Products of matrices. ----

/// Up to so many multiplications plain loops take less time than looking up a primitive.
constexpr std::int64_t kTinyMultiplications = 128;
constexpr std::int64_t kTinyRows = 16, kTinyColumns = 16, kTinySums = 64;
/// b is a layer's weights, and most of what is read, if it has this many more rows than a: then the
/// sums are cut instead of the columns, so that the optimizer's threads find the rows in their own
/// caches.
constexpr std::int64_t kWeightsToRows = 8;
constexpr std::int64_t kMinSums = 128;
/// Two 16-bit matrices and their product that stay in a core's second cache as floats (256 KiB).
constexpr std::int64_t kFloatBlock = 1 << 16;
/// Floats of a that a thread holds at a time where 16-bit matrices are multiplied in blocks: most
/// of 1 MiB, which a core's second cache and its scratch memory hold.
constexpr std::int64_t kBlockFloats = 220'000;
constexpr std::int64_t kMaxBlockRows = 384;
/// The side of matrices from which that is assumed to be faster than whole operands as float; of
/// 256 it took 0.94 of the time, of 512 0.87.
constexpr std::int64_t kMinBlockSide = 64;
/// Longer rows are done a part at a time: for each block of rows all of b is converted again, so
/// they must not be few. Measured: 2048 columns in one part took 1.12 times as long as a product of
/// floats.
constexpr std::int64_t kBlockColumns = 1024;
/// Multiplications from which candidates are measured: below it (some 2 µs on one core) the one
/// that is assumed to be fastest runs.
constexpr double kMinMeasured = 1 << 17;
/// Larger problems are measured on a part of this size (some 30 ms on one core at 150 GFLOP/s).
constexpr double kMaxMeasured = 1u << 31;

// ---- Convolutions with filters of one entry, as products of matrices. ----

/// Weights (channels before times channels after) from which a product of matrices was faster than
/// oneDNN's convolution: of a filter's gradient (1.05 to 1.7 times),
constexpr std::int64_t kFewWeights = 6000;
/// of a result with at least as many channels as the image (1.02 to 1.09 times),
constexpr std::int64_t kSomeWeights = std::int64_t{1} << 13;
/// and of any: 2 MiB, which a core's second cache no longer holds (1.05 to 1.9 times).
constexpr std::int64_t kManyWeights = std::int64_t{1} << 19;

// ---- Measuring itself. ----

/// Samples of each candidate, taken in turns so that a disturbance meets all of them; the fastest
/// counts.
constexpr int kMeasuredRounds = 5;
/// More are taken while other work interrupts those of a candidate.
constexpr int kMaxMeasuredRounds = 20;
/// A sample of a fast candidate repeats it for so long.
constexpr double kSampleSeconds = 200e-6;
/// A candidate so many times slower than the fastest gets no more samples.
constexpr double kHopeless = 1.5;
/// Another candidate than the first has to be faster by more than what samples vary.
constexpr double kWorthChanging = 1.02;
/// By more where other work interrupted all samples.
constexpr double kWorthChangingDisturbed = 1.25;

}  // namespace tandem::cpu::tuning
