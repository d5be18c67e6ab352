// Sparse tensors whose elements go elsewhere: SparseToDense, SparseReshape, SparseConcat,
// SparseSlice, SparseReorder.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/gather.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/sparse/sparse_tensor.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// ---- SparseToDense: indices of rank 0 to 2, of either index dtype ----

// Where the elements go.
class DensePlaces {
 public:
  static constexpr std::int64_t kRun = 256;

  DensePlaces(const Array& indices, const Shape& shape, bool validate)
      : indices_(indices), shape_(shape), validate_(validate) {}

  // The places of elements [begin, begin + n), kRun at most; false: one of them may not be.
  bool read(std::int64_t begin, std::int64_t n, std::int64_t* places) const {
    return indices_.dtype() == DType::kInt32 ? read_as<std::int32_t>(begin, n, places)
                                             : read_as<std::int64_t>(begin, n, places);
  }

  // Throws for the first element that may not be.
  void refuse(std::int64_t n) const {
    std::int64_t before = -1;
    for (std::int64_t i = 0; i < n; ++i) {
      for (int k = 0; k < shape_.rank(); ++k) {
        const std::int64_t index =
            index_at(indices_.dtype(), indices_.raw_data(), i * shape_.rank() + k);
        if (index < 0 || index >= shape_[k]) {
          throw InvalidArgumentError(cat("indices[", i, "] is out of bounds: need 0 <= index < ",
                                         shape_, ", but index ", k, " is ", index));
        }
      }
      std::int64_t at = 0;
      read(i, 1, &at);
      if (validate_ && at <= before) {
        throw InvalidArgumentError(cat("indices[", i, "] is ",
                                       at == before ? "repeated" : "out of order",
                                       ". Many sparse ops require sorted indices. Use "
                                       "SparseReorder to create a correctly ordered copy."));
      }
      before = at;
    }
  }

 private:
  template <class Index>
  bool read_as(std::int64_t begin, std::int64_t n, std::int64_t* places) const {
    const int rank = shape_.rank();
    const Index* const index = indices_.data<Index>() + begin * rank;
    bool inside = true;
    // Axis by axis, so that elements do not wait for each other. Places of indices that are outside
    // may overflow: nothing asks for them.
    std::uint64_t at[kRun] = {};
    for (int k = 0; k < rank; ++k) {
      const auto size = static_cast<std::uint64_t>(shape_[k]);
      for (std::int64_t i = 0; i < n; ++i) {
        const auto own = static_cast<std::uint64_t>(std::int64_t{index[i * rank + k]});
        inside &= own < size;
        at[i] = at[i] * size + own;
      }
    }
    for (std::int64_t i = 0; i < n; ++i) places[i] = static_cast<std::int64_t>(at[i]);
    if (!inside || !validate_) return inside;
    bool rising = true;
    for (std::int64_t i = 1; i < n; ++i) rising &= places[i] > places[i - 1];
    return rising;
  }

  const Array& indices_;
  const Shape& shape_;
  const bool validate_;
};

