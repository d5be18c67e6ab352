// RaggedTensorToTensor.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/ragged/ragged.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

constexpr int kFirstPartition = 3;
constexpr std::int64_t kNowhere = -1;

constexpr std::int64_t kMaxPlaces = std::int64_t{1} << 26;

// Values of one row, side by side, and the place of the first of them, or that they have none.
struct Run {
  std::int64_t count, place;
};

std::int64_t count_of(const std::vector<Run>& runs) {
  std::int64_t count = 0;
  for (const Run& run : runs) count += run.count;
  return count;
}

// The place of each value, those of a run being `step` apart.
std::vector<std::int64_t> places_of(const std::vector<Run>& runs, std::int64_t step) {
  std::vector<std::int64_t> places;
  places.reserve(static_cast<std::size_t>(count_of(runs)));
  for (const Run& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      places.push_back(run.place == kNowhere ? kNowhere : run.place + i * step);
    }
  }
  return places;
}

// How the rows of one axis are made of those of the next: row splits, or each value's row.
struct Partition {
  bool splits = true;
  std::vector<std::int64_t> numbers;

  std::int64_t longest() const {
    std::int64_t most = 0, begin = 0;
    const auto n = static_cast<std::int64_t>(numbers.size());
    for (std::int64_t i = 1; i <= n; ++i) {
      if (splits) {
        if (i < n) most = std::max(most, at(i) - at(i - 1));
      } else if (i == n || at(i) != at(i - 1)) {
        most = std::max(most, i - begin);
        begin = i;
      }
    }
    return most;
  }

  // The values in order, from the places of their rows: at most `width` of a row have a place.
  // There are `count` rows; those for which `rows` has no place have none.
  std::vector<Run> runs(const std::vector<std::int64_t>& rows, std::int64_t count,
                        std::int64_t width) const {
    std::vector<Run> found;
    const auto put = [&](std::int64_t row, std::int64_t length) {
      const auto r = static_cast<std::size_t>(row);
      const std::int64_t place = r < rows.size() ? rows[r] : kNowhere;
      const std::int64_t kept = place == kNowhere ? 0 : std::min(length, width);
      if (kept > 0) found.push_back({kept, place});
      if (length > kept) found.push_back({length - kept, kNowhere});
    };
    const auto n = static_cast<std::int64_t>(numbers.size());
    if (splits) {
      if (n - 1 > count) {
        throw InvalidArgumentError(
            cat("Row partition size is greater than output size: ", n - 1, " > ", count));
      }
      std::int64_t known = 0;
      for (std::int64_t row = 0; row + 1 < n; ++row) {
        const std::int64_t length = at(row + 1) - at(row);
        if (bounded && at(row + 1) > values) throw_too_few(at(row + 1));
        if (length > kMaxPlaces - known && values > kMaxPlaces) {
          throw ResourceExhaustedError(
              cat("Row ", row, " announces ", length, " values, more than are kept track of."));
        }
        put(row, std::min(length, values - known));
        if (length > values - known) break;
        known += length;
      }
      return found;
    }
    if (bounded && n > values) throw_too_few(n);
    for (std::int64_t i = 0, end = 0; i < n; i = end) {
      if (at(i) < 0 || at(i) >= count) {
        throw InvalidArgumentError(
            cat("Got value_rowid=", at(i), " which is not in [0, ", count, ")"));
      }
      for (end = i + 1; end < n && at(end) == at(i);) ++end;
      put(at(i), end - i);
    }
    return found;
  }

  // How many rows the partition speaks of: what announces more is not believed.
  std::int64_t rows() const {
    if (splits) return static_cast<std::int64_t>(numbers.size()) - 1;
    return numbers.empty()
               ? 0
               : std::max<std::int64_t>(*std::max_element(numbers.begin(), numbers.end()), -1) + 1;
  }

  std::int64_t values = 0;  ///< how many are to be placed
  bool bounded = false;     ///< there are no more

