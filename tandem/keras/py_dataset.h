#pragma once

#include <cstdint>
#include <memory>

#include "tandem/core/export.h"
#include "tandem/data/dataset.h"

namespace tandem::keras::utils {

/// Batches by number, for data that other programs' code reads. Derive from it; fit takes what
/// `dataset` makes of it.
///
///     class Photos final : public td::keras::utils::PyDataset {
///       std::int64_t size() const override { return 100; }
///       td::data::Element get(std::int64_t i) const override { … }
///     };
///     model.fit(td::keras::utils::dataset(std::make_shared<Photos>()));
class TANDEM_EXPORT PyDataset {
 public:
  virtual ~PyDataset();
  /// How many batches there are.
  virtual std::int64_t size() const = 0;
  /// A batch: (x), (x, y) or (x, y, sample_weight). Called from one thread at a time.
  virtual data::Element get(std::int64_t index) const = 0;
  /// After each pass.
  virtual void on_epoch_end() {}
};
using Sequence = PyDataset;

/// The batches in order, again in each pass; with `shuffle` in another order each time. Shapes and
/// dtypes are those of the first batch, but for the first axis.
TANDEM_EXPORT data::Dataset dataset(const std::shared_ptr<PyDataset>& batches,
                                    bool shuffle = false);

}  // namespace tandem::keras::utils
