// Values counted: the Bincount family, HistogramFixedWidth, Bucketize.

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

template <class F>
void weight_switch(DType dtype, F&& f) {
  with_type<std::int32_t, std::int64_t, float, double>(dtype, f);
}

// Values that are counted into bins.
struct Count {
  const void* values;   // int32 or int64, none negative; those that have no bin are left out
  const void* weights;  // of the bins' type; null: each weighs 1
  std::int64_t size;    // bins
  bool binary;          // a bin is 1 if it has any value
};

// Counts values [begin, end) into one row of bins.
using CountRun = void (*)(const Count& count, std::int64_t begin, std::int64_t end, void* bins);

template <class T, class Value>
void count_run(const Count& count, std::int64_t begin, std::int64_t end, void* row) {
  const Value* const values = static_cast<const Value*>(count.values);
  const T* const weights = static_cast<const T*>(count.weights);
  T* const bins = static_cast<T*>(row);
  const std::int64_t size = count.size;
  const auto each = [&](auto put) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t v = values[i];
      if (v < size) put(bins[v], i);
    }
  };
  if (count.binary) {
    each([](T& bin, std::int64_t) { bin = T(1); });
  } else if (weights == nullptr) {
    each([](T& bin, std::int64_t) { bin = add(bin, T(1)); });
  } else {
    each([weights](T& bin, std::int64_t i) { bin = add(bin, weights[i]); });
  }
}

template <class T>
void add_bins(void* to, const void* from, std::int64_t n) {
  combine_rows(static_cast<T*>(to), static_cast<const T*>(from), n,
               [](T a, T b) { return add(a, b); });
}

template <class Value>
bool any_negative(const Value* values, std::int64_t n) {
  constexpr std::int64_t kRun = 16;  // a fixed number, which compilers turn into vectors
  Value all[kRun] = {};
  std::int64_t i = 0;
  for (; i + kRun <= n; i += kRun) {
    for (std::int64_t j = 0; j < kRun; ++j) all[j] |= values[i + j];
  }
  for (; i < n; ++i) all[0] |= values[i];
  return std::any_of(all, all + kRun, [](Value v) { return v < 0; });
}

// Rows of bins into which values are counted.
class Counter {
 public:
  Counter(const KernelContext& c, int values_input, int size_input, int weights_input)
      : values(c.input(values_input)), size(scalar_int_input(c, size_input, "size")) {
    const Array& weights = c.input(weights_input);
    if (size < 0) throw InvalidArgumentError(cat("size (", size, ") must be non-negative"));
    const std::int64_t n = values.num_elements();
    if (weights.num_elements() != 0 && !(weights.shape() == values.shape())) {
      throw InvalidArgumentError(
          cat("`weights` must be the same shape as `arr` or a length-0 "
              "`Tensor`, in which case it acts as all weights equal to 1. "
              "Received ",
              weights.shape()));
    }
    const bool narrow = values.dtype() == DType::kInt32;
    if (narrow ? any_negative(values.data<std::int32_t>(), n)
               : any_negative(values.data<std::int64_t>(), n)) {
      throw InvalidArgumentError("Input arr must be non-negative!");
    }
    count_ = {values.raw_data(), weights.num_elements() == 0 ? nullptr : weights.raw_data(), size,
              false};
    weight_switch(weights.dtype(), [&]<class T>() {
      run_ = narrow ? count_run<T, std::int32_t> : count_run<T, std::int64_t>;
      add_ = add_bins<T>;
    });
  }
  void set_binary(bool binary) { count_.binary = binary; }

  // All values into one row. Many are counted in pieces, each into bins of its own: how many there
  // are depends on the sizes alone, and so does the order in which weights are added up.
  void count_all(KernelContext& c, Array& out) const {
    const std::int64_t n = values.num_elements();
    clear_flat(c.intra_op(), out.dtype(), out.raw_data(), size);
    constexpr std::int64_t kPiece = 1 << 14, kMaxPieces = 16;
    const std::int64_t pieces =
        count_.binary ? 1 : std::min({n / kPiece, n / (size + 1), kMaxPieces});
    if (pieces < 2) return run_(count_, 0, n, out.raw_data());
    const Array parts = c.allocate_temp(out.dtype(), Shape{pieces, size});
    const double cost = 1.5 * static_cast<double>(n / pieces);
    c.intra_op().parallel_for(pieces, cost, [&](std::int64_t first, std::int64_t last) {
      clear(parts, first * size, (last - first) * size);
      for (std::int64_t p = first; p < last; ++p) {
        run_(count_, n * p / pieces, n * (p + 1) / pieces, row(parts, p));
      }
    });
    for (std::int64_t p = 0; p < pieces; ++p) add_(out.raw_data(), row(parts, p), size);
  }

