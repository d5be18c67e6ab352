#include "tandem/kernels/cpu/onednn/conv_parts.h"

#include <algorithm>

#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu::onednn {
namespace {

std::int64_t wanted_pieces(const KernelContext& c, const ConvCase& p) {
  const double work = p.multiplications();
  if (c.deterministic()) {
    return std::clamp<std::int64_t>(
        static_cast<std::int64_t>(work / tuning::kFixedConvMultiplications), 1,
        tuning::kMaxFixedConvParts);
  }
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(work / tuning::kThreadMultiplications),
                                  1, c.intra_op().threads());
}

ConvPart batch_part(const ConvCase& whole, std::int64_t i, std::int64_t pieces) {
  ConvPart part{whole};
  const std::int64_t begin = whole.batch * i / pieces, end = whole.batch * (i + 1) / pieces;
  part.p.batch = end - begin;
  part.input = begin * whole.y.input * whole.x.input * whole.in_depth;
  part.output = begin * whole.y.output * whole.x.output * whole.out_depth;
  return part;
}

// Output rows [begin, end) of one image need these input rows, and less padding.
ConvPart row_part(const ConvCase& whole, std::int64_t begin, std::int64_t end) {
  ConvPart part{whole};
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

}  // namespace

ConvGrid cut_conv(const KernelContext& c, const ConvCase& p, bool rows_too) {
  const std::int64_t pieces = wanted_pieces(c, p);
  ConvGrid grid;
  grid.batch = std::min(pieces, p.batch);
  // Rows are cut for single images only, and only far from windows that lie in the padding alone.
  const std::int64_t reach = (p.y.filter - 1) * p.y.dilation + 1;
  if (rows_too && p.batch == 1 && pieces > 1 && p.y.pad_before < reach && p.y.pad_after < reach &&
      p.y.input >= reach) {
    grid.rows = std::clamp<std::int64_t>(p.y.output / 4, 1, pieces);
  }
  return grid;
}

ConvPart conv_part(const ConvCase& whole, const ConvGrid& grid, std::int64_t i) {
  if (grid.rows == 1) return batch_part(whole, i, grid.batch);
  return row_part(whole, whole.y.output * i / grid.rows, whole.y.output * (i + 1) / grid.rows);
}

}  // namespace tandem::cpu::onednn
