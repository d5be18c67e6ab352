#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>

#include "tandem/kernels/cpu/onednn/conv.h"
#include "tandem/kernels/cpu/onednn/conv_call.h"
#include "tandem/kernels/cpu/support/scratch.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu::onednn {
namespace {

// The batch is cut by the sizes alone, never by the number of threads, and the parts' sums are
// added in order: so the result has the same bits on any number of threads. A part has to be worth
// its share of the overhead, and its positions the adding up of one more filter; a long one is
// worth a second thread in any case. The number is a power of two, which most machines' threads
// share evenly, or that of the images.
std::int64_t count_pieces(const ConvCase& p) {
  constexpr double kPiece = tuning::kFilterThreadMultiplications;
  constexpr double kPositions = 1024;
  constexpr double kLong = 100 * kPiece;
  const double by_work = p.multiplications() / kPiece;
  const double by_positions = static_cast<double>(p.batch * p.y.output * p.x.output) / kPositions;
  const double least = p.multiplications() >= kLong ? 2.0 : 1.0;
  const double wanted = std::clamp(std::min(by_work, by_positions), least, 32.0);
  const auto pieces = static_cast<std::int64_t>(std::exp2(std::round(std::log2(wanted))));
  return std::min(pieces, p.batch);
}

// sums[i] += values[i]
void add(float* sums, const float* values, std::int64_t count) {
  constexpr std::int64_t kStep = 16;
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (std::int64_t j = 0; j < kStep; ++j) sums[i + j] += values[i + j];
  }
  for (; i < count; ++i) sums[i] += values[i];
}

}  // namespace

bool conv_backprop_filter(KernelContext& c, const ConvCase& p, const void* image,
                          const void* gradient, void* filter) {
  const std::int64_t pieces = count_pieces(p);
  // All parts but the last ones have this size, and all use the order that the library likes for
  // it.
  ConvCase first = p;
  first.batch = p.batch / pieces;
  Call& call = conv_call(ConvResult::kFilter, first);
  if (!call.possible()) return false;
  const dnnl::memory::desc desc = filter_desc(ConvResult::kFilter, call);
  if (pieces == 1 && p.dtype == DType::kFloat &&
      filter_is_plain(ConvResult::kFilter, first, call)) {
    call.run({image, gradient, filter});
    return true;
  }

  const auto floats = static_cast<std::int64_t>(desc.get_size() / sizeof(float));
  const Scratch scratch(static_cast<std::size_t>(pieces * floats) * sizeof(float));
  float* const sums = scratch.as<float>();
  const auto element = static_cast<std::int64_t>(dtype_size(p.dtype));
  std::atomic<bool> possible{true};
  c.intra_op().for_each_piece(pieces, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t from = p.batch * i / pieces;
      ConvCase part = p;
      part.batch = p.batch * (i + 1) / pieces - from;
      Call& own = conv_call(ConvResult::kFilter, part);
      if (!own.possible() || !(filter_desc(ConvResult::kFilter, own) == desc)) {
        possible.store(false, std::memory_order_relaxed);
        return;
      }
      const std::int64_t input = from * p.y.input * p.x.input * p.in_depth * element;
      const std::int64_t output = from * p.y.output * p.x.output * p.out_depth * element;
      own.run({static_cast<const std::byte*>(image) + input,
               static_cast<const std::byte*>(gradient) + output, sums + i * floats});
    }
  });
  if (!possible.load(std::memory_order_relaxed)) return false;
  // In blocks that stay in the nearest cache while all pieces are added.
  constexpr std::int64_t kBlock = 2048;
  c.intra_op().parallel_for(
      (floats + kBlock - 1) / kBlock, 0.1 * static_cast<double>(pieces * kBlock),
      [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t b = from; b < to; ++b) {
          const std::int64_t begin = b * kBlock, count = std::min(kBlock, floats - begin);
          for (std::int64_t i = 1; i < pieces; ++i)
            add(sums + begin, sums + i * floats + begin, count);
        }
      });
  unpack_filter(first, call, sums, filter);
  return true;
}

}  // namespace tandem::cpu::onednn
