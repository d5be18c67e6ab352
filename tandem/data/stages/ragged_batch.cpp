#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/data/dataset.h"
#include "tandem/data/dataset_base.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::data {
namespace {

// How the elements of a batch become one element; the number of the one that does not fit.
class Joiner {
 public:
  virtual ~Joiner() = default;
  virtual Element join(const std::vector<Element>& elements, std::size_t& misfit) const = 0;
  virtual ElementSpec spec(const ElementSpec& input, std::int64_t rows) const = 0;
};

class RaggedJoiner final : public Joiner {
 public:
  explicit RaggedJoiner(DType splits) : splits_dtype_(splits) {}

  Element join(const std::vector<Element>& elements, std::size_t& misfit) const override {
    Element out;
    for (std::size_t c = 0; c < elements[0].size(); ++c) {
      std::vector<Tensor> rows;
      std::vector<std::int64_t> splits{0};
      for (std::size_t i = 0; i < elements.size(); ++i) {
        misfit = i;
        if (elements[i].size() != elements[0].size())
          throw InvalidArgumentError(cat("it has ", elements[i].size(), " components instead of ",
                                         elements[0].size(), "."));
        const Tensor& row = elements[i][c];
        check_row(row, elements[0][c], c);
        rows.push_back(row);
        if (row.rank() > 0) splits.push_back(splits.back() + row.dim(0));
      }
      if (elements[0][c].rank() == 0) {
        out.push_back(stack(rows));
        continue;
      }
      out.push_back(concat(rows, 0));
      out.push_back(cast(Tensor(splits), splits_dtype_));
    }
    return out;
  }
  ElementSpec spec(const ElementSpec& input, std::int64_t rows) const override {
    ElementSpec spec;
    for (const TensorSpec& component : input) {
      if (!component.shape.has_rank()) return {};
      std::vector<std::int64_t> dims(component.shape.dims().begin(), component.shape.dims().end());
      if (dims.empty()) {
        spec.push_back({component.dtype, PartialShape({rows})});
        continue;
      }
      dims[0] = PartialShape::kUnknown;
      spec.push_back({component.dtype, PartialShape(dims)});
      spec.push_back({splits_dtype_, PartialShape({rows < 0 ? PartialShape::kUnknown : rows + 1})});
    }
    return spec;
  }

 private:
  static void check_row(const Tensor& row, const Tensor& first, std::size_t component) {
    const std::vector<std::int64_t> a = row.shape().to_vector(), b = first.shape().to_vector();
    const bool fits = row.dtype() == first.dtype() && a.size() == b.size() &&
                      (a.empty() || std::equal(a.begin() + 1, a.end(), b.begin() + 1));
    if (fits) return;
    throw InvalidArgumentError(cat("component ", component, " has ", row.dtype(), row.shape(),
                                   ", which may differ from the first's, ", first.dtype(),
                                   first.shape(), ", in its first size alone."));
  }
  const DType splits_dtype_;
};

class SparseJoiner final : public Joiner {
 public:
  explicit SparseJoiner(PartialShape row_shape) : row_shape_(std::move(row_shape)) {}

  Element join(const std::vector<Element>& elements, std::size_t& misfit) const override {
    const std::size_t rank = row_shape_.dims().size();
    std::vector<Tensor> indices, values;
    std::vector<std::int64_t> shape(row_shape_.dims().begin(), row_shape_.dims().end());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      misfit = i;
      const Tensor& row = elements[i].at(0);
      const std::vector<std::int64_t> dims = row.shape().to_vector();
      bool fits =
          elements[i].size() == 1 && dims.size() == rank && row.dtype() == elements[0][0].dtype();
      for (std::size_t d = 0; fits && d < rank; ++d) {
        if (row_shape_.dims()[d] < 0) {
          shape[d] = std::max(shape[d], dims[d]);
        } else {
          fits = dims[d] <= row_shape_.dims()[d];
        }
      }
      if (!fits) {
        throw InvalidArgumentError(cat("it must be one component of ", elements[0][0].dtype(),
                                       " within row_shape ", row_shape_, ", but is ", row.dtype(),
                                       row.shape(), "."));
      }
      const Tensor places = where(fill(IntList(dims), Tensor(true)));
      const Tensor number = fill(IntList({places.dim(0), 1}), Tensor(static_cast<std::int64_t>(i)));
      indices.push_back(concat({number, places}, 1));
      values.push_back(gather_nd(row, places));
    }
    shape.insert(shape.begin(), static_cast<std::int64_t>(elements.size()));
    return {concat(indices, 0), concat(values, 0), Tensor(shape)};
  }
  ElementSpec spec(const ElementSpec& input, std::int64_t) const override {
    if (input.size() != 1) return {};
    const auto rank = static_cast<std::int64_t>(row_shape_.dims().size()) + 1;
    return {{int64, PartialShape({PartialShape::kUnknown, rank})},
            {input[0].dtype, PartialShape({PartialShape::kUnknown})},
            {int64, PartialShape({rank})}};
  }

