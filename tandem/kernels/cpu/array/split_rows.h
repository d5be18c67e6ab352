#pragma once

#include <cstdint>
#include <span>

#include "tandem/core/dtype.h"
#include "tandem/device/intra_op_pool.h"

namespace tandem::cpu {

/// Where one part of each row goes: side by side, `length` elements of each.
struct RowPart {
  void* data;
  std::int64_t length;
};

/// Fewer rows are better cut within, part by part.
constexpr std::int64_t kFewRows = 16;

/// Copies rows, whose lengths are those of all parts together, part by part to where these go. All
/// parts of some rows at a time, so that what is read stays in the cache for the next part, and so
/// that many small parts are worth several threads.
void split_rows(IntraOpPool& pool, DType dtype, const void* from, std::int64_t rows,
                std::span<const RowPart> parts);

}  // namespace tandem::cpu
