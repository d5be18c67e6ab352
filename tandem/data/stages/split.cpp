#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/sources/philox.h"
#include "tandem/data/sources/tensor_slices.h"
#include "tandem/data/stages/reservoir.h"

namespace tandem::data {
namespace {

// The numbers of a range's rows in an order drawn by seed.
TensorSlicesDataset::Order shuffled(const TensorSlicesDataset& rows, std::int64_t seed) {
  const RowRange range = rows.range();
  auto order = std::make_shared<std::vector<std::int64_t>>();
  Reservoir<std::int64_t> numbers(std::max<std::int64_t>(1, range.end - range.begin),
                                  Philox(static_cast<std::uint64_t>(seed), 0));
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    numbers.put(rows.order() ? (*rows.order())[static_cast<std::size_t>(i)] : i);
  }
  while (!numbers.empty()) numbers.take(order->emplace_back());
  return order;
}

}  // namespace

std::pair<Dataset, Dataset> Dataset::split(double fraction,
                                           std::optional<std::int64_t> seed) const {
  const DatasetRef& input = base_of(*this);
  if (!(fraction >= 0 && fraction <= 1)) {
    throw InvalidArgumentError(
        cat("split: the fraction must be between 0 and 1, got ", fraction, "."));
  }
  const std::int64_t count = input->cardinality();
  if (count < 0) {
    throw InvalidArgumentError(
        cat("split: the dataset has ",
            count == kInfinite ? "infinitely many elements" : "an unknown number of elements",
            ". Use take and skip with a number of elements."));
  }
  // 100 * 0.29 is a little below 29.
  const double exact = static_cast<double>(count) * fraction;
  const auto first = std::min(count, static_cast<std::int64_t>(exact + 1e-6));
  if (const auto* rows = dynamic_cast<const TensorSlicesDataset*>(input.get())) {
    const RowRange all = seed ? RowRange{0, count} : rows->range();
    const auto order = seed ? shuffled(*rows, *seed) : rows->order();
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      return make_dataset<TensorSlicesDataset>(rows->table(), order, RowRange{begin, end});
    };
    return {part(all.begin, all.begin + first), part(all.begin + first, all.end)};
  }
  const Dataset all =
      seed && count > 0 ? shuffle(count, {.seed = seed, .reshuffle_each_iteration = false}) : *this;
  return {all.take(first), all.skip(first)};
}

}  // namespace tandem::data