 private:
  std::int64_t at(std::int64_t i) const { return numbers[static_cast<std::size_t>(i)]; }
  [[noreturn]] void throw_too_few(std::int64_t wanted) const {
    throw InvalidArgumentError(
        cat("The partition is of ", wanted, " values, but there are ", values));
  }
};

struct Request {
  std::vector<Partition> partitions;
  std::int64_t rows = 0;
};

Request partitions_of(const KernelContext& c) {
  const auto& types = c.attr<std::vector<std::string>>("row_partition_types");
  const int given = c.num_inputs() - kFirstPartition;
  if (types.empty() || static_cast<int>(types.size()) != given) {
    throw InvalidArgumentError(
        cat("There are ", types.size(), " row_partition_types for ", given, " partitions"));
  }
  Request request;
  for (int i = 0; i < given; ++i) {
    const Array& numbers = c.input(kFirstPartition + i);
    const std::string& type = types[static_cast<std::size_t>(i)];
    if (i == 0 && numbers.num_elements() == 0) {
      throw InvalidArgumentError(
          "Invalid first partition input. Tensor requires at least one element.");
    }
    if (i == 0 && type == "FIRST_DIM_SIZE") {
      if (numbers.rank() != 0) {
        throw InvalidArgumentError(
            cat("The first partition must be a scalar, got shape ", numbers.shape()));
      }
      request.rows = integers_of(numbers).front();
      if (request.rows < 0) {
        throw InvalidArgumentError(cat("FIRST_DIM_SIZE is negative: ", request.rows));
      }
      continue;
    }
    if (type != "ROW_SPLITS" && (type != "VALUE_ROWIDS" || i == 0)) {
      throw InvalidArgumentError(cat("Cannot handle partition type ", type, " in place ", i));
    }
    if (numbers.rank() != 1) {
      throw InvalidArgumentError(cat("A partition must be a vector, got shape ", numbers.shape()));
    }
    if (i == 0) request.rows = numbers.num_elements() - 1;
    request.partitions.push_back({type == "ROW_SPLITS", integers_of(numbers)});
    const std::vector<std::int64_t>& all = request.partitions.back().numbers;
    const bool splits = request.partitions.back().splits;
    if (splits && (all.empty() || all.front() != 0 || !std::is_sorted(all.begin(), all.end()))) {
      throw InvalidArgumentError("Invalid row split size: it must begin with 0 and never fall.");
    }
    if (!splits && std::count(all.begin(), all.end(), std::numeric_limits<std::int64_t>::max())) {
      throw InvalidArgumentError("A row's number is too large.");
    }
  }
  return request;
}

void check_default(const Shape& fallback, const Shape& values) {
  if (values.rank() == 0) throw InvalidArgumentError("values must not be a scalar");
  const bool fits = [&] {
    if (fallback.rank() >= values.rank()) return false;
    for (int i = 1; i <= fallback.rank(); ++i) {
      const std::int64_t own = fallback[fallback.rank() - i];
      if (own != 1 && own != values[values.rank() - i]) return false;
    }
    return true;
  }();
  if (!fits) {
    throw InvalidArgumentError(cat("default_value.shape=", fallback,
                                   " and tensor.flat_values.shape=", values, " are incompatible"));
  }
}

