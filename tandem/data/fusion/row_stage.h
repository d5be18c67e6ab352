#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/data/dataset_base.h"
#include "tandem/data/fusion/row_table.h"

namespace tandem::data {

/// An iterator that passes on some of its input's elements unchanged, in some order: by number
/// where the input has rows.
class RowStage : public UnaryIterator {
 public:
  using UnaryIterator::UnaryIterator;
  const RowTable* rows() const final { return input().rows(); }
  bool next(Element& out) final {
    const RowTable* table = rows();
    if (!table) return next_element(out);
    std::int64_t row = 0;
    if (next_rows({&row, 1}) == 0) return false;
    table->element(row, out);
    return true;
  }
  std::size_t next_rows(std::span<std::int64_t> out) final {
    std::size_t given = 0;
    if (!kept_.empty()) {
      given = std::min(kept_.size(), out.size());
      std::copy_n(kept_.begin(), given, out.begin());
      kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(given));
    }
    try {
      draw_rows(out, given);
    } catch (...) {
      kept_.insert(kept_.begin(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(given));
      throw;
    }
    return given;
  }

 protected:
  /// Fills `out` from place `given` on as next_rows does, and counts each row there at once.
  virtual void draw_rows(std::span<std::int64_t> out, std::size_t& given) = 0;
  /// A part of the stage's state.
  void visit_kept(StateArchive& state) {
    state.value(kept_);
    for (const std::int64_t row : kept_) require_row(row);
  }
  /// A state may be another dataset's, with other rows.
  void require_row(std::int64_t row) const {
    StateArchive::require(rows() && row >= 0 && row < rows()->num_rows(),
                          "it holds numbers of rows that do not exist");
  }
  /// For inputs without rows.
  virtual bool next_element(Element& out) = 0;

 private:
  std::vector<std::int64_t> kept_;  // drawn by a call that failed
};

/// A value that is computed when first asked for.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(Make make) const {
    std::lock_guard lock(mutex_);
    if (!known_) {
      value_ = make();
      known_ = true;
    }
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  mutable T value_;
  mutable bool known_ = false;
};
using LazySpec = Lazy<ElementSpec>;

/// The names of elements that are nests of these datasets' elements.
Names zipped_names(const std::vector<DatasetRef>& inputs);

/// Every `num_shards`-th of the input's elements, beginning with number `index`.
std::unique_ptr<IteratorBase> make_shard_iterator(std::unique_ptr<IteratorBase> input,
                                                  std::int64_t num_shards, std::int64_t index,
                                                  const IterationContext& context);
/// What a source that obeys Options::file_shard gives of `count` names of files, or other things
/// that stand for such; kUnknown if that cannot be determined. Throws InvalidArgumentError if there
/// are fewer than shards.
std::unique_ptr<IteratorBase> apply_file_shard(std::unique_ptr<IteratorBase> all,
                                               std::int64_t count, const IterationContext& context);
void check_enough_files(std::int64_t count, std::int64_t num_shards);

/// The handle's dataset; throws FailedPreconditionError if it has none.
inline const DatasetRef& base_of(const Dataset& dataset) {
  if (!dataset.defined()) {
    throw FailedPreconditionError(
        "An undefined td::data::Dataset was used. Make one first, with from_tensor_slices for "
        "example.");
  }
  return dataset.base();
}

}  // namespace tandem::data
