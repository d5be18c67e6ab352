// L2Loss and InTopK.

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// Sums of fixed pieces, whatever the number of threads.
void l2_loss(KernelContext& c) {
  constexpr std::int64_t kPiece = 16384;
  const std::int64_t n = c.input(0).num_elements();
  const std::int64_t pieces = std::max<std::int64_t>(1, (n + kPiece - 1) / kPiece);
  Array& out = c.allocate_output(0, Shape{});
  with_floating(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    const T* x = c.input(0).data<T>();
    const auto sum_of = [&](std::int64_t piece) {
      W sums[8] = {};  // side by side, so that they need not wait for each other
      std::int64_t i = piece * kPiece;
      const std::int64_t end = std::min(n, i + kPiece);
      for (; i + 8 <= end; i += 8) {
        for (int k = 0; k < 8; ++k) {
          const W v = widen(x[i + k]);
          sums[k] += v * v;
        }
      }
      for (; i < end; ++i) {
        const W v = widen(x[i]);
        sums[0] += v * v;
      }
      return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
             ((sums[2] + sums[6]) + (sums[3] + sums[7]));
    };
    W total = 0;
    if (pieces == 1) {
      total = sum_of(0);
    } else {
      const Array partial = c.allocate_temp(dtype_of<W>, Shape{pieces});
      W* sums = partial.data<W>();
      c.intra_op().for_each_piece(pieces, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t p = begin; p < end; ++p) sums[p] = sum_of(p);
      });
      for (std::int64_t p = 0; p < pieces; ++p) total += sums[p];
    }
    *out.data<T>() = static_cast<T>(total / 2);
  });
}

// Whether fewer than k of the row's values are larger than the target's; false where a value that
// matters is not finite.
bool in_top(const float* row, std::int64_t classes, std::int64_t target, std::int64_t k) {
  if (target < 0 || target >= classes || !std::isfinite(row[target])) return false;
  std::int64_t larger = 0;
  for (std::int64_t i = 0; i < classes; ++i) {
    if (!std::isfinite(row[i])) return false;
    if (row[i] > row[target] && ++larger > k) break;
  }
  return larger < k;
}

void run_in_top_k(KernelContext& c, std::int64_t k) {
  const Array& predictions = c.input(0);
  const Array& targets = c.input(1);
  if (predictions.rank() != 2) {
    throw InvalidArgumentError(
        cat("predictions must be 2-dimensional, but has shape ", predictions.shape()));
  }
  if (targets.rank() != 1) {
    throw InvalidArgumentError(
        cat("targets must be 1-dimensional, but has shape ", targets.shape()));
  }
  const std::int64_t rows = predictions.shape()[0];
  const std::int64_t classes = predictions.shape()[1];
  if (rows != targets.num_elements()) {
    throw InvalidArgumentError(cat("First dimension of predictions ", rows,
                                   " must match length of targets ", targets.num_elements()));
  }
  Array& out = c.allocate_output(0, targets.shape());
  with_type<std::int32_t, std::int64_t>(targets.dtype(), [&]<class Target>() {
    const float* values = predictions.data<float>();
    const Target* target = targets.data<Target>();
    bool* hit = out.data<bool>();
    c.intra_op().parallel_for(rows, 1.0 * static_cast<double>(classes),
                              [&](std::int64_t begin, std::int64_t end) {
                                for (std::int64_t i = begin; i < end; ++i) {
                                  hit[i] = in_top(values + i * classes, classes, target[i], k);
                                }
                              });
  });
}

void in_top_k(KernelContext& c) { run_in_top_k(c, c.attr<std::int64_t>("k")); }

void in_top_k_v2(KernelContext& c) {
  const Array& k = c.input(2);
  if (k.rank() != 0) {
    throw InvalidArgumentError(cat("k must be 0-D, got shape ", k.shape()));
  }
  run_in_top_k(c, k.dtype() == DType::kInt32 ? *k.data<std::int32_t>() : *k.data<std::int64_t>());
}

const KernelRegistration kL2Loss{{.op = "L2Loss", .types = {{"T", kFloatTypes}}, .run = l2_loss}};
const KernelRegistration kInTopK{{.op = "InTopK", .types = {{"T", kIndexTypes}}, .run = in_top_k}};
const KernelRegistration kInTopKV2{
    {.op = "InTopKV2", .types = {{"T", kIndexTypes}}, .run = in_top_k_v2}};

}  // namespace
}  // namespace tandem::cpu