void sparse_to_dense(KernelContext& c) {
  const Array& indices = c.input(0);
  const Array& values = c.input(2);
  if (indices.rank() > 2) {
    throw InvalidArgumentError(
        cat("sparse_indices should be a scalar, vector, or matrix, got "
            "shape ",
            indices.shape()));
  }
  const std::int64_t n = indices.rank() == 0 ? 1 : indices.shape()[0];
  const std::int64_t rank = indices.rank() == 2 ? indices.shape()[1] : 1;
  const Shape shape = shape_input(c, 1, "output_shape");
  if (shape.rank() != rank) {
    throw InvalidArgumentError(
        cat("output_shape has incorrect number of elements: ", shape.rank(), " should be: ", rank));
  }
  if (values.rank() > 1 || (values.rank() == 1 && values.num_elements() != n)) {
    throw InvalidArgumentError(
        cat("sparse_values has incorrect shape ", values.shape(), ", should be [] or [", n, "]"));
  }
  if (c.input(3).rank() != 0) throw InvalidArgumentError("default_value should be a scalar.");
  Array& out = c.allocate_output(0, shape);
  fill_flat(c.intra_op(), out.dtype(), out.raw_data(), c.input(3).raw_data(), out.num_elements());
  const bool validate = c.attr<bool>("validate_indices");
  const DensePlaces all(indices, shape, validate);
  // Every run begins with the last element of the one before, to see that places rise.
  constexpr std::int64_t kStep = DensePlaces::kRun - 1;
  std::atomic<bool> wrong = false;
  const auto read = [&](std::int64_t r, std::int64_t* places) {
    const std::int64_t begin = r * kStep, run = std::min(DensePlaces::kRun, n - begin);
    if (!all.read(begin, run, places)) wrong.store(true, std::memory_order_relaxed);
    return !wrong.load(std::memory_order_relaxed);
  };
  const auto check = [&](std::int64_t first, std::int64_t last) {
    std::int64_t places[DensePlaces::kRun];
    for (std::int64_t r = first; r < last && read(r, places); ++r) continue;
  };
  const auto put = [&](std::int64_t first, std::int64_t last) {
    std::int64_t places[DensePlaces::kRun];
    for (std::int64_t r = first; r < last && read(r, places); ++r) {
      const std::int64_t begin = r * kStep, run = std::min(DensePlaces::kRun, n - begin);
      with_element(out.dtype(), [&]<class T>() {
        T* to = static_cast<T*>(out.raw_data());
        const T* from = static_cast<const T*>(values.raw_data());
        const std::int64_t step = values.rank() == 0 ? 0 : 1;
        for (std::int64_t i = r == 0 ? 0 : 1; i < run; ++i)
          to[places[i]] = from[(begin + i) * step];
      });
    }
  };
  const std::int64_t runs = (n + kStep - 1) / kStep;
  if (validate) {
    // All first: threads must not meet at a place that is named twice.
    c.intra_op().parallel_for(runs, 2.0 * static_cast<double>(kStep), check);
    if (!wrong.load(std::memory_order_relaxed))
      c.intra_op().parallel_for(runs, 3.0 * static_cast<double>(kStep), put);
  } else {
    put(0, runs);  // The last of those with one place stays.
  }
  if (wrong.load(std::memory_order_relaxed)) all.refuse(n);
}

// ---- SparseReshape ----

void sparse_reshape(KernelContext& c) {
  const Array& indices = c.input(0);
  const Array& dims = c.input(1);
  const Array& wanted = c.input(2);
  if (indices.rank() != 2) {
    throw InvalidArgumentError(
        cat("Input indices should be a matrix but received shape ", indices.shape()));
  }
  if (dims.rank() != 1 || wanted.rank() != 1) {
    throw InvalidArgumentError(cat("Input and target shape should be vectors but received shapes ",
                                   dims.shape(), " and ", wanted.shape()));
  }
  const std::int64_t n = indices.shape()[0];
  const std::int64_t rank = dims.num_elements(), new_rank = wanted.num_elements();
  if (indices.shape()[1] != rank) {
    throw InvalidArgumentError(cat("Input tensor rank must match input shape length, got ",
                                   indices.shape()[1], " and ", rank));
  }
  const Shape from(dims.values<std::int64_t>());
  std::vector<std::int64_t> sizes(wanted.values<std::int64_t>().begin(),
                                  wanted.values<std::int64_t>().end());
  std::int64_t open = -1, product = 1;
  for (std::int64_t k = 0; k < new_rank; ++k) {
    const std::int64_t size = sizes[static_cast<std::size_t>(k)];
    if (size == -1 && open < 0) {
      open = k;
    } else if (size < 0) {
      throw InvalidArgumentError(size == -1 ? "only one output dimension may be -1"
                                            : cat("size ", k, " must be non-negative, not ", size));
    } else {
      product = checked_multiply(product, size);
    }
  }
  if (open >= 0) {
    if (product == 0) {
      throw InvalidArgumentError(
          "reshape cannot infer the missing input size for an empty tensor unless all specified "
          "input sizes are non-zero");
    }
    sizes[static_cast<std::size_t>(open)] = from.num_elements() / product;
    product *= sizes[static_cast<std::size_t>(open)];
  }
  if (product != from.num_elements()) {
    throw InvalidArgumentError(cat("Input to reshape is a tensor with ", from.num_elements(),
                                   " dense values, but the requested shape has ", product));
  }
  std::int64_t* to = c.allocate_output(0, Shape{n, new_rank}).data<std::int64_t>();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t flat = 0;
    for (std::int64_t k = 0; k < rank; ++k) {
      const std::int64_t index = indices.data<std::int64_t>()[i * rank + k];
      if (index < 0 || index >= from[static_cast<int>(k)]) {
        throw InvalidArgumentError(cat("indices[", i, ",", k, "] = ", index,
                                       " is out of bounds: need 0 <= index < ",
                                       from[static_cast<int>(k)]));
      }
      flat = flat * from[static_cast<int>(k)] + index;
    }
    for (std::int64_t k = new_rank - 1; k >= 0; --k) {
      to[i * new_rank + k] = flat % sizes[static_cast<std::size_t>(k)];
      flat /= sizes[static_cast<std::size_t>(k)];
    }
  }
  Array& shape = c.allocate_output(1, Shape{new_rank});
  std::copy(sizes.begin(), sizes.end(), shape.data<std::int64_t>());
}

