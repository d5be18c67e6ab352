#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tandem/data/dataset_base.h"
#include "tandem/data/fusion/row_table.h"

namespace tandem::data {

/// The numbers of the rows of a batch, of an input that has rows: drawn some at a time, so that a
/// large batch can be cancelled: those drawn till then are the next batch's first.
class BatchRows {
 public:
  explicit BatchRows(std::int64_t size) : size_(static_cast<std::size_t>(size)) {}

  /// Those of the next batch, fewer than its size only at the end; the same until `taken`.
  std::span<const std::int64_t> draw(IteratorBase& input, const IterationContext& context) {
    constexpr std::size_t kChunk = 4096;
    for (bool more = true; more && count_ < size_;) {
      const std::size_t wanted = std::min(kChunk, size_ - count_);
      if (numbers_.size() < count_ + wanted) numbers_.resize(count_ + wanted);
      const std::size_t got = input.next_rows(std::span(numbers_).subspan(count_, wanted));
      count_ += got;
      more = got == wanted;
      if (more) context.check();
    }
    return std::span(numbers_).first(count_);
  }
  /// The rows are the batch's, which is passed over if it cannot be made; they stay where they are
  /// until more are drawn.
  void taken() { count_ = 0; }

  /// `ended` is the stage's, which shares a number with whether rows wait for the next batch.
  void visit_state(StateArchive& state, bool& ended, const RowTable* table) {
    std::int64_t flags = (ended ? 1 : 0) + (count_ > 0 ? 2 : 0);
    state.value(flags);
    state.require(flags >= 0 && flags < 4, "it has unknown flags");
    ended = (flags & 1) != 0;
    if ((flags & 2) == 0) {
      count_ = 0;
      return;
    }
    std::vector<std::int64_t> rows(numbers_.begin(),
                                   numbers_.begin() + static_cast<std::ptrdiff_t>(count_));
    state.value(rows);
    state.require(rows.size() <= size_, "it holds more rows than a batch has");
    for (const std::int64_t row : rows) {
      state.require(table && row >= 0 && row < table->num_rows(),
                    "it holds numbers of rows that do not exist");
    }
    count_ = rows.size();
    numbers_ = std::move(rows);
  }

 private:
  const std::size_t size_;
  std::vector<std::int64_t> numbers_;
  std::size_t count_ = 0;  // drawn and not taken
};

}  // namespace tandem::data
