#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/batch_rows.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/sources/fetch_batch.h"
#include "tandem/data/sources/files.h"
#include "tandem/data/stages/dataset_op.h"
#include "tandem/data/stages/parallel_batch.h"
#include "tandem/data/stages/stacker.h"

namespace tandem::data {
namespace {

// The texts of the last batches, `count` each. Those of a batch that nothing has any more become
// the next one's, which then needs no memory of its own for each.
class SpareTexts {
 public:
  explicit SpareTexts(std::int64_t count) : count_(count) {}

  // Takes an array of any content.
  Array take() {
    for (Array& array : kept_) {
      if (array.writable_in_place()) return std::exchange(array, Array());
    }
    return Array(DType::kString, Shape{count_});
  }
  void keep(const Array& array) {
    if (array.dim(0) != count_) return;
    std::size_t bytes = 0;
    for (const std::string& text : array.values<std::string>()) {
      bytes += sizeof(text) + text.capacity();
    }
    if (bytes > kMaxBytes) return;
    kept_[next_] = array;
    next_ = (next_ + 1) % kept_.size();
  }

 private:
  static constexpr std::size_t kMaxBytes = 4 << 20;  // of one batch
  const std::int64_t count_;
  std::array<Array, 4> kept_;  // as many as a short prefetch holds
  std::size_t next_ = 0;
};

class BatchIterator final : public UnaryIterator {
 public:
  BatchIterator(std::unique_ptr<IteratorBase> input, std::int64_t size, bool drop_remainder,
                IterationContext context)
      : UnaryIterator(std::move(input)),
        context_(std::move(context)),
        size_(size),
        drop_remainder_(drop_remainder),
        texts_(dynamic_cast<TextSource*>(&this->input())) {
    if (texts_ && !texts_->gives_texts()) texts_ = nullptr;
  }

  bool next(Element& out) override {
    if (ended_) return false;
    ++number_;
    if (texts_) return join_texts(out);
    return input().rows() ? gather(*input().rows(), out) : stack(out);
  }

  Origin origin() const override { return of_several(first_); }

  void visit_state(StateArchive& state) override {
    state.stage(cat("Batch of ", size_));
    rows_.visit_state(state, ended_, input().rows());
    state.value(number_);
    input().visit_state(state);
  }

 private:
  // Rows of tensors in memory go straight into the batch.
  bool gather(const RowTable& table, Element& out) {
    const std::span<const std::int64_t> numbers = rows_.draw(input(), context_);
    const auto count = static_cast<std::int64_t>(numbers.size());
    rows_.taken();
    const bool some = keep(count);
    if (some) table.gather(numbers, out);
    return some;
  }

  // Texts are read into their places, as `stack` would put them there.
  bool join_texts(Element& out) {
    out.clear();
    Array rows = spare_texts_.take();
    std::exception_ptr error;
    std::int64_t drawn = 0;
    for (; drawn < size_; ++drawn) {
      if (drawn == rows.dim(0)) {
        Array larger(DType::kString, Shape{drawn > size_ / 2 ? size_ : 2 * drawn});
        std::move(rows.data<std::string>(), rows.data<std::string>() + drawn,
                  larger.data<std::string>());
        rows = std::move(larger);
      }
      context_.check();
      try {
        if (!texts_->next_text(rows.data<std::string>()[drawn])) break;
        if (drawn == 0) first_ = input().origin();
      } catch (const CancelledError&) {
        throw;
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    if (error) {
      ended_ = drawn < size_;
      std::rethrow_exception(error);
    }
    if (!keep(drawn)) return false;
    out.assign(1, Tensor(drawn == rows.dim(0) ? rows : rows.slice_outer(0, drawn)));
    spare_texts_.keep(rows);
    return true;
  }

  bool stack(Element& out) {
    Stacker stacker(size_);
    fetch_batch(input(), context_, size_, ended_, [&](Element& element) {
      if (stacker.size() == 0) first_ = input().origin();
      try {
        stacker.add(element);
      } catch (...) {
        throw_stage_error("batch", number_ - 1, describe_mismatch(input().origin(), first_));
      }
    });
    if (!keep(stacker.size())) return false;
    stacker.finish(out);
    return true;
  }

  bool is_batch(std::int64_t count) const {
    return count == size_ || (count > 0 && !drop_remainder_);
  }
  bool keep(std::int64_t count) {
    ended_ = count < size_;
    return is_batch(count);
  }

  static constexpr std::int64_t kAtOnce = 1 << 16;  // texts for which there is room from the start

  const IterationContext context_;
  const std::int64_t size_;
  const bool drop_remainder_;
  TextSource* texts_;  // null: the input gives none
  Origin first_;       // of the batch's first element
  bool ended_ = false;
  std::int64_t number_ = 0;  // batches so far, with the one being made
  BatchRows rows_{size_};
  SpareTexts spare_texts_{std::min(size_, kAtOnce)};
};

class BatchDataset final : public UnaryDataset, public FusedStage {
 public:
  BatchDataset(DatasetRef input, std::int64_t size, bool drop_remainder,
               std::shared_ptr<const FusedBatchChoice> fused = nullptr)
      : UnaryDataset(std::move(input)),
        size_(size),
        drop_remainder_(drop_remainder),
        fused_(std::move(fused)) {}

  std::string name() const override { return "Batch"; }
  Tensor as_op() const override {
    return dataset_op("BatchDatasetV2", {input().as_op(), Tensor(size_), Tensor(drop_remainder_)},
                      element_spec());
  }
  const DatasetBase* runs_as() const override { return fused_ ? fused_->get() : nullptr; }
  std::string parameters() const override {
    return cat("size=", size_, " drop_remainder=", drop_remainder_);
  }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    if (context.options().fusion.value_or(true)) {
      if (const DatasetBase* fused = runs_as()) return fused->iterator(context);
    }
    return std::make_unique<BatchIterator>(input().iterator(context), size_, drop_remainder_,
                                           context);
  }

  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      ElementSpec spec = input().element_spec();
      for (TensorSpec& s : spec) {
        if (!s.shape.has_rank()) continue;
        std::vector<std::int64_t> dims = s.shape.dims();
        dims.insert(dims.begin(), drop_remainder_ ? size_ : PartialShape::kUnknown);
        s.shape = PartialShape(std::move(dims));
      }
      return spec;
    });
  }

  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (n < 0) return n;
    return n / size_ + (n % size_ == 0 || drop_remainder_ ? 0 : 1);
  }

 private:
  const std::int64_t size_;
  const bool drop_remainder_;
  const std::shared_ptr<const FusedBatchChoice> fused_;  // null: the input is no map
  LazySpec spec_;
};

