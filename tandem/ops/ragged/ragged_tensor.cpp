#include "tandem/ops/ragged_tensor.h"

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/ragged_functions.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/string_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

void check_splits(const Tensor& splits, std::int64_t count) {
  if (splits.dtype() != int32 && splits.dtype() != int64) {
    throw InvalidArgumentError(
        cat("RaggedTensor: row_splits must be int32 or int64, not ", splits.dtype(), "."));
  }
  const auto known = internal::known_ints(splits);
  if (!known) return;
  const auto fail = [&](const std::string& what) {
    throw InvalidArgumentError(
        cat("RaggedTensor: Arguments to from_row_splits do not form a valid RaggedTensor: ", what));
  };
  if (known->empty() || known->front() != 0) fail("row_splits must begin with 0.");
  for (std::size_t i = 1; i < known->size(); ++i) {
    if ((*known)[i] < (*known)[i - 1])
      fail(cat("row_splits descend from ", (*known)[i - 1], " to ", (*known)[i], "."));
  }
  if (count >= 0 && known->back() != count)
    fail(cat("row_splits end at ", known->back(), ", but there are ", count, " values."));
}

// The sums of lengths, from 0 on.
Tensor splits_of(const Tensor& lengths) {
  return concat({zeros({1}, lengths.dtype()), cumsum(lengths)}, 0);
}

}  // namespace

RaggedTensor RaggedTensor::from_nested_row_splits(Tensor flat_values, std::vector<Tensor> splits,
                                                  bool validate) {
  if (splits.empty()) throw InvalidArgumentError("RaggedTensor: it needs one row_splits at least.");
  RaggedTensor made;
  made.flat_values_ = std::move(flat_values);
  made.splits_ = std::move(splits);
  if (made.flat_values_.rank() == 0) {
    throw InvalidArgumentError(
        "RaggedTensor: the values must have rank 1 or more, but are a scalar. Put it in braces.");
  }
  if (!validate) return made;
  for (std::size_t i = 0; i < made.splits_.size(); ++i) {
    const bool last = i + 1 == made.splits_.size();
    const std::int64_t next =
        last ? (made.flat_values_.rank() > 0 ? made.flat_values_.dim(0) : -1)
             : made.splits_[i + 1].dim(0) - (made.splits_[i + 1].dim(0) > 0 ? 1 : 0);
    check_splits(made.splits_[i], next);
  }
  return made;
}
RaggedTensor RaggedTensor::from_row_splits(Tensor values, Tensor row_splits, bool validate) {
  return from_nested_row_splits(std::move(values), {std::move(row_splits)}, validate);
}
RaggedTensor RaggedTensor::from_row_splits(RaggedTensor values, Tensor row_splits, bool validate) {
  std::vector<Tensor> splits = values.splits_;
  splits.insert(splits.begin(), std::move(row_splits));
  return from_nested_row_splits(values.flat_values_, std::move(splits), validate);
}
RaggedTensor RaggedTensor::from_row_lengths(const Tensor& values, const Tensor& lengths,
                                            bool validate) {
  return from_row_splits(values, splits_of(lengths), validate);
}
RaggedTensor RaggedTensor::from_value_rowids(const Tensor& values, const Tensor& value_rowids,
                                             const Tensor& nrows) {
  return from_row_splits(
      values, ragged::segment_ids_to_row_splits(value_rowids, nrows, value_rowids.dtype()));
}
RaggedTensor RaggedTensor::from_row_starts(const Tensor& values, const Tensor& row_starts) {
  const Tensor end = reshape(cast(tandem::shape(values)[0], row_starts.dtype()), {1});
  return from_row_splits(values, concat({row_starts, end}, 0));
}
RaggedTensor RaggedTensor::from_row_limits(const Tensor& values, const Tensor& row_limits) {
  return from_row_splits(values, concat({zeros({1}, row_limits.dtype()), row_limits}, 0));
}
RaggedTensor RaggedTensor::from_uniform_row_length(const Tensor& values, std::int64_t row_length) {
  const Tensor count = cast(tandem::shape(values)[0], int64);
  const Tensor length(row_length);
  return from_row_splits(values, range(Tensor(std::int64_t{0}), count + length, length));
}

