// Crossed features: SparseCross, SparseCrossV2, SparseCrossHashed.

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/sparse/sparse_tensor.h"
#include "tandem/kernels/cpu/string/string_hash.h"

namespace tandem::cpu {
namespace {

// The values of one feature: row b has those from begin(b) on.
struct Column {
  const Array& values;
  bool dense;
  Array ends;  // of the rows of a sparse one, int64

  std::int64_t begin(std::int64_t row) const {
    if (dense) return row * values.shape()[1];
    return row == 0 ? 0 : ends.data<std::int64_t>()[row - 1];
  }
  std::int64_t count(std::int64_t row) const {
    return dense ? values.shape()[1] : ends.data<std::int64_t>()[row] - begin(row);
  }
  std::int64_t place(std::int64_t row, std::int64_t k) const { return begin(row) + k; }
  bool text() const { return values.dtype() == DType::kString; }
  const std::string& string_at(std::int64_t at) const { return values.data<std::string>()[at]; }
  std::int64_t number_at(std::int64_t at) const { return values.data<std::int64_t>()[at]; }
};

// The number of rows that a shape announces is not trusted: what needs memory for each asks for it
// at once.
struct Columns {
  std::vector<Column> all;
  std::int64_t rows = -1;
};

Columns columns_of(const KernelContext& c, int after) {
  const auto n = static_cast<int>(c.attr<std::int64_t>("N"));
  const int end = c.num_inputs() - after;
  Columns columns;
  std::int64_t& rows = columns.rows;
  const auto agree = [&](std::int64_t own) {
    if (rows >= 0 && own != rows) {
      throw InvalidArgumentError(cat("Expected batch size ", rows, " but got ", own));
    }
    rows = own;
  };
  for (int i = 0; i < n; ++i) {
    const SparseInput x(c.input(i), c.input(n + i), c.input(2 * n + i));
    if (x.rank != 2) {
      throw InvalidArgumentError(cat("Expected D2 of index to be 2 got ", x.rank));
    }
    agree(x.dim(0));
    columns.all.push_back({x.values, false, c.allocate_temp(DType::kInt64, Shape{rows})});
    auto* ends = columns.all.back().ends.data<std::int64_t>();
    std::int64_t at = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      while (at < x.count && x.index(at)[0] == row) ++at;
      ends[row] = at;
    }
    if (at < x.count) {
      throw InvalidArgumentError(cat("Row index ", x.index(at)[0],
                                     " is outside of valid range [0, ", rows, ") or out of order"));
    }
  }
  for (int i = 3 * n; i < end; ++i) {
    const Array& x = c.input(i);
    if (x.rank() != 2) {
      throw InvalidArgumentError(
          cat("Dense inputs should be a matrix but received shape ", x.shape()));
    }
    agree(x.shape()[0]);
    columns.all.push_back({x, true, {}});
  }
  if (columns.all.empty()) throw InvalidArgumentError("There is nothing to cross: no inputs.");
  return columns;
}

// Calls `cross(row, places)` for each combination, of which the last column varies fastest, with
// the place of each column's value, and sets the outputs; `T` is what `cross` returns.
template <class T, class Cross>
void cross_all(KernelContext& c, const Columns& columns, Cross cross) {
  const std::int64_t rows = columns.rows;
  Array counted = c.allocate_temp(DType::kInt64, Shape{rows});
  auto* counts = counted.data<std::int64_t>();
  std::int64_t total = 0, most = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t count = 1;
    for (const Column& column : columns.all) count = checked_multiply(count, column.count(row));
    counts[row] = count;
    most = std::max(most, count);
    if (__builtin_add_overflow(total, count, &total)) {
      throw InvalidArgumentError("The combinations are more than 63 bits can count.");
    }
  }
  auto* index = c.allocate_output(0, Shape{total, 2}).data<std::int64_t>();
  T* value = c.allocate_output(1, Shape{total}).data<T>();
  auto* shape = c.allocate_output(2, Shape{2}).data<std::int64_t>();
  shape[0] = rows;
  shape[1] = most;
  std::vector<std::int64_t> places(columns.all.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t k = 0; k < counts[row]; ++k) {
      std::int64_t rest = k;
      for (std::size_t i = columns.all.size(); i-- > 0;) {
        const Column& column = columns.all[i];
        places[i] = column.place(row, rest % column.count(row));
        rest /= column.count(row);
      }
      *index++ = row;
      *index++ = k;
      *value++ = cross(places);
    }
  }
}