class UnbatchIterator final : public UnaryIterator {
 public:
  UnbatchIterator(std::unique_ptr<IteratorBase> input, IterationContext context)
      : UnaryIterator(std::move(input)), context_(std::move(context)) {}

  bool next(Element& out) override {
    while (at_ == count_) {
      context_.check();
      if (!input().next(batch_)) return false;
      const std::int64_t number = number_++;
      try {
        check();
      } catch (...) {
        throw_stage_error("unbatch", number, origin_text(input().origin()));
      }
    }
    out.clear();
    for (const Tensor& tensor : batch_) {
      const Array& rows = tensor.array();
      const Shape row(rows.shape().dims().subspan(1));
      const auto at = static_cast<std::size_t>(at_ * row.num_elements()) * dtype_size(rows.dtype());
      out.emplace_back(
          Array(rows.dtype(), row, rows.buffer(), static_cast<std::byte*>(rows.raw_data()) + at));
    }
    ++at_;
    return true;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Unbatch");
    state.value(number_);
    std::int64_t at = at_;
    state.value(batch_);
    state.value(at);
    if (state.restoring()) {
      check();
      state.require(at >= 0 && at <= count_, "its place is outside a batch");
      at_ = at;
    }
    input().visit_state(state);
  }

 private:
  void check() {
    at_ = count_ = 0;
    std::int64_t count = 0;
    for (const Tensor& tensor : batch_) {
      if (tensor.rank() == 0) {
        throw InvalidArgumentError("Cannot unbatch an input with scalar components.");
      }
      if (&tensor != &batch_.front() && tensor.dim(0) != count) {
        throw InvalidArgumentError(
            cat("`unbatch()` is only supported for datasets of elements whose components have a "
                "matching leading dimension. Encountered both ",
                count, " and ", tensor.dim(0), "."));
      }
      count = tensor.dim(0);
    }
    count_ = count;
  }

  const IterationContext context_;
  Element batch_;
  std::int64_t at_ = 0;
  std::int64_t count_ = 0;
  std::int64_t number_ = 0;  // batches so far
};

class UnbatchDataset final : public UnaryDataset {
 public:
  using UnaryDataset::UnaryDataset;
  std::string name() const override { return "Unbatch"; }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<UnbatchIterator>(input().iterator(context), context);
  }

  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      ElementSpec spec = input().element_spec();
      for (TensorSpec& s : spec) {
        if (s.shape.rank() <= 0) continue;
        s.shape = PartialShape(
            std::vector<std::int64_t>(s.shape.dims().begin() + 1, s.shape.dims().end()));
      }
      return spec;
    });
  }

  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (n == 0 || n == kInfinite) return n;
    if (input().num_components() <= 0) return kUnknown;
    const PartialShape& shape = input().element_spec().front().shape;
    if (n < 0 || shape.rank() <= 0 || shape.dim(0) < 0) return kUnknown;
    return checked_multiply(n, shape.dim(0));
  }

 private:
  LazySpec spec_;
};

}  // namespace

Dataset Dataset::batch(std::int64_t size, BatchOptions options) const {
  if (size <= 0) {
    throw InvalidArgumentError(cat("Batch size must be greater than zero, got ", size, "."));
  }
  if (options.num_parallel_calls != 0) return parallel_batch(*this, size, options);
  const DatasetRef& input = base_of(*this);
  return make_dataset<BatchDataset>(input, size, options.drop_remainder,
                                    fuse_map_and_batch(input, size, options.drop_remainder));
}

DatasetRef plain_batch(const DatasetRef& input, std::int64_t size, bool drop_remainder) {
  return std::make_shared<const BatchDataset>(input, size, drop_remainder);
}

Dataset Dataset::unbatch() const {
  const DatasetRef& input = base_of(*this);
  if (input->num_components() >= 0) {
    for (const TensorSpec& spec : input->element_spec()) {
      if (spec.shape.rank() == 0) {
        throw InvalidArgumentError(cat("Cannot unbatch an input with scalar components: ",
                                       to_string(input->element_spec()), "."));
      }
    }
  }
  return make_dataset<UnbatchDataset>(input);
}

}  // namespace tandem::data