// ---- Elements picked from one or several sparse tensors ----

// Outputs 0 and 1: elements `places` of a sparse tensor.
void put_elements(KernelContext& c, const SparseInput& x, const std::vector<std::int64_t>& places) {
  const auto n = static_cast<std::int64_t>(places.size());
  std::int64_t* indices = c.allocate_output(0, Shape{n, x.rank}).data<std::int64_t>();
  for (const std::int64_t i : places) indices = std::copy(x.index(i), x.index(i) + x.rank, indices);
  Array& values = c.allocate_output(1, Shape{n});
  with_element(values.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(x.values.raw_data());
    T* to = static_cast<T*>(values.raw_data());
    for (const std::int64_t i : places) *to++ = from[i];
  });
}

void sparse_reorder(KernelContext& c) {
  const SparseInput x(c, 0);
  put_elements(c, x, x.order());
}

void sparse_slice(KernelContext& c) {
  const SparseInput x(c, 0);
  for (int i = 3; i < 5; ++i) {
    if (c.input(i).rank() != 1 || c.input(i).num_elements() != x.rank) {
      throw InvalidArgumentError(cat("Expected start and size to be vectors of length ", x.rank,
                                     ", got shape ", c.input(i).shape()));
    }
  }
  const std::int64_t* start = c.input(3).data<std::int64_t>();
  const std::int64_t* size = c.input(4).data<std::int64_t>();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.rank));
  for (std::int64_t k = 0; k < x.rank; ++k) {
    if (start[k] < 0 || size[k] < 0) {
      throw InvalidArgumentError(cat("start and size must not be negative: ", start[k], " and ",
                                     size[k], " for axis ", k));
    }
    sizes[static_cast<std::size_t>(k)] = std::clamp<std::int64_t>(x.dim(k) - start[k], 0, size[k]);
  }
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < x.count; ++i) {
    bool inside = true;
    for (std::int64_t k = 0; inside && k < x.rank; ++k) {
      const std::int64_t at = x.index(i)[k] - start[k];
      inside = x.index(i)[k] >= start[k] && at < sizes[static_cast<std::size_t>(k)];
    }
    if (inside) places.push_back(i);
  }
  put_elements(c, x, places);
  std::int64_t* to = c.output(0).data<std::int64_t>();
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::int64_t k = 0; k < x.rank; ++k) *to++ -= start[k];
  }
  Array& shape = c.allocate_output(2, Shape{x.rank});
  std::copy(sizes.begin(), sizes.end(), shape.data<std::int64_t>());
}

