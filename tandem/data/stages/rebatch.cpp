#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/row_table.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"

namespace tandem::data {
namespace {

class RebatchIterator final : public UnaryIterator {
 public:
  RebatchIterator(std::unique_ptr<IteratorBase> input, const std::vector<std::int64_t>& sizes,
                  bool drop_remainder, IterationContext context)
      : UnaryIterator(std::move(input)),
        sizes_(sizes),
        drop_remainder_(drop_remainder),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    const std::int64_t size = sizes_[turn_];
    while (!input_ended_ && rows_ < size) {
      Kept batch;
      if (!input().next(batch.element)) {
        input_ended_ = true;
        break;
      }
      context_.check();
      const std::int64_t number = number_++;
      batch.origin = input().origin();
      try {
        check(batch.element);
      } catch (...) {
        const Origin first = batches_.empty() ? Origin() : batches_.front().origin;
        throw_stage_error("rebatch", number, describe_mismatch(batch.origin, first));
      }
      add(std::move(batch));
    }
    if (rows_ == 0 || (rows_ < size && drop_remainder_)) return false;
    origin_ = of_several(batches_.front().origin);
    give(std::min(size, rows_), out);
    turn_ = (turn_ + 1) % sizes_.size();
    return true;
  }

  Origin origin() const override { return origin_; }

  void visit_state(StateArchive& state) override {
    state.stage("Rebatch");
    std::vector<Kept> batches(batches_.begin(), batches_.end());
    std::int64_t used = used_;
    batches.resize(static_cast<std::size_t>(state.length(batches.size())));
    for (Kept& batch : batches) visit(state, batch);
    state.value(used);
    state.value(turn_);
    state.value(number_);
    state.value(input_ended_);
    state.require(turn_ < sizes_.size(), "it has more sizes");
    if (state.restoring()) {
      for (Kept& batch : batches) {
        check(batch.element);
        add(std::move(batch));
      }
      state.require(used >= 0 && used <= rows_, "its place is outside a batch");
      used_ = used;
      rows_ -= used;
    }
    input().visit_state(state);
  }

 private:
  void check(const Element& batch) const {
    for (const Tensor& tensor : batch) {
      if (tensor.rank() == 0) {
        throw InvalidArgumentError("Cannot rebatch an input with scalar components.");
      }
      if (tensor.dim(0) != batch.front().dim(0)) {
        throw InvalidArgumentError(
            cat("The components of a batch must have a matching leading dimension. Encountered "
                "both ",
                batch.front().dim(0), " and ", tensor.dim(0), "."));
      }
    }
    if (!batches_.empty()) check_alike(batches_.front().element, batch);
  }

  void add(Kept batch) {
    if (batch.element.empty() || batch.element.front().dim(0) == 0) return;
    rows_ += batch.element.front().dim(0);
    batches_.push_back(std::move(batch));
  }

  static void check_alike(const Element& a, const Element& b) {
    if (a.size() != b.size()) {
      throw InvalidArgumentError(cat("Cannot batch elements with different numbers of components, ",
                                     a.size(), " and ", b.size(), "."));
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      const Array &x = a[i].array(), &y = b[i].array();
      const auto row = [](const Array& array) { return Shape(array.shape().dims().subspan(1)); };
      if (x.dtype() == y.dtype() && row(x) == row(y)) continue;
      throw InvalidArgumentError(cat("Cannot batch tensors with different shapes in component ", i,
                                     ": the rows of one "
                                     "batch are ",
                                     x.dtype(), row(x), ", those of the next ", y.dtype(), row(y),
                                     "."));
    }
  }

  // The next `count` rows: a part of one batch shares its memory.
  void give(std::int64_t count, Element& out) {
    const Element& first = batches_.front().element;
    const std::int64_t in_first = first.front().dim(0) - used_;
    Element batch;
    if (count <= in_first) {
      for (const Tensor& t : first) batch.push_back(t.array().slice_outer(used_, used_ + count));
      used_ += count;
    } else {
      std::vector<Array> joined;
      for (const Tensor& t : first) {
        joined.emplace_back(t.dtype(), with_rows(count, Shape(t.shape().dims().subspan(1))));
      }
      for (std::int64_t done = 0; done < count;) {
        const Element& from = batches_.front().element;
        const std::int64_t rows = std::min(count - done, from.front().dim(0) - used_);
        for (std::size_t i = 0; i < from.size(); ++i) {
          const Array& array = from[i].array();
          const std::int64_t size = array.shape().product(1, array.rank());
          copy_elements(array, used_ * size, joined[i], done * size, rows * size);
        }
        done += rows;
        used_ += rows;
        pass_used();
      }
      for (Array& array : joined) batch.emplace_back(std::move(array));
    }
    rows_ -= count;
    pass_used();
    out = std::move(batch);
  }

  void pass_used() {
    if (batches_.empty() || used_ < batches_.front().element.front().dim(0)) return;
    batches_.pop_front();
    used_ = 0;
  }

  const std::vector<std::int64_t>& sizes_;
  const bool drop_remainder_;
  std::deque<Kept> batches_;  // none without rows
  std::int64_t used_ = 0;     // rows of the first one
  std::int64_t rows_ = 0;     // that are left in all
  std::size_t turn_ = 0;
  std::int64_t number_ = 0;
  bool input_ended_ = false;
  Origin origin_;  // of the batch last given
  IterationContext context_;
};

class RebatchDataset final : public UnaryDataset {
 public:
  RebatchDataset(DatasetRef input, std::vector<std::int64_t> sizes, bool drop_remainder)
      : UnaryDataset(std::move(input)), sizes_(std::move(sizes)), drop_remainder_(drop_remainder) {}
  std::string name() const override { return "Rebatch"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<RebatchIterator>(input().iterator(context), sizes_, drop_remainder_,
                                             context);
  }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      ElementSpec spec = input().element_spec();
      for (TensorSpec& s : spec) {
        if (s.shape.rank() > 0) {
          s.shape.set_dim(
              0, drop_remainder_ && sizes_.size() == 1 ? sizes_[0] : PartialShape::kUnknown);
        }
      }
      return spec;
    });
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n == 0 || n == kInfinite ? n : kUnknown;
  }

 private:
  const std::vector<std::int64_t> sizes_;
  const bool drop_remainder_;
  LazySpec spec_;
};

}  // namespace

Dataset Dataset::rebatch(std::int64_t size, BatchOptions options) const {
  return rebatch(std::vector<std::int64_t>{size}, options);
}

Dataset Dataset::rebatch(std::vector<std::int64_t> sizes, BatchOptions options) const {
  if (sizes.empty()) throw InvalidArgumentError("rebatch needs at least one batch size.");
  for (const std::int64_t size : sizes) {
    if (size <= 0) {
      throw InvalidArgumentError(cat("Batch size must be greater than zero, got ", size, "."));
    }
  }
  if (base_of(*this)->num_components() >= 0) {
    for (const TensorSpec& spec : base_->element_spec()) {
      if (spec.shape.rank() == 0) {
        throw InvalidArgumentError(cat("Cannot rebatch an input with scalar components: ",
                                       to_string(base_->element_spec()), "."));
      }
    }
  }
  return make_dataset<RebatchDataset>(base_, std::move(sizes), options.drop_remainder);
}

}  // namespace tandem::data