namespace {

// For each row, how many elements there are up to the last one that differs from the padding.
Tensor lengths_without(const Tensor& padding, const Tensor& tensor, const Tensor& columns) {
  if (padding.rank() > std::max(tensor.rank() - 2, 0)) {
    throw InvalidArgumentError(
        cat("RaggedTensor::from_tensor: padding must be a scalar or have "
            "the shape of an element of a row, but the tensor's shape is ",
            tensor.partial_shape(), " and the padding's ", padding.partial_shape(), "."));
  }
  Tensor differs = not_equal(tensor, cast(padding, tensor.dtype()));
  if (tensor.rank() > 2) {
    std::vector<std::int64_t> axes;
    for (int axis = 2; axis < tensor.rank(); ++axis) axes.push_back(axis);
    differs = reduce_any(differs, axes);
  }
  const Tensor one(std::int64_t{1});
  return reduce_max(cast(differs, int64) * range(one, columns + one, one), 1);
}

}  // namespace

RaggedTensor RaggedTensor::from_tensor(const Tensor& tensor, const FromTensorOptions& options) {
  const int ragged_rank = options.ragged_rank;
  if (ragged_rank < 1 || tensor.rank() < ragged_rank + 1) {
    throw InvalidArgumentError(
        cat("RaggedTensor::from_tensor: the tensor must have rank ",
            ragged_rank < 2 ? "2 or more" : cat(ragged_rank + 1, " or more"),
            ragged_rank < 1 ? cat(" and ragged_rank be positive, but that is ", ragged_rank) : "",
            ragged_rank > 1 ? cat(" for a ragged_rank of ", ragged_rank) : "",
            ", but its shape is ", tensor.partial_shape(), "."));
  }
  const Tensor sizes = tandem::shape(tensor, int64);
  if (ragged_rank > 1) {
    const Tensor rows = constant({-1}, int64);
    const Tensor flat =
        reshape(tensor, IntList(concat({rows, sizes[Slice(ragged_rank, none)]}, 0)));
    RaggedTensor result =
        from_tensor(flat, {.lengths = options.lengths, .padding = options.padding});
    for (int axis = ragged_rank - 1; axis > 0; --axis) {
      const Tensor length = sizes[axis];
      Tensor count = sizes[0];
      for (int outer = 1; outer < axis; ++outer) count = count * sizes[outer];
      result = from_row_splits(std::move(result),
                               splits_of(fill(IntList(reshape(count, {1})), length)), false);
    }
    return result;
  }
  Tensor lengths = options.lengths;
  if (options.padding.defined()) {
    if (lengths.defined()) {
      throw InvalidArgumentError(
          "RaggedTensor::from_tensor: Specify only one of lengths and padding; both say where "
          "rows end.");
    }
    lengths = lengths_without(options.padding, tensor, sizes[1]);
  }
  if (!lengths.defined()) {
    const Tensor flat = reshape(
        tensor, IntList(concat({reshape(sizes[0] * sizes[1], {1}), sizes[Slice(2, none)]}, 0)));
    return from_row_lengths(flat, fill(IntList(reshape(sizes[0], {1})), sizes[1]));
  }
  // As TensorFlow, which takes lengths below 0 for 0. Of no columns the largest length is the least
  // number there is.
  const Tensor counts = maximum(minimum(cast(lengths, int64), sizes[1]), Tensor(std::int64_t{0}));
  const Tensor mask =
      range(Tensor(std::int64_t{0}), sizes[1], Tensor(std::int64_t{1})) < expand_dims(counts, 1);
  return from_row_lengths(tandem::boolean_mask(tensor, mask), counts);
}

RaggedTensor RaggedTensor::from_sparse(const sparse::SparseTensor& x) {
  return from_value_rowids(x.values, x.indices[{ellipsis, 0}], x.dense_shape[0]);
}

PartialShape RaggedTensor::shape() const {
  std::vector<std::int64_t> dims;
  const std::int64_t splits = row_splits().dim(0);
  dims.push_back(splits < 0 ? -1 : splits - 1);
  for (std::size_t i = 0; i < splits_.size(); ++i) dims.push_back(-1);
  const PartialShape inner = flat_values_.partial_shape();
  if (!inner.has_rank()) return PartialShape::unknown();
  for (int axis = 1; axis < inner.rank(); ++axis) dims.push_back(inner.dim(axis));
  return PartialShape(dims);
}

const Tensor& RaggedTensor::row_splits() const {
  if (splits_.empty()) throw FailedPreconditionError("An undefined td::RaggedTensor was used.");
  return splits_.front();
}
const Tensor& RaggedTensor::values() const {
  if (splits_.size() > 1) {
    throw InvalidArgumentError(
        "RaggedTensor::values: the rows are ragged themselves; use ragged_values or flat_values.");
  }
  return flat_values_;
}
RaggedTensor RaggedTensor::ragged_values() const {
  return from_nested_row_splits(flat_values_, {splits_.begin() + 1, splits_.end()}, false);
}
Tensor RaggedTensor::nrows() const { return cast(size(row_splits()) - 1, row_splits().dtype()); }
Tensor RaggedTensor::row_starts() const { return row_splits()[Slice(none, -1)]; }
Tensor RaggedTensor::row_limits() const { return row_splits()[Slice(1, none)]; }
Tensor RaggedTensor::row_lengths() const { return row_limits() - row_starts(); }
Tensor RaggedTensor::value_rowids() const {
  return ragged::row_splits_to_segment_ids(row_splits(), row_splits().dtype());
}

