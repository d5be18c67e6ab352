// Ragged arrays: RaggedGather, RaggedRange, RaggedTensorToSparse.

#include "tandem/kernels/cpu/ragged/ragged.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/gather.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {

std::vector<std::int64_t> integers_of(const Array& array) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(array.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = index_at(array.dtype(), array.raw_data(), static_cast<std::int64_t>(i));
  }
  return values;
}

std::vector<std::vector<std::int64_t>> nested_splits(const KernelContext& c, int count,
                                                     std::int64_t values) {
  std::vector<std::vector<std::int64_t>> all;
  for (int i = 0; i < count; ++i) {
    const Array& input = c.input(i);
    if (input.rank() != 1 || input.num_elements() == 0) {
      throw InvalidArgumentError(
          cat("Ragged splits must be a vector that is not empty, got shape ", input.shape()));
    }
    all.push_back(integers_of(input));
    if (all.back().front() != 0) {
      throw InvalidArgumentError(
          cat("First value of ragged splits must be 0, not ", all.back().front()));
    }
    if (!std::is_sorted(all.back().begin(), all.back().end())) {
      throw InvalidArgumentError("Ragged splits must be sorted");
    }
    const std::int64_t rows = i + 1 == count ? values : c.input(i + 1).num_elements() - 1;
    if (all.back().back() != rows) {
      throw InvalidArgumentError(
          cat("Final value of ragged splits must match the length of the "
              "corresponding ragged values: ",
              all.back().back(), " is not ", rows));
    }
  }
  return all;
}

namespace {
void check_fits_int32(std::int64_t split) {
  if (split <= std::numeric_limits<std::int32_t>::max()) return;
  throw InvalidArgumentError(
      cat("A row split of ", split, " does not fit int32: use int64 splits."));
}
}  // namespace

void set_integers(KernelContext& c, int output, const std::vector<std::int64_t>& values) {
  Array& out = c.allocate_output(output, Shape{static_cast<std::int64_t>(values.size())});
  if (out.dtype() == DType::kInt64) {
    std::copy(values.begin(), values.end(), out.data<std::int64_t>());
    return;
  }
  auto* to = out.data<std::int32_t>();
  for (const std::int64_t value : values) {
    check_fits_int32(value);
    *to++ = static_cast<std::int32_t>(value);
  }
}

void set_even_splits(KernelContext& c, int output, std::int64_t rows, std::int64_t length) {
  const std::int64_t end = checked_multiply(rows, length);
  if (rows == std::numeric_limits<std::int64_t>::max()) {
    throw ResourceExhaustedError(cat("Out of host memory for the splits of ", rows, " rows."));
  }
  Array& out = c.allocate_output(output, Shape{rows + 1});
  if (out.dtype() == DType::kInt64) {
    for (std::int64_t i = 0; i <= rows; ++i) out.data<std::int64_t>()[i] = i * length;
    return;
  }
  check_fits_int32(end);
  for (std::int64_t i = 0; i <= rows; ++i) {
    out.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * length);
  }
}

Shape with_rows(const Shape& shape, std::int64_t rows) {
  Shape changed{rows};
  for (int i = 1; i < shape.rank(); ++i) changed.add_dim(shape[i]);
  return changed;
}

namespace {

void gather(KernelContext& c) {
  const int nested = c.num_inputs() - 2;
  const Array &values = c.input(nested), &indices = c.input(nested + 1);
  if (values.rank() == 0) throw InvalidArgumentError("params.rank must be nonzero");
  const auto splits = nested_splits(c, nested, values.shape()[0]);
  const std::int64_t rows = static_cast<std::int64_t>(splits.front().size()) - 1;
  if (c.num_outputs() != nested + indices.rank()) {
    throw InvalidArgumentError(
        cat("OUTPUT_RAGGED_RANK is ", c.num_outputs() - 1, ", not ", nested + indices.rank() - 1));
  }
  // The axes of indices but for the last split its rows evenly.
  std::int64_t count = 1;
  for (int axis = 0; axis + 1 < indices.rank(); ++axis) {
    count = checked_multiply(count, indices.shape()[axis]);
    set_even_splits(c, axis, count, indices.shape()[axis + 1]);
  }
  std::vector<std::vector<std::int64_t>> chosen(static_cast<std::size_t>(nested), {0});
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < indices.num_elements(); ++i) {
    std::int64_t begin = index_at(indices.dtype(), indices.raw_data(), i);
    if (begin < 0 || begin >= rows) {
      throw InvalidArgumentError(cat("indices[", i, "] = ", begin, " is not in [0, ", rows, ")"));
    }
    std::int64_t end = begin + 1;
    for (std::size_t k = 0; k < splits.size(); ++k) {
      const std::int64_t* split = splits[k].data();
      const std::int64_t moved = chosen[k].back() - split[begin];
      for (std::int64_t j = begin + 1; j <= end; ++j) chosen[k].push_back(split[j] + moved);
      begin = split[begin];
      end = split[end];
    }
    parts.emplace_back(begin, end);
    total += end - begin;
  }
  // A scalar index drops the outermost axis.
  for (int k = indices.rank() == 0 ? 1 : 0; k < nested; ++k) {
    set_integers(c, indices.rank() - 1 + k, chosen[static_cast<std::size_t>(k)]);
  }
  Array& out = c.allocate_output(c.num_outputs() - 1, with_rows(values.shape(), total));
  const std::int64_t inner = values.shape().product(1, values.rank());
  with_element(values.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(values.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    for (const auto& [begin, end] : parts) {
      copy_elements(to, from + begin * inner, (end - begin) * inner);
      to += (end - begin) * inner;
    }
  });
}