  // Values [begin_of(r), begin_of(r + 1)) into each row r.
  template <class BeginOf>
  void count_rows(KernelContext& c, Array& out, const BeginOf& begin_of) const {
    const std::int64_t rows = out.shape()[0];
    const double work = 1.5 * static_cast<double>(values.num_elements()) +
                        move_cost(out.dtype()) * static_cast<double>(out.num_elements());
    c.intra_op().parallel_for(rows, work / static_cast<double>(rows),
                              [&](std::int64_t first, std::int64_t last) {
                                clear(out, first * size, (last - first) * size);
                                for (std::int64_t r = first; r < last; ++r) {
                                  run_(count_, begin_of(r), begin_of(r + 1), row(out, r));
                                }
                              });
  }

  // Value i into row row_of(i): values of one row are most often side by side.
  template <class RowOf>
  void count_scattered(KernelContext& c, Array& out, const RowOf& row_of) const {
    const std::int64_t n = values.num_elements();
    clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
    for (std::int64_t i = 0; i < n;) {
      const std::int64_t begin = i, r = row_of(i);
      while (i < n && row_of(i) == r) ++i;
      run_(count_, begin, i, row(out, r));
    }
  }

  const Array& values;
  const std::int64_t size;

 private:
  void* row(const Array& bins, std::int64_t r) const {
    return element_at(bins.raw_data(), bins.dtype(), r * size);
  }
  static void clear(const Array& bins, std::int64_t begin, std::int64_t n) {
    std::memset(element_at(bins.raw_data(), bins.dtype(), begin), 0,
                static_cast<std::size_t>(n) * dtype_size(bins.dtype()));
  }

  Count count_{};
  CountRun run_ = nullptr;
  void (*add_)(void* to, const void* from, std::int64_t n) = nullptr;
};

void bincount(KernelContext& c) {
  const Counter counter(c, 0, 1, 2);
  counter.count_all(c, c.allocate_output(0, Shape{counter.size}));
}

void dense_bincount(KernelContext& c) {
  const Array& in = c.input(0);
  if (in.rank() > 2) {
    throw InvalidArgumentError(cat("Shape must be at most rank 2 but is rank ", in.rank()));
  }
  Counter counter(c, 0, 1, 2);
  counter.set_binary(c.attr<bool>("binary_output"));
  if (in.rank() < 2) return counter.count_all(c, c.allocate_output(0, Shape{counter.size}));
  Array& out = c.allocate_output(0, Shape{in.shape()[0], counter.size});
  const std::int64_t columns = in.shape()[1];
  counter.count_rows(c, out, [columns](std::int64_t row) { return row * columns; });
}

void sparse_bincount(KernelContext& c) {
  const Array& indices = c.input(0);
  const Array& values = c.input(1);
  const Array& dims = c.input(2);
  if (indices.rank() != 2 || values.rank() != 1 || dims.rank() != 1 ||
      indices.shape()[0] != values.num_elements() || indices.shape()[1] != dims.num_elements()) {
    throw InvalidArgumentError(cat("indices ", indices.shape(), ", values ", values.shape(),
                                   " and dense_shape ", dims.shape(),
                                   " do not make a sparse tensor."));
  }
  const std::int64_t rank = dims.num_elements();
  if (rank != 1 && rank != 2) {
    throw InvalidArgumentError(cat("The sparse tensor must have 1 or 2 axes but has ", rank, "."));
  }
  Counter counter(c, 1, 3, 4);
  counter.set_binary(c.attr<bool>("binary_output"));
  const std::int64_t rows = rank == 1 ? 1 : dims.data<std::int64_t>()[0];
  if (rows < 0) throw InvalidArgumentError(cat("dense_shape[0] = ", rows, " is negative."));
  const std::int64_t* place = indices.data<std::int64_t>();
  for (std::int64_t i = 0; i < values.num_elements() * rank; ++i) {
    const std::int64_t size = dims.data<std::int64_t>()[i % rank];
    if (place[i] < 0 || place[i] >= size) {
      throw InvalidArgumentError(
          cat("Index ", place[i], " of value ", i / rank, " is not in [0, ", size, ")."));
    }
  }
  if (rank == 1) return counter.count_all(c, c.allocate_output(0, Shape{counter.size}));
  counter.count_scattered(c, c.allocate_output(0, Shape{rows, counter.size}),
                          [place](std::int64_t i) { return place[2 * i]; });
}