Tensor RaggedTensor::bounding_shape() const {
  const DType type = row_splits().dtype();
  std::vector<Tensor> sizes{nrows()};
  for (const Tensor& splits : splits_) {
    const Tensor lengths = splits[Slice(1, none)] - splits[Slice(none, -1)];
    sizes.push_back(maximum(reduce_max(concat({zeros({1}, type), lengths}, 0)), 0));
  }
  return concat({stack(sizes), tandem::shape(flat_values_, type)[Slice(1, none)]}, 0);
}

RaggedTensor RaggedTensor::with_flat_values(Tensor flat_values) const {
  return from_nested_row_splits(std::move(flat_values), splits_, false);
}

namespace {

// As many values as the outermost splits are of.
void require_count(const RaggedTensor& tensor, std::int64_t given) {
  const PartialShape shape = tensor.ragged_rank() > 1 ? tensor.ragged_values().shape()
                                                      : tensor.flat_values().partial_shape();
  const std::int64_t now = shape.rank() > 0 ? shape.dim(0) : -1;
  if (now < 0 || given < 0 || now == given) return;
  throw InvalidArgumentError(cat("RaggedTensor::with_values: the row splits are of ", now,
                                 " values, but ", given, " are given."));
}

}  // namespace

RaggedTensor RaggedTensor::with_values(const Tensor& given) const {
  if (given.rank() > 0) require_count(*this, given.dim(0));
  return from_row_splits(given, row_splits(), false);
}

RaggedTensor RaggedTensor::with_values(const RaggedTensor& given) const {
  require_count(*this, given.shape().dim(0));
  return from_row_splits(given, row_splits(), false);
}

RowIterator<RaggedTensor> RaggedTensor::begin() const { return {*this, 0}; }

RowIterator<RaggedTensor> RaggedTensor::end() const {
  const std::int64_t splits = row_splits().dim(0);
  if (splits < 0) {
    throw FailedPreconditionError(
        "Cannot iterate over a RaggedTensor whose number of rows is not known while the function "
        "is traced. Use td::map_fn on its rows, or call td's functions on all of it.");
  }
  values();  // throws for rows that are ragged themselves
  return {*this, splits - 1};
}

Tensor RaggedTensor::to_tensor(Operand default_value,
                               const std::vector<std::int64_t>& shape) const {
  Tensor filler = dtype() == DType::kString && default_value.is_number()
                      ? Tensor("")
                      : std::move(default_value).take_as(dtype());
  std::vector<std::int64_t> wanted = shape;
  if (wanted.empty()) {
    const int rank = flat_values_.rank();
    wanted.assign(splits_.size() + static_cast<std::size_t>(rank < 1 ? 1 : rank), -1);
  }
  std::vector<Tensor> inputs{internal::int_vector(wanted, int64), flat_values_, std::move(filler)};
  std::vector<std::string> types;
  for (const Tensor& splits : splits_) {
    inputs.push_back(splits);
    types.emplace_back("ROW_SPLITS");
  }
  return raw_op("RaggedTensorToTensor", inputs,
                {{"row_partition_types", types},
                 {"num_row_partition_tensors", static_cast<std::int64_t>(splits_.size())}})[0];
}

