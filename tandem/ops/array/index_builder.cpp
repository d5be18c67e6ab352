#include "tandem/ops/internal/index_builder.h"

#include <limits>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"

namespace tandem {
namespace internal {
namespace {

std::int64_t after(std::int64_t i) {
  return i == std::numeric_limits<std::int64_t>::max() ? i : i + 1;
}

}  // namespace

IndexBuilder::IndexBuilder(std::span<const Index> entries) {
  if (entries.size() >= 32) {
    throw InvalidArgumentError(
        cat("td::index takes fewer than 32 entries but got ", entries.size(), "."));
  }
  for (std::size_t i = 0; i < entries.size(); ++i) add(entries[i], static_cast<int>(i));
}

void IndexBuilder::add(const Index& entry, int i) {
  const std::int64_t bit = std::int64_t{1} << i;
  switch (entry.kind()) {
    case Index::Kind::kEllipsis: options_.ellipsis_mask |= bit; return add(0, 0, 1);
    case Index::Kind::kNewAxis: options_.new_axis_mask |= bit; return add(0, 0, 1);
    case Index::Kind::kInteger:
      options_.shrink_axis_mask |= bit;
      return add(entry.integer(), after(entry.integer()), 1);
    case Index::Kind::kTensor:
      if (entry.tensor().dtype() == DType::kBool || entry.tensor().rank() > 0) {
        throw InvalidArgumentError(
            cat("Entry ", i, " of an index is a ", entry.tensor().dtype(), " tensor of shape ",
                entry.tensor().partial_shape(),
                ": among several entries a tensor is an integer scalar. A mask or a vector of row "
                "numbers stands alone: x[mask], td::boolean_mask, td::gather."));
      }
      options_.shrink_axis_mask |= bit;
      computed_.emplace_back(i, entry.tensor());
      return add(0, 1, 1);
    case Index::Kind::kSlice: {
      const Slice& s = entry.slice();
      if (!s.begin) options_.begin_mask |= bit;
      if (!s.end) options_.end_mask |= bit;
      return add(s.begin.value_or(0), s.end.value_or(0), s.step);
    }
  }
}

void IndexBuilder::add(std::int64_t begin, std::int64_t end, std::int64_t stride) {
  begin_.push_back(begin);
  end_.push_back(end);
  strides_.push_back(stride);
}

Tensor IndexBuilder::with_computed(const std::vector<std::int64_t>& written,
                                   std::int64_t plus) const {
  if (computed_.empty()) return int_vector(written, DType::kInt64);
  std::vector<Tensor> all;
  for (std::int64_t v : written) all.emplace_back(v);
  for (const auto& [i, value] : computed_) {
    const Tensor wide = value.dtype() == DType::kInt64 ? value : cast(value, DType::kInt64);
    all[static_cast<std::size_t>(i)] = plus ? wide + Tensor(plus) : wide;
  }
  return stack(all);
}

Tensor IndexBuilder::strides() const { return int_vector(strides_, DType::kInt64); }

AttrMap IndexBuilder::masks() const {
  return {{"begin_mask", options_.begin_mask},
          {"end_mask", options_.end_mask},
          {"ellipsis_mask", options_.ellipsis_mask},
          {"new_axis_mask", options_.new_axis_mask},
          {"shrink_axis_mask", options_.shrink_axis_mask}};
}

Tensor IndexBuilder::of(Tensor t) const {
  if (written()) return strided_slice(std::move(t), begin_, end_, strides_, options_);
  return strided_slice(std::move(t), begin(), end(), strides(), options_);
}

}  // namespace internal

Tensor index(Tensor t, std::span<const Index> entries) {
  return internal::IndexBuilder(entries).of(std::move(t));
}

Tensor index(Tensor t, std::initializer_list<Index> entries) {
  return index(std::move(t), std::span<const Index>(entries.begin(), entries.size()));
}

Tensor Tensor::operator[](const Index& entry) const {
  if (entry.kind() == Index::Kind::kTensor) {
    const Tensor& t = entry.tensor();
    if (t.dtype() == DType::kBool) return boolean_mask(*this, t);
    if (t.rank() > 0) return gather(*this, t);
  }
  return index(*this, std::span<const Index>(&entry, 1));
}

Tensor Tensor::operator[](std::initializer_list<Index> entries) const {
  if (entries.size() == 1) return (*this)[*entries.begin()];
  return index(*this, entries);
}

RowIterator<Tensor> Tensor::begin() const { return {*this, 0}; }

RowIterator<Tensor> Tensor::end() const {
  if (rank() == 0) {
    throw InvalidArgumentError(
        cat("Cannot iterate over a scalar tensor, ", dtype(), "[]. Its value is t.item<T>()."));
  }
  const std::int64_t rows = rank() > 0 ? dim(0) : -1;
  if (rows < 0) {
    throw FailedPreconditionError(
        cat("Cannot iterate over a tensor with unknown first dimension, ", dtype(), partial_shape(),
            ": a loop of C++ is unrolled while a function is traced. Use td::map_fn or "
            "td::while_loop, or give the function an input signature with that size."));
  }
  return {*this, rows};
}

}  // namespace tandem