Shape result_shape(const Array& asked, const Shape& values, const Request& request) {
  const auto ragged = static_cast<int>(request.partitions.size());
  std::vector<std::int64_t> dims = integers_of(asked);
  if (asked.rank() == 0 && dims.front() == -1) {
    dims.assign(static_cast<std::size_t>(ragged + values.rank()), -1);
  } else if (asked.rank() != 1) {
    throw InvalidArgumentError(
        cat("shape must be a vector, or the scalar -1; got shape ", asked.shape()));
  }
  if (static_cast<int>(dims.size()) != ragged + values.rank()) {
    throw InvalidArgumentError(cat("shape has ", dims.size(), " sizes, but values of shape ",
                                   values, " and ragged rank ", ragged, " ask for ",
                                   ragged + values.rank()));
  }
  Shape shape;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    std::int64_t size = dims[static_cast<std::size_t>(i)];
    if (size < -1) throw InvalidArgumentError(cat("Invalid dimension size: ", size));
    if (i > ragged) {
      const std::int64_t own = values[i - ragged];
      if (size >= 0 && size != own) {
        throw InvalidArgumentError(
            cat("Size ", i, " of shape is ", size, ", but that of values is ", own));
      }
      size = own;
    } else if (size < 0) {
      size = i == 0 ? request.rows : request.partitions[static_cast<std::size_t>(i - 1)].longest();
    }
    shape.add_dim(size);
  }
  return shape;
}

void to_tensor(KernelContext& c) {
  const Array &values = c.input(1), &fallback = c.input(2);
  Request request = partitions_of(c);
  check_default(fallback.shape(), values.shape());
  const auto ragged = static_cast<int>(request.partitions.size());
  Array& out = c.allocate_output(0, result_shape(c.input(0), values.shape(), request));
  const Shape& shape = out.shape();
  if (out.num_elements() == 0) return;
  // Without partitions the rows are the values.
  std::int64_t rows =
      std::min(request.rows, ragged > 0 ? request.partitions[0].rows() : values.shape()[0] + 1);
  std::vector<Run> runs{{std::min(rows, shape[0]), 0}};
  std::int64_t step = shape.product(1, ragged + 1);
  for (int i = 0; i < ragged; ++i) {
    Partition& partition = request.partitions[static_cast<std::size_t>(i)];
    partition.bounded = i + 1 == ragged;
    partition.values = partition.bounded
                           ? values.shape()[0]
                           : request.partitions[static_cast<std::size_t>(i + 1)].rows();
    runs = partition.runs(places_of(runs, step), rows, shape[i + 1]);
    rows = count_of(runs);
    step = shape.product(i + 2, ragged + 1);
  }
  if (count_of(runs) > values.shape()[0]) {
    throw InvalidArgumentError(cat("The partitions are of ", count_of(runs),
                                   " values, but there are ", values.shape()[0]));
  }
  const std::int64_t inner = values.shape().product(1, values.rank());
  with_element(values.dtype(), [&]<class T>() {
    const T *from = static_cast<const T*>(values.raw_data()),
            *unset = static_cast<const T*>(fallback.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    // A default value that is smaller than an element is broadcast over it.
    std::vector<std::int64_t> strides(static_cast<std::size_t>(values.rank()), 0);
    std::int64_t size = 1;
    for (int i = 1; i <= fallback.rank(); ++i) {
      const std::int64_t own = fallback.shape()[fallback.rank() - i];
      if (own != 1) strides[static_cast<std::size_t>(values.rank() - i)] = size;
      size *= own;
    }
    for (std::int64_t i = 0; i < inner; ++i) {
      std::int64_t rest = i, at = 0;
      for (int k = values.rank() - 1; k > 0; --k) {
        at += rest % values.shape()[k] * strides[static_cast<std::size_t>(k)];
        rest /= values.shape()[k];
      }
      to[i] = unset[at];
    }
    if (inner == 1) {
      fill_flat(c.intra_op(), out.dtype(), to, unset, out.num_elements());
    } else {
      for (std::int64_t i = 1; i < out.num_elements() / inner; ++i) {
        copy_elements(to + i * inner, to, inner);
      }
    }
    for (const Run& run : runs) {
      if (run.place != kNowhere) copy_elements(to + run.place * inner, from, run.count * inner);
      from += run.count * inner;
    }
  });
}

const KernelRegistration kToTensor{{.op = "RaggedTensorToTensor", .run = to_tensor}};

}  // namespace
}  // namespace tandem::cpu
