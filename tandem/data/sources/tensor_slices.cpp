#include "tandem/data/sources/tensor_slices.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/sources/seekable.h"
#include "tandem/data/stages/dataset_op.h"

namespace tandem::data {
namespace {

class SlicesIterator final : public IteratorBase, public Seekable {
 public:
  SlicesIterator(const RowTable& table, const std::vector<std::int64_t>* order, RowRange range)
      : table_(table), order_(order), begin_(range.begin), at_(range.begin), end_(range.end) {}

  bool next(Element& out) override {
    if (at_ == end_) return false;
    table_.element(order_ ? (*order_)[static_cast<std::size_t>(at_)] : at_, out);
    ++at_;
    return true;
  }

  const RowTable* rows() const override { return &table_; }

  std::size_t next_rows(std::span<std::int64_t> out) override {
    const auto count = std::min(out.size(), static_cast<std::size_t>(end_ - at_));
    if (order_) {
      std::copy_n(order_->begin() + at_, count, out.begin());
    } else {
      std::iota(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), at_);
    }
    at_ += static_cast<std::int64_t>(count);
    return count;
  }

  std::int64_t skip(std::int64_t count) override {
    const std::int64_t passed = std::min(count, end_ - at_);
    at_ += passed;
    return passed;
  }

  void visit_state(StateArchive& state) override {
    state.stage("TensorSlice");
    state.value(at_);
    state.require(at_ >= begin_ && at_ <= end_, "its place is outside the rows");
  }

 private:
  const RowTable& table_;
  const std::vector<std::int64_t>* order_;
  const std::int64_t begin_;
  std::int64_t at_;
  const std::int64_t end_;
};

}  // namespace

std::unique_ptr<IteratorBase> TensorSlicesDataset::make_iterator(
    const IterationContext& context) const {
  return apply_file_shard(std::make_unique<SlicesIterator>(*table_, order_.get(), range_),
                          cardinality(), context);
}

Tensor TensorSlicesDataset::as_op() const {
  Element rows;
  if (!order_ && range_.begin == 0 && range_.end == table_->num_rows()) {
    rows = table_->tensors();
  } else {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = range_.begin; i < range_.end; ++i)
      numbers.push_back(order_ ? (*order_)[static_cast<std::size_t>(i)] : i);
    table_->gather(numbers, rows);
  }
  return dataset_op("TensorSliceDataset", rows, element_spec(), {}, "Toutput_types");
}

Dataset from_tensor_slices(std::vector<Tensor> components) {
  auto table = std::make_shared<const RowTable>(components);
  const RowRange all{0, table->num_rows()};
  return make_dataset<TensorSlicesDataset>(std::move(table), nullptr, all);
}

Dataset from_tensor_slices(Tensor tensor) {
  return from_tensor_slices(std::vector<Tensor>{std::move(tensor)});
}

}  // namespace tandem::data