void cross_strings(KernelContext& c, const Columns& columns, const std::string& separator) {
  cross_all<std::string>(c, columns, [&](const std::vector<std::int64_t>& places) {
    std::string joined;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i > 0) joined += separator;
      const Column& column = columns.all[i];
      joined +=
          column.text() ? column.string_at(places[i]) : std::to_string(column.number_at(places[i]));
    }
    return joined;
  });
}

// One hash of two.
std::uint64_t both(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  const auto mix = [](std::uint64_t x) { return x ^ (x >> 47); };
  const std::uint64_t hash = (a ^ kMultiplier ^ (mix(b * kMultiplier) * kMultiplier)) * kMultiplier;
  return mix(mix(hash) * kMultiplier);
}

// `hash(column, place)` is that of one value; the first may have one before it.
template <class Hash>
void cross_hashes(KernelContext& c, const Columns& columns, std::int64_t buckets,
                  const std::uint64_t* key, Hash hash) {
  if (buckets < 0) throw InvalidArgumentError(cat("num_buckets is negative: ", buckets));
  const auto range = buckets > 0
                         ? static_cast<std::uint64_t>(buckets)
                         : static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  cross_all<std::int64_t>(c, columns, [&](const std::vector<std::int64_t>& places) {
    std::uint64_t hashed = key != nullptr ? *key : hash(columns.all[0], places[0]);
    for (std::size_t i = key != nullptr ? 0 : 1; i < places.size(); ++i) {
      hashed = both(hashed, hash(columns.all[i], places[i]));
    }
    return static_cast<std::int64_t>(hashed % range);
  });
}

void cross(KernelContext& c) {
  const Columns columns = columns_of(c, 0);
  const bool hashed = c.attr<bool>("hashed_output");
  if (hashed != (c.output_dtype(1) == DType::kInt64)) {
    throw InvalidArgumentError("out_type must be int64 where hashed_output is true, else string.");
  }
  for (const Column& column : columns.all) {
    if (c.type_attr("internal_type") == DType::kString && !column.text()) {
      throw InvalidArgumentError("Integers need internal_type int64.");
    }
  }
  if (!hashed) return cross_strings(c, columns, "_X_");
  const auto key = static_cast<std::uint64_t>(c.attr<std::int64_t>("hash_key"));
  cross_hashes(c, columns, c.attr<std::int64_t>("num_buckets"), &key,
               [](const Column& column, std::int64_t at) {
                 return column.text() ? fingerprint(column.string_at(at))
                                      : static_cast<std::uint64_t>(column.number_at(at));
               });
}

void cross_v2(KernelContext& c) {
  const Array& separator = c.input(c.num_inputs() - 1);
  if (separator.rank() != 0) {
    throw InvalidArgumentError(
        cat("Input separator should be a scalar. Received: ", separator.shape()));
  }
  cross_strings(c, columns_of(c, 1), *separator.data<std::string>());
}

void cross_hashed(KernelContext& c) {
  const int last = c.num_inputs() - 1;
  const Array &strong = c.input(last - 1), &salt = c.input(last);
  const std::int64_t buckets = scalar_int_input(c, last - 2, "num_buckets");
  if (strong.rank() != 0) {
    throw InvalidArgumentError(cat("strong_hash must be a scalar. Received: ", strong.shape()));
  }
  if (salt.num_elements() != 2) {
    throw InvalidArgumentError(cat("salt must have 2 elements. Received: ", salt.shape()));
  }
  const bool keyed = *strong.data<bool>();
  std::uint64_t key[2];
  std::memcpy(key, salt.raw_data(), sizeof(key));
  cross_hashes(c, columns_of(c, 3), buckets, nullptr, [&](const Column& column, std::int64_t at) {
    if (!keyed && !column.text() && column.dense) {
      return static_cast<std::uint64_t>(column.number_at(at));
    }
    // TensorFlow hashes the lower four bytes of a number.
    const std::int64_t number = column.text() ? 0 : column.number_at(at);
    const std::string_view bytes =
        column.text() ? std::string_view(column.string_at(at))
                      : std::string_view(reinterpret_cast<const char*>(&number), 4);
    return keyed ? keyed_hash(key[0], key[1], bytes) : fingerprint(bytes);
  });
}

const KernelRegistration kCross{{.op = "SparseCross", .run = cross}};
const KernelRegistration kCrossV2{{.op = "SparseCrossV2", .run = cross_v2}};
const KernelRegistration kCrossHashed{{.op = "SparseCrossHashed", .run = cross_hashed}};

}  // namespace
}  // namespace tandem::cpu
