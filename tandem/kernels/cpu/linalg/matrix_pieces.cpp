#include "tandem/kernels/cpu/linalg/matrix_pieces.h"

#include <algorithm>

#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu {
namespace {

std::int64_t wanted_pieces(double work, std::int64_t threads) {
  if (threads == 0) {
    return std::clamp<std::int64_t>(
        static_cast<std::int64_t>(work / tuning::kFixedMatMulMultiplications), 1,
        tuning::kMaxFixedMatMulParts);
  }
  const auto worthwhile = static_cast<std::int64_t>(work / tuning::kThreadMultiplications);
  return std::clamp<std::int64_t>(worthwhile, 1, threads);
}

}  // namespace

double multiplications(const MatrixProduct& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
         static_cast<double>(p.k);
}

MatrixGrid cut_matrices(const MatrixProduct& p, std::int64_t threads) {
  const std::int64_t pieces = wanted_pieces(multiplications(p), threads);
  MatrixGrid grid;
  if (p.batch >= pieces) {
    grid.batch = pieces;
    return grid;
  }
  const bool weights_are_most =
      !p.transpose_b && p.k >= tuning::kWeightsToRows * p.m && p.k >= tuning::kMinSums;
  const bool is_gradient =
      p.transpose_a && (p.m / 16) * std::max<std::int64_t>(p.n / 64, 1) >= pieces;
  if (p.dtype == DType::kFloat && p.batch == 1 && weights_are_most && !is_gradient) {
    grid.sums = std::min(pieces, p.k / 64);
    return grid;
  }
  grid.batch = p.batch;
  std::int64_t parts = (pieces + p.batch - 1) / p.batch;
  // Cutting columns has every thread read all of a, cutting rows all of b, which has to be
  // rearranged besides: so columns are cut first while they stay long.
  const bool tall = p.m >= 4 * p.n;
  grid.columns = tall ? 1 : std::clamp<std::int64_t>(p.n / 64, 1, parts);
  grid.rows = std::clamp<std::int64_t>(p.m / 16, 1, (parts + grid.columns - 1) / grid.columns);
  return grid;
}

IndexRange part_of(std::int64_t i, std::int64_t n, std::int64_t count, std::int64_t unit) {
  const std::int64_t units = (count + unit - 1) / unit;
  return {std::min(count, units * i / n * unit), std::min(count, units * (i + 1) / n * unit)};
}

}  // namespace tandem::cpu