sparse::SparseTensor RaggedTensor::to_sparse() const {
  std::vector<Tensor> inputs = splits_;
  inputs.push_back(flat_values_);
  auto parts = raw_op("RaggedTensorToSparse", inputs,
                      {{"RAGGED_RANK", static_cast<std::int64_t>(splits_.size())}});
  return {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

Tensor RaggedTensor::operator[](std::int64_t row) const {
  const Tensor& all = values();
  const Tensor start = row_starts()[row], limit = row_limits()[row];
  const Tensor size = reshape(cast(limit - start, int64), {1});
  const Tensor begin = reshape(cast(start, int64), {1});
  const int rank = all.rank();
  if (rank == 1) return slice(all, IntList(begin), IntList(size));
  const Tensor rest = tandem::shape(all, int64)[Slice(1, none)];
  return slice(all, IntList(concat({begin, zeros_like(rest)}, 0)),
               IntList(concat({size, rest}, 0)));
}

std::string RaggedTensor::to_string() const {
  if (!defined()) return "<undefined>";
  if (flat_values_.is_symbolic() || row_splits().is_symbolic())
    return cat("<symbolic ragged ", dtype(), shape(), ">");
  // Python's repr of lists: commas, and no padding of numbers.
  const std::function<std::string(const Tensor&)> dense = [&](const Tensor& t) -> std::string {
    if (t.rank() == 0) return t.to_string();
    std::string text;
    for (std::int64_t i = 0; i < t.dim(0); ++i) text += (i ? ", " : "") + dense(t[i]);
    return "[" + text + "]";
  };
  const std::function<std::string(std::size_t, std::int64_t, std::int64_t)> rows =
      [&](std::size_t depth, std::int64_t from, std::int64_t to) {
        std::string text;
        for (std::int64_t i = from; i < to; ++i) {
          if (i > from) text += ", ";
          if (depth == splits_.size()) {
            text += dense(flat_values_[i]);
          } else {
            const Tensor& splits = splits_[depth];
            text +=
                rows(depth + 1, splits[i].item<std::int64_t>(), splits[i + 1].item<std::int64_t>());
          }
        }
        return "[" + text + "]";
      };
  return "<tf.RaggedTensor " + rows(0, 0, row_splits().dim(0) - 1) + ">";
}

namespace {

// Rows as lists of Python, of which only the first and last ones are shown.
class RowsText {
 public:
  RowsText(const RaggedTensor& tensor, std::int64_t summarize)
      : tensor_(tensor), summarize_(summarize) {
    const Tensor& values = tensor.flat_values();
    quoted_ = values.dtype() == DType::kString;
    texts_ = (quoted_ ? values : strings::as_string(values)).to_vector<std::string>();
  }

  std::string all() const { return rows(0, 0, tensor_.row_splits().dim(0) - 1); }

 private:
  // Rows [from, to) of this ragged axis, or of the values.
  std::string rows(std::size_t depth, std::int64_t from, std::int64_t to) const {
    return list(from, to, [&](std::int64_t i) {
      const auto& splits = tensor_.nested_row_splits();
      if (depth == splits.size()) return dense(1, i);
      const auto limit = [&](std::int64_t k) { return splits[depth][k].item<std::int64_t>(); };
      return rows(depth + 1, limit(i), limit(i + 1));
    });
  }
  // Element i of the flat values' first `axis` axes.
  std::string dense(int axis, std::int64_t i) const {
    const Shape& shape = tensor_.flat_values().shape();
    if (axis == shape.rank()) return element(texts_[static_cast<std::size_t>(i)]);
    return list(i * shape[axis], (i + 1) * shape[axis],
                [&](std::int64_t k) { return dense(axis + 1, k); });
  }
  std::string element(const std::string& text) const {
    if (!quoted_) return text;
    std::string escaped = "'";
    for (const char c : text) {
      if (c == '\'' || c == '\\') escaped += '\\';
      escaped += c;
    }
    return escaped + "'";
  }
  template <class F>
  std::string list(std::int64_t from, std::int64_t to, const F& element) const {
    const bool all = summarize_ < 0 || to - from <= 2 * summarize_;
    std::string text;
    for (std::int64_t i = from; i < to; ++i) {
      const bool gap = !all && i == from + summarize_;
      if (gap) i = to - summarize_;
      text += cat(text.empty() ? "" : ", ", gap ? "..., " : "", element(i));
    }
    return "[" + text + "]";
  }

  const RaggedTensor& tensor_;
  std::int64_t summarize_;
  bool quoted_;
  std::vector<std::string> texts_;
};

}  // namespace

void append_printed(internal::PrintedArguments& arguments, const RaggedTensor& tensor) {
  if (!tensor.defined()) return arguments.append_text("<undefined>");
  const auto& splits = tensor.nested_row_splits();
  const auto symbolic = [](const Tensor& t) { return t.is_symbolic(); };
  if (!symbolic(tensor.flat_values()) && std::none_of(splits.begin(), splits.end(), symbolic))
    return arguments.append_text(RowsText(tensor, arguments.summarize()).all());
  arguments.append_text("RaggedTensor(values=");
  arguments.append_tensor(tensor.flat_values());
  for (const Tensor& rows : splits) {
    arguments.append_text(", row_splits=");
    arguments.append_tensor(rows);
  }
  arguments.append_text(")");
}

std::ostream& operator<<(std::ostream& out, const RaggedTensor& tensor) {
  return out << tensor.to_string();
}

}  // namespace tandem
