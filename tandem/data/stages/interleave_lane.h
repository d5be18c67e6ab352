#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "tandem/data/stages/nested_source.h"

namespace tandem::data {

/// One dataset of an interleave's cycle, or of those that wait for their turn. Of these members
/// `source` belongs to the thread that set `busy`, the others are guarded by the iterator's mutex.
struct Lane {
  struct Item {
    Element element;
    std::exception_ptr error;
    Origin origin;
  };
  Element from;  ///< until `opened`
  std::int64_t number = 0;
  NestedSource source;
  std::deque<Item> ready;
  bool opened = false;
  bool busy = false;
  bool ended = false;
  bool failed = false;  ///< could not be opened: `ready` is the error

  /// A thread should make elements for it, up to `limit`.
  bool wants_work(std::size_t limit) const { return !busy && !ended && ready.size() <= limit / 2; }
};

using Cycle = std::vector<std::unique_ptr<Lane>>;

/// The first that has an element; the number of all if there is none.
std::size_t first_ready(const Cycle& cycle);
/// The next lane, in the order of the cycle from `at` and then of those that wait, that has
/// something to be done; or null.
Lane* lane_with_work(const Cycle& cycle, std::size_t at,
                     const std::deque<std::unique_ptr<Lane>>& upcoming, std::size_t limit);
/// Saves or restores a lane, or that there is none.
void visit(StateArchive& state, std::unique_ptr<Lane>& lane, const NestedSource::Maker& maker);

}  // namespace tandem::data