 private:
  const PartialShape row_shape_;
};

class JoinIterator final : public UnaryIterator {
 public:
  JoinIterator(std::unique_ptr<IteratorBase> input, const char* stage, std::int64_t size,
               bool drop_remainder, const Joiner& joiner, IterationContext context)
      : UnaryIterator(std::move(input)),
        stage_(stage),
        size_(size),
        drop_remainder_(drop_remainder),
        joiner_(joiner),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    if (ended_) return false;
    origins_.clear();
    std::vector<Element> elements;
    while (static_cast<std::int64_t>(elements.size()) < size_) {
      Element element;
      if (!input().next(element)) {
        ended_ = true;
        break;
      }
      origins_.add(elements.size(), input().origin());
      elements.push_back(std::move(element));
      context_.check();
    }
    if (elements.empty() || (ended_ && drop_remainder_)) return false;
    const std::int64_t number = number_++;
    std::size_t misfit = 0;
    try {
      out = joiner_.join(elements, misfit);
    } catch (...) {
      throw_stage_error(
          stage_, number,
          describe_mismatch(origins_.at(misfit), misfit == 0 ? Origin() : origins_.at(0)));
    }
    return true;
  }

  Origin origin() const override { return of_several(origins_.at(0)); }

  void visit_state(StateArchive& state) override {
    state.stage(cat(stage_, " of ", size_));
    state.value(ended_);
    state.value(number_);
    input().visit_state(state);
  }

 private:
  const char* const stage_;
  const std::int64_t size_;
  const bool drop_remainder_;
  const Joiner& joiner_;
  Origins origins_;  // of the batch's elements
  bool ended_ = false;
  std::int64_t number_ = 0;
  const IterationContext context_;
};

class JoinDataset final : public UnaryDataset {
 public:
  JoinDataset(DatasetRef input, const char* name, const char* stage, std::int64_t size,
              bool drop_remainder, std::unique_ptr<const Joiner> joiner)
      : UnaryDataset(std::move(input)),
        name_(name),
        stage_(stage),
        size_(size),
        drop_remainder_(drop_remainder),
        joiner_(std::move(joiner)) {}
  std::string name() const override { return name_; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<JoinIterator>(input().iterator(context), stage_, size_, drop_remainder_,
                                          *joiner_, context);
  }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      return joiner_->spec(input().element_spec(),
                           drop_remainder_ ? size_ : PartialShape::kUnknown);
    });
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (n < 0) return n;
    return n / size_ + (n % size_ == 0 || drop_remainder_ ? 0 : 1);
  }

 private:
  const char* const name_;
  const char* const stage_;
  const std::int64_t size_;
  const bool drop_remainder_;
  const std::unique_ptr<const Joiner> joiner_;
  LazySpec spec_;
};

void require_size(std::int64_t size) {
  if (size > 0) return;
  throw InvalidArgumentError(cat("Batch size must be greater than zero, got ", size, "."));
}

}  // namespace

Dataset Dataset::ragged_batch(std::int64_t size, RaggedBatchOptions options) const {
  require_size(size);
  if (options.row_splits_dtype != DType::kInt64 && options.row_splits_dtype != DType::kInt32) {
    throw InvalidArgumentError(cat("ragged_batch: row_splits_dtype must be int32 or int64, got ",
                                   options.row_splits_dtype, "."));
  }
  return make_dataset<JoinDataset>(base_of(*this), "RaggedBatch", "ragged_batch", size,
                                   options.drop_remainder,
                                   std::make_unique<RaggedJoiner>(options.row_splits_dtype));
}

Dataset Dataset::sparse_batch(std::int64_t size, PartialShape row_shape) const {
  require_size(size);
  if (!row_shape.has_rank()) throw InvalidArgumentError("sparse_batch: row_shape needs a rank.");
  return make_dataset<JoinDataset>(base_of(*this), "SparseBatch", "sparse_batch", size, false,
                                   std::make_unique<SparseJoiner>(std::move(row_shape)));
}

}  // namespace tandem::data
