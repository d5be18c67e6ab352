#include "tandem/kernels/cpu/onednn/conv.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/onednn/conv_call.h"
#include "tandem/kernels/cpu/scratch.h"

namespace tandem::cpu::onednn {
namespace {

// Multiplications that are worth another thread: some 20 µs on one core.
constexpr double kPiece = 1e6;
// The pieces under determinism, whatever the number of threads.
constexpr double kFixedPiece = 8e6;
constexpr std::int64_t kMostFixedPieces = 32;

std::int64_t wanted_pieces(const KernelContext& c, const ConvCase& p) {
  const double work = p.multiplications();
  if (c.deterministic()) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(work / kFixedPiece), 1,
                                    kMostFixedPieces);
  }
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(work / kPiece), 1,
                                  c.intra_op().threads());
}

// A part of a convolution, and where its images begin in the whole's.
struct Part {
  ConvCase p;
  std::int64_t input = 0, output = 0;
};

Part batch_part(const ConvCase& whole, std::int64_t i, std::int64_t pieces) {
  Part part{whole};
  const std::int64_t begin = whole.batch * i / pieces, end = whole.batch * (i + 1) / pieces;
  part.p.batch = end - begin;
  part.input = begin * whole.y.input * whole.x.input * whole.in_depth;
  part.output = begin * whole.y.output * whole.x.output * whole.out_depth;
  return part;
}

// Output rows [begin, end) of one image need these input rows, and less padding.
Part row_part(const ConvCase& whole, std::int64_t begin, std::int64_t end) {
  Part part{whole};
  const WindowAxis& y = whole.y;
  const std::int64_t reach = (y.filter - 1) * y.dilation + 1;
  const std::int64_t first = begin * y.stride - y.pad_before;
  const std::int64_t last = (end - 1) * y.stride - y.pad_before + reach;
  WindowAxis& cut = part.p.y;
  cut.output = end - begin;
  cut.pad_before = std::max<std::int64_t>(0, -first);
  cut.pad_after = std::max<std::int64_t>(0, last - y.input);
  cut.input = std::min(last, y.input) - std::max<std::int64_t>(first, 0);
  part.input = std::max<std::int64_t>(first, 0) * whole.x.input * whole.in_depth;
  part.output = begin * whole.x.output * whole.out_depth;
  return part;
}

struct Grid {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
};

Grid cut(const ConvCase& p, std::int64_t pieces, bool rows_too) {
  Grid grid;
  grid.batch = std::min(pieces, p.batch);
  // Rows are cut for single images only, and only far from windows that lie in the padding alone.
  const std::int64_t reach = (p.y.filter - 1) * p.y.dilation + 1;
  if (rows_too && p.batch == 1 && pieces > 1 && p.y.pad_before < reach && p.y.pad_after < reach &&
      p.y.input >= reach) {
    grid.rows = std::clamp<std::int64_t>(p.y.output / 4, 1, pieces);
  }
  return grid;
}

const std::byte* at(const void* base, std::int64_t element, DType dtype) {
  return static_cast<const std::byte*>(base) +
         element * static_cast<std::int64_t>(dtype_size(dtype));
}
std::byte* at(void* base, std::int64_t element, DType dtype) {
  return static_cast<std::byte*>(base) + element * static_cast<std::int64_t>(dtype_size(dtype));
}

// Runs `run(part, packed filter)` for every part. The filter is packed once, for the first part;
// should the library want another order for parts of another size, those pack their own.
template <class Run>
bool for_each_part(KernelContext& c, ConvResult result, const ConvCase& p, const Grid& grid,
                   const void* filter, Run run) {
  const auto part_of = [&](std::int64_t i) {
    if (grid.rows == 1) return batch_part(p, i, grid.batch);
    return row_part(p, p.y.output * i / grid.rows, p.y.output * (i + 1) / grid.rows);
  };
  const Part first = part_of(0);
  Call& call = conv_call(result, first.p);
  if (!call.possible()) return false;
  const bool plain = filter_is_plain(result, first.p, call);
  const dnnl::memory::desc packed_desc = filter_desc(result, call);
  const Scratch packed(plain ? 0 : packed_desc.get_size());
  if (!plain) pack_filter(result, first.p, call, filter, packed.data());

  std::atomic<bool> possible{true};
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Part part = part_of(i);
      Call& own = conv_call(result, part.p);
      if (!own.possible()) {
        possible.store(false, std::memory_order_relaxed);
      } else if (plain && filter_is_plain(result, part.p, own)) {
        run(own, part, filter);
      } else if (!plain && filter_desc(result, own) == packed_desc) {
        run(own, part, packed.data());
      } else {
        const Scratch mine(filter_desc(result, own).get_size());
        pack_filter(result, part.p, own, filter, mine.data());
        run(own, part, mine.data());
      }
    }
  };
  const std::int64_t pieces = grid.batch * grid.rows;
  if (pieces == 1) {
    work(0, 1);
  } else {
    c.intra_op().for_each_piece(pieces, work);
  }
  return possible.load(std::memory_order_relaxed);
}

}  // namespace

bool conv_forward(KernelContext& c, const ConvCase& p, const void* image, const void* filter,
                  void* output) {
  return for_each_part(
      c, ConvResult::kOutput, p, cut(p, wanted_pieces(c, p), true), filter,
      [&](Call& call, const Part& part, const void* packed) {
        call.run({at(image, part.input, p.dtype), packed, at(output, part.output, p.dtype)});
      });
}

bool conv_backprop_input(KernelContext& c, const ConvCase& p, const void* filter,
                         const void* gradient, void* image) {
  return for_each_part(
      c, ConvResult::kInput, p, cut(p, wanted_pieces(c, p), false), filter,
      [&](Call& call, const Part& part, const void* packed) {
        call.run({packed, at(gradient, part.output, p.dtype), at(image, part.input, p.dtype)});
      });
}

}  // namespace tandem::cpu::onednn