void ragged_bincount(KernelContext& c) {
  const Array& splits = c.input(0);
  Counter counter(c, 1, 2, 3);
  counter.set_binary(c.attr<bool>("binary_output"));
  const std::int64_t n = splits.num_elements();
  const std::int64_t* split = splits.data<std::int64_t>();
  if (splits.rank() != 1 || n < 1) throw InvalidArgumentError("Splits must be non-empty");
  if (split[0] != 0)
    throw InvalidArgumentError(cat("Splits must start with 0, not with ", split[0]));
  if (split[n - 1] != counter.values.num_elements()) {
    throw InvalidArgumentError(cat("Splits must end with the number of values, got ", split[n - 1],
                                   " instead of ", counter.values.num_elements()));
  }
  if (!std::is_sorted(split, split + n)) throw InvalidArgumentError("Splits must not fall.");
  counter.count_rows(c, c.allocate_output(0, Shape{n - 1, counter.size}),
                     [split](std::int64_t row) { return split[row]; });
}

// How far a value is above `low`, which is not greater.
template <class T>
double above(T value, T low) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<double>(static_cast<U>(value) - static_cast<U>(low));
  } else {
    return static_cast<double>(value) - static_cast<double>(low);
  }
}

template <class T, class Count>
void histogram_of(const Array& values, const T* range, Array& out) {
  const std::int64_t bins = out.num_elements();
  const double step = above(range[1], range[0]) / static_cast<double>(bins);
  Count* count = out.data<Count>();
  std::fill(count, count + bins, Count(0));
  for (const T value : values.values<T>()) {
    if (!(value == value)) throw InvalidArgumentError("Histogram values must not contain NaN");
    const double at = above(std::max(value, range[0]), range[0]) / step;
    const double place = std::min(at, static_cast<double>(bins - 1));
    ++count[place > 0 ? static_cast<std::int64_t>(place) : 0];
  }
}

void histogram(KernelContext& c) {
  const Array& values = c.input(0);
  const Array& range = c.input(1);
  const std::int64_t bins = scalar_int_input(c, 2, "nbins");
  if (range.rank() != 1 || range.num_elements() != 2) {
    throw InvalidArgumentError(
        cat("value_range should be a vector of 2 elements, but got shape ", range.shape()));
  }
  if (bins <= 0)
    throw InvalidArgumentError(cat("nbins should be a positive number, but got '", bins, "'"));
  Array& out = c.allocate_output(0, Shape{bins});
  weight_switch(values.dtype(), [&]<class T>() {
    const T* ends = range.data<T>();
    if (!(ends[0] < ends[1])) {
      throw InvalidArgumentError(
          cat("value_range should satisfy value_range[0] < value_range[1], "
              "but got '[",
              ends[0], ", ", ends[1], "]'"));
    }
    if (out.dtype() == DType::kInt32) {
      histogram_of<T, std::int32_t>(values, ends, out);
    } else {
      histogram_of<T, std::int64_t>(values, ends, out);
    }
  });
}

// What a value is compared in with a boundary of float.
template <class T>
using Compared = std::conditional_t<std::is_same_v<T, double>, double, float>;

void bucketize(KernelContext& c) {
  const Array& x = c.input(0);
  const auto& bounds = c.attr<std::vector<float>>("boundaries");
  if (!std::is_sorted(bounds.begin(), bounds.end())) {
    throw InvalidArgumentError("Expected sorted boundaries");
  }
  std::int32_t* out = c.allocate_output(0, x.shape()).data<std::int32_t>();
  weight_switch(x.dtype(), [&]<class T>() {
    const T* in = x.data<T>();
    c.intra_op().parallel_for(x.num_elements(), 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto above = std::upper_bound(
            bounds.begin(), bounds.end(), in[i],
            [](T value, float bound) { return static_cast<Compared<T>>(value) < bound; });
        out[i] = static_cast<std::int32_t>(above - bounds.begin());
      }
    });
  });
}

const KernelRegistration kBincount{{.op = "Bincount", .run = bincount}};
const KernelRegistration kDense{{.op = "DenseBincount", .run = dense_bincount}};
const KernelRegistration kSparse{{.op = "SparseBincount", .run = sparse_bincount}};
const KernelRegistration kRagged{{.op = "RaggedBincount", .run = ragged_bincount}};
const KernelRegistration kHistogram{{.op = "HistogramFixedWidth", .run = histogram}};
const KernelRegistration kBucketize{{.op = "Bucketize", .run = bucketize}};

}  // namespace
}  // namespace tandem::cpu
