// Values counted: the Bincount family, HistogramFixedWidth, Bucketize.

#include <algorithm>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/gather.h"
#include "tandem/kernels/cpu/int_input.h"
#include "tandem/kernels/cpu/type_switch.h"

namespace tandem::cpu {
namespace {

template <class F>
void weight_switch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt32: return f.template operator()<std::int32_t>();
    case DType::kInt64: return f.template operator()<std::int64_t>();
    case DType::kFloat: return f.template operator()<float>();
    default: return f.template operator()<double>();
  }
}

// Rows of bins into which values are counted.
struct Counter {
  const Array& values;
  const Array& weights;
  std::int64_t size;
  bool binary = false;

  Counter(const KernelContext& c, int values_input, int size_input, int weights_input)
      : values(c.input(values_input)),
        weights(c.input(weights_input)),
        size(scalar_int_input(c, size_input, "size")) {
    if (size < 0) throw InvalidArgumentError(cat("size (", size, ") must be non-negative"));
    const std::int64_t n = weights.num_elements();
    if (n != 0 && !(weights.shape() == values.shape())) {
      throw InvalidArgumentError(
          cat("`weights` must be the same shape as `arr` or a length-0 "
              "`Tensor`, in which case it acts as all weights equal to 1. "
              "Received ",
              weights.shape()));
    }
    for (std::int64_t i = 0; i < values.num_elements(); ++i) {
      if (value(i) < 0) throw InvalidArgumentError("Input arr must be non-negative!");
    }
  }
  std::int64_t value(std::int64_t i) const {
    return index_at(values.dtype(), values.raw_data(), i);
  }

  // row_of(i): the row of bins for value i.
  template <class RowOf>
  void count(Array& out, RowOf row_of) const {
    weight_switch(out.dtype(), [&]<class T>() {
      T* bins = out.data<T>();
      std::fill(bins, bins + out.num_elements(), T(0));
      for (std::int64_t i = 0; i < values.num_elements(); ++i) {
        const std::int64_t v = value(i);
        if (v >= size) continue;
        T& bin = bins[row_of(i) * size + v];
        const T weight = weights.num_elements() == 0 ? T(1) : weights.data<T>()[i];
        bin = binary ? T(1) : add(bin, weight);
      }
    });
  }
};

void bincount(KernelContext& c) {
  const Counter counter(c, 0, 1, 2);
  counter.count(c.allocate_output(0, Shape{counter.size}), [](std::int64_t) { return 0; });
}

void dense_bincount(KernelContext& c) {
  const Array& in = c.input(0);
  if (in.rank() > 2) {
    throw InvalidArgumentError(cat("Shape must be at most rank 2 but is rank ", in.rank()));
  }
  Counter counter(c, 0, 1, 2);
  counter.binary = c.attr<bool>("binary_output");
  const std::int64_t columns = in.rank() == 2 ? in.shape()[1] : in.num_elements();
  const Shape shape = in.rank() == 2 ? Shape{in.shape()[0], counter.size} : Shape{counter.size};
  counter.count(c.allocate_output(0, shape),
                [&](std::int64_t i) { return in.rank() == 2 ? i / columns : 0; });
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
  counter.binary = c.attr<bool>("binary_output");
  const std::int64_t rows = rank == 1 ? 1 : dims.data<std::int64_t>()[0];
  if (rows < 0) throw InvalidArgumentError(cat("dense_shape[0] = ", rows, " is negative."));
  const std::int64_t* place = indices.data<std::int64_t>();
  for (std::int64_t i = 0; rank == 2 && i < values.num_elements(); ++i) {
    if (place[2 * i] < 0 || place[2 * i] >= rows) {
      throw InvalidArgumentError(
          cat("Index ", place[2 * i], " at place ", i, " is not in [0, ", rows, ")."));
    }
  }
  const Shape shape = rank == 1 ? Shape{counter.size} : Shape{rows, counter.size};
  counter.count(c.allocate_output(0, shape),
                [&](std::int64_t i) { return rank == 1 ? 0 : place[2 * i]; });
}

void ragged_bincount(KernelContext& c) {
  const Array& splits = c.input(0);
  Counter counter(c, 1, 2, 3);
  counter.binary = c.attr<bool>("binary_output");
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
  const auto row_of = [&](std::int64_t i) {
    return std::upper_bound(split, split + n, i) - split - 1;
  };
  counter.count(c.allocate_output(0, Shape{n - 1, counter.size}), row_of);
}

template <class T, class Count>
void histogram_of(const Array& values, const T* range, Array& out) {
  const std::int64_t bins = out.num_elements();
  const double low = static_cast<double>(range[0]);
  const double step = (static_cast<double>(range[1]) - low) / static_cast<double>(bins);
  Count* count = out.data<Count>();
  std::fill(count, count + bins, Count(0));
  for (const T value : values.values<T>()) {
    const double at = static_cast<double>(std::max(value, range[0]) - range[0]) / step;
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
