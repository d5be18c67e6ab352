#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/dataset_base.h"
#include "tandem/data/fusion/row_table.h"

namespace tandem::data {

struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Rows of a table, from a range of positions: the rows themselves, or the positions of a list of
/// rows.
class TensorSlicesDataset final : public DatasetBase {
 public:
  using Order = std::shared_ptr<const std::vector<std::int64_t>>;
  TensorSlicesDataset(std::shared_ptr<const RowTable> table, Order order, RowRange range)
      : table_(std::move(table)), order_(std::move(order)), range_(range) {}

  std::string name() const override { return "TensorSlice"; }
  std::string parameters() const override {
    return cat("first=", range_.begin, " crc32c=", table_->checksum());
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override;
  bool can_shard_sources() const override { return true; }
  Tensor as_op() const override;
  const ElementSpec& element_spec() const override { return table_->spec(); }
  std::int64_t cardinality() const override { return range_.end - range_.begin; }

  const std::shared_ptr<const RowTable>& table() const { return table_; }
  /// Null: in the order of the table.
  const Order& order() const { return order_; }
  RowRange range() const { return range_; }

 private:
  std::shared_ptr<const RowTable> table_;
  Order order_;
  RowRange range_;
};

}  // namespace tandem::data