void sparse_slice_grad(KernelContext& c) {
  const Array& grad = c.input(0);
  const Array& input = c.input(1);
  const Array& start = c.input(2);
  const Array& output = c.input(3);
  if (grad.rank() != 1 || input.rank() != 2 || start.rank() != 1 || output.rank() != 2 ||
      input.shape()[1] != output.shape()[1] || start.num_elements() != input.shape()[1] ||
      grad.num_elements() != output.shape()[0]) {
    throw InvalidArgumentError(
        cat("The gradient of a slice has inconsistent shapes: ", grad.shape(), ", ", input.shape(),
            ", ", start.shape(), ", ", output.shape()));
  }
  const std::int64_t rank = input.shape()[1], n = input.shape()[0], m = output.shape()[0];
  Array& out = c.allocate_output(0, Shape{n});
  const auto same = [&](std::int64_t i, std::int64_t j) {
    for (std::int64_t k = 0; k < rank; ++k) {
      if (input.data<std::int64_t>()[i * rank + k] !=
          output.data<std::int64_t>()[j * rank + k] + start.data<std::int64_t>()[k]) {
        return false;
      }
    }
    return true;
  };
  with_element(out.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    clear_elements(to, n);
    std::int64_t j = 0;  // the slice's elements are in the input's order
    for (std::int64_t i = 0; i < n && j < m; ++i) {
      if (same(i, j)) to[i] = static_cast<const T*>(grad.raw_data())[j++];
    }
    if (j < m) {
      throw InvalidArgumentError(
          "Elements of backprop_val_grad aren't all propagated. Dimensions "
          "of indices may not match.");
    }
  });
}

void sparse_concat(KernelContext& c) {
  const int n = c.num_inputs() / 3;
  std::vector<SparseInput> parts;
  for (int i = 0; i < n; ++i) {
    parts.emplace_back(c.input(i), c.input(n + i), c.input(2 * n + i));
  }
  const std::int64_t rank = parts[0].rank;
  const int axis =
      checked_axis(c.attr<std::int64_t>("concat_dim"), static_cast<int>(rank), "Concat dimension");
  Shape shape = parts[0].shape();
  std::int64_t total = parts[0].dim(axis), count = parts[0].count;
  for (int i = 1; i < n; ++i) {
    const SparseInput& part = parts[static_cast<std::size_t>(i)];
    if (part.rank != rank) {
      throw InvalidArgumentError(cat("Ranks of all input tensors must match: expected ", rank,
                                     " but got ", part.rank, " at position ", i));
    }
    for (int k = 0; k < rank; ++k) {
      if (k != axis && part.dim(k) != shape[k]) {
        throw InvalidArgumentError(cat("Input shapes must match: expected ", shape[k],
                                       " for dimension ", k, " but got ", part.dim(k),
                                       " at position ", i));
      }
    }
    if (__builtin_add_overflow(total, part.dim(axis), &total)) {
      throw InvalidArgumentError("The sizes together need more than 63 bits.");
    }
    count += part.count;
  }
  shape.set_dim(axis, total);
  Array indices = c.allocate_temp(DType::kInt64, Shape{count, rank});
  Array values = c.allocate_temp(parts[0].values.dtype(), Shape{count});
  with_element(values.dtype(), [&]<class T>() {
    std::int64_t* to = indices.data<std::int64_t>();
    T* value = static_cast<T*>(values.raw_data());
    std::int64_t offset = 0;
    for (const SparseInput& part : parts) {
      copy_elements(value, static_cast<const T*>(part.values.raw_data()), part.count);
      value += part.count;
      for (std::int64_t i = 0; i < part.count; ++i, to += rank) {
        std::copy(part.index(i), part.index(i) + rank, to);
        to[axis] += offset;
      }
      offset += part.dim(axis);
    }
  });
  Array& dims = c.allocate_output(2, Shape{rank});
  std::copy(shape.data(), shape.data() + rank, dims.data<std::int64_t>());
  const SparseInput all(indices, values, dims);
  put_elements(c, all, all.order());
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "SparseToDense", .run = sparse_to_dense}),
    KernelRegistration({.op = "SparseReshape", .run = sparse_reshape}),
    KernelRegistration({.op = "SparseReorder", .run = sparse_reorder}),
    KernelRegistration({.op = "SparseSlice", .run = sparse_slice}),
    KernelRegistration({.op = "SparseSliceGrad", .run = sparse_slice_grad}),
    KernelRegistration({.op = "SparseConcat", .run = sparse_concat}),
};

}  // namespace
}  // namespace tandem::cpu