// ---- Ranges ----

template <class T>
double range_size(T start, T limit, T delta) {
  if (delta == T(0)) throw InvalidArgumentError("Requires delta != 0");
  if ((delta > T(0)) != (limit > start) || limit == start) return 0;
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U span = limit > start ? U(limit) - U(start) : U(start) - U(limit);
    const U step = delta > 0 ? U(delta) : U(0) - U(delta);
    return static_cast<double>(span / step + (span % step == 0 ? 0 : 1));
  } else {
    return std::ceil(std::abs(static_cast<double>((limit - start) / delta)));
  }
}

template <class T, class Stored>
void ranges_of(KernelContext& c) {
  const Array* inputs[] = {&c.input(0), &c.input(1), &c.input(2)};
  std::int64_t rows = -1;
  for (const Array* input : inputs) {
    if (input->rank() > 1) {
      throw InvalidArgumentError(
          cat("starts, limits and deltas must be scalars or vectors, got shape ", input->shape()));
    }
    if (input->rank() == 0) continue;
    if (rows >= 0 && rows != input->num_elements()) {
      throw InvalidArgumentError("starts, limits, and deltas must have the same shape");
    }
    rows = input->num_elements();
  }
  if (rows < 0) rows = 1;
  const auto part = [&](int i, std::int64_t row) {
    return static_cast<T>(inputs[i]->data<Stored>()[inputs[i]->rank() == 0 ? 0 : row]);
  };
  std::vector<std::int64_t> splits{0};
  for (std::int64_t row = 0; row < rows; ++row) {
    const double size = range_size(part(0, row), part(1, row), part(2, row));
    const double end = static_cast<double>(splits.back()) + size;
    if (!(end < 9e18)) {
      throw InvalidArgumentError(cat("Requires ((limit - start) / delta) <= 2^63, in row ", row));
    }
    splits.push_back(splits.back() + static_cast<std::int64_t>(size));
  }
  set_integers(c, 0, splits);
  Stored* to = c.allocate_output(1, Shape{splits.back()}).data<Stored>();
  for (std::int64_t row = 0; row < rows; ++row) {
    T value = part(0, row);
    const T delta = part(2, row);
    const std::int64_t size =
        splits[static_cast<std::size_t>(row) + 1] - splits[static_cast<std::size_t>(row)];
    for (std::int64_t i = 0; i < size; ++i) {
      *to++ = static_cast<Stored>(value);
      value = static_cast<T>(static_cast<Stored>(add(value, delta)));
    }
  }
}

void ranges(KernelContext& c) {
  switch (c.input(0).dtype()) {
    case DType::kInt32: return ranges_of<std::int32_t, std::int32_t>(c);
    case DType::kInt64: return ranges_of<std::int64_t, std::int64_t>(c);
    case DType::kFloat: return ranges_of<float, float>(c);
    case DType::kDouble: return ranges_of<double, double>(c);
    default: return ranges_of<float, BFloat16>(c);
  }
}

// ---- Sparse ----

void to_sparse(KernelContext& c) {
  const int nested = c.num_inputs() - 1;
  const Array& values = c.input(nested);
  if (values.rank() == 0) throw InvalidArgumentError("rt_dense_values must not be a scalar");
  const auto splits = nested_splits(c, nested, values.shape()[0]);
  const int rank = nested + values.rank();
  const std::int64_t inner = values.shape().product(1, values.rank());
  auto* index = c.allocate_output(0, Shape{values.num_elements(), rank}).data<std::int64_t>();
  c.set_output(1, values.reshape(Shape{values.num_elements()}));
  auto* dims = c.allocate_output(2, Shape{rank}).data<std::int64_t>();
  dims[0] = static_cast<std::int64_t>(splits.front().size()) - 1;
  for (int k = 0; k < nested; ++k) {
    const auto& split = splits[static_cast<std::size_t>(k)];
    dims[k + 1] = 0;
    for (std::size_t i = 1; i < split.size(); ++i) {
      dims[k + 1] = std::max(dims[k + 1], split[i] - split[i - 1]);
    }
  }
  for (int k = 1; k < values.rank(); ++k) dims[nested + k] = values.shape()[k];
  if (inner == 0) return;
  std::vector<std::size_t> row(splits.size());  // of each split, the one that the value lies in
  for (std::int64_t value = 0; value < values.shape()[0]; ++value) {
    std::int64_t place = value;
    for (int k = nested - 1; k >= 0; --k) {
      const auto& split = splits[static_cast<std::size_t>(k)];
      std::size_t& r = row[static_cast<std::size_t>(k)];
      while (split[r + 1] <= place) ++r;
      index[k + 1] = place - split[r];
      place = static_cast<std::int64_t>(r);
    }
    index[0] = place;
    const std::int64_t* first = index;
    for (std::int64_t i = 0; i < inner; ++i, index += rank) {
      std::copy(first, first + nested + 1, index);
      std::int64_t rest = i;
      for (int k = values.rank() - 1; k > 0; --k) {
        index[nested + k] = rest % values.shape()[k];
        rest /= values.shape()[k];
      }
    }
  }
}

const KernelRegistration kGather{{.op = "RaggedGather", .run = gather}};
const KernelRegistration kRange{{.op = "RaggedRange", .run = ranges}};
const KernelRegistration kToSparse{{.op = "RaggedTensorToSparse", .run = to_sparse}};

}  // namespace
}  // namespace tandem::cpu
