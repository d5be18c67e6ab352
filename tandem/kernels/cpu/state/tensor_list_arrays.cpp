// Lists of tensors, all items at once: stacked, joined, gathered, and made of rows.

#include <algorithm>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/state/tensor_lists.h"

namespace tandem::cpu {
namespace {

Shape with_first(std::int64_t first, const Shape& rest) {
  std::vector<std::int64_t> dims{first};
  for (int i = 0; i < rest.rank(); ++i) dims.push_back(rest[i]);
  return Shape(dims);
}

PartialShape without_first(const PartialShape& shape) {
  if (!shape.has_rank()) return shape;
  return PartialShape(std::vector<std::int64_t>(shape.dims().begin() + 1, shape.dims().end()));
}

// The items one after the other in `to`; item i takes sizes(i) elements, zeros if it was never set.
template <class Items, class Sizes>
void join_items(KernelContext& c, const Items& item, std::int64_t n, Sizes sizes, Array& to) {
  const DType dtype = to.dtype();
  std::vector<std::int64_t> begins(static_cast<std::size_t>(n));
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    begins[static_cast<std::size_t>(i)] = total;
    total += sizes(i);
  }
  const auto copy = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const Array& from = item(i);
      void* at = element_at(to.raw_data(), dtype, begins[static_cast<std::size_t>(i)]);
      if (is_object(dtype)) {
        if (from.valid()) copy_flat(c.intra_op(), dtype, at, from.raw_data(), sizes(i));
      } else if (const std::size_t bytes = static_cast<std::size_t>(sizes(i)) * dtype_size(dtype)) {
        if (from.valid()) {
          std::memcpy(at, from.raw_data(), bytes);
        } else {
          std::memset(at, 0, bytes);
        }
      }
    }
  };
  if (n == 0) return;
  if (is_object(dtype)) return copy(0, n);
  const double bytes = static_cast<double>(total) * static_cast<double>(dtype_size(dtype));
  c.intra_op().parallel_for(n, 10 + 0.1 * bytes / static_cast<double>(n), copy);
}

// ---- To one tensor ----

void stack(KernelContext& c) {
  const TensorList& list = list_input(c, 0);
  const auto n = static_cast<std::int64_t>(list.items().size());
  const auto wanted = c.attr<std::int64_t>("num_elements");
  if (wanted != -1 && wanted != n) {
    throw InvalidArgumentError(cat("Operation expected a list with ", wanted,
                                   " elements but got a list with ", n, " elements."));
  }
  PartialShape shape = list.element_shape().merge(element_shape_input(c, 1));
  for (const Array& item : list.items())
    if (item.valid()) shape = shape.merge(item.shape());
  if (!shape.is_fully_known()) {
    throw InvalidArgumentError(
        n == 0 ? cat("Tried to stack elements of an empty list with non-fully-defined "
                     "element_shape: ",
                     shape)
               : cat("Tried to stack list which only contains uninitialized tensors and has a "
                     "non-fully-defined element_shape: ",
                     shape));
  }
  const Shape element = shape.to_shape();
  Array& out = c.allocate_output(0, with_first(n, element));
  const std::int64_t size = element.num_elements();
  join_items(
      c, [&](std::int64_t i) -> const Array& { return list.items()[static_cast<std::size_t>(i)]; },
      n, [&](std::int64_t) { return size; }, out);
}

void gather(KernelContext& c) {
  const TensorList& list = list_input(c, 0);
  const IntInput indices(c, 1, "indices");
  const std::int64_t n = indices.size();
  const auto length = static_cast<std::int64_t>(list.items().size());
  PartialShape shape = list.element_shape().merge(element_shape_input(c, 2));
  for (std::int64_t i = 0; i < n; ++i) {
    if (indices[i] < 0 || indices[i] >= length) {
      throw InvalidArgumentError(
          cat("Trying to gather element ", indices[i], " in a list with ", length, " elements."));
    }
    const Array& item = list.items()[static_cast<std::size_t>(indices[i])];
    if (item.valid()) shape = shape.merge(item.shape());
  }
  if (!shape.is_fully_known()) {
    throw InvalidArgumentError(
        n == 0 ? cat("Tried to gather 0-elements from a list with non-fully-defined shape: ", shape)
               : cat("Tried to gather uninitialized tensors from a list with non-fully-defined "
                     "element_shape: ",
                     shape));
  }
  const Shape element = shape.to_shape();
  Array& out = c.allocate_output(0, with_first(n, element));
  const std::int64_t size = element.num_elements();
  join_items(
      c,
      [&](std::int64_t i) -> const Array& {
        return list.items()[static_cast<std::size_t>(indices[i])];
      },
      n, [&](std::int64_t) { return size; }, out);
}

// What the shapes of all items that are set have in front; -1 if they differ or there are none.
std::int64_t common_leading_size(const TensorList& list) {
  std::int64_t common = -1;
  for (const Array& item : list.items()) {
    if (!item.valid() || item.dim(0) == common) continue;
    if (common >= 0) return -1;
    common = item.dim(0);
  }
  return common;
}

// What the shape of an item that was never set has in front; `common` is what the others have.
std::int64_t leading_size(const KernelContext& c, const PartialShape& element, std::int64_t common,
                          std::int64_t i) {
  const bool given = c.num_inputs() > 2;
  const std::int64_t count = given ? c.input(2).num_elements() : 0;
  if (i < count) {
    const std::int64_t size = IntInput(c, 2, "leading_dims")[i];
    if (size < 0)
      throw InvalidArgumentError(cat("leading_dims[", i, "] = ", size, " is negative."));
    return size;
  }
  if (element.has_rank() && element.dim(0) >= 0) return element.dim(0);
  if (common >= 0) return common;
  throw InvalidArgumentError(cat("List contains uninitialized tensor at index ", i,
                                 " but leading_dims has only ", count, " elements."));
}

void concat(KernelContext& c) {
  const TensorList& list = list_input(c, 0);
  const auto n = static_cast<std::int64_t>(list.items().size());
  const bool by_input = c.num_inputs() > 1;
  PartialShape element = list.element_shape().merge(
      by_input ? element_shape_input(c, 1) : c.attr<PartialShape>("element_shape"));
  if (element.has_rank() && element.rank() < 1) {
    throw InvalidArgumentError(
        "Concat requires elements to be at least vectors, found scalars instead.");
  }
  PartialShape rest = without_first(element);
  if (n == 0 && !rest.is_fully_known()) {
    throw InvalidArgumentError(
        cat("All except the first dimension must be fully defined when concating an empty tensor "
            "list. element_shape: ",
            element));
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const Array& item = list.items()[static_cast<std::size_t>(i)];
    if (!item.valid()) continue;
    if (item.rank() < 1) {
      throw InvalidArgumentError(
          cat("Concat saw a scalar shape at index ", i, " but requires at least vectors."));
    }
    rest = rest.merge(without_first(item.shape()));
  }
  if (!rest.is_fully_known()) {
    throw InvalidArgumentError(
        cat("Trying to concat list with only uninitialized tensors but "
            "element_shape_except_first_dim is not fully defined: ",
            rest));
  }
  const Shape row = rest.to_shape();
  const std::int64_t common = common_leading_size(list);
  Array& lengths = c.allocate_output(1, Shape{n});
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Array& item = list.items()[static_cast<std::size_t>(i)];
    const std::int64_t length = item.valid() ? item.dim(0) : leading_size(c, element, common, i);
    lengths.data<std::int64_t>()[i] = length;
    if (__builtin_add_overflow(total, length, &total)) {
      throw InvalidArgumentError(cat("The ", n,
                                     " items have more than 2^63 rows in all; the one at ", i,
                                     " has ", length, "."));
    }
  }
  Array& out = c.allocate_output(0, with_first(total, row));
  const std::int64_t size = row.num_elements();
  join_items(
      c, [&](std::int64_t i) -> const Array& { return list.items()[static_cast<std::size_t>(i)]; },
      n, [&](std::int64_t i) { return lengths.data<std::int64_t>()[i] * size; }, out);
}

// ---- From one tensor ----

void from_tensor(KernelContext& c) {
  const Array& tensor = c.input(0);
  const PartialShape shape = element_shape_input(c, 1);
  check_rows(tensor, shape);
  auto list = make_ref<TensorList>(tensor.dtype(), shape);
  list->items() = rows_of(tensor);
  c.set_output(0, TensorList::wrap(std::move(list)));
}

void split(KernelContext& c) {
  const Array& tensor = c.input(0);
  const Array& lengths = c.input(2);
  const PartialShape shape = element_shape_input(c, 1);
  if (lengths.rank() != 1) {
    throw InvalidArgumentError(
        cat("Expected lengths to be a vector, received shape: ", lengths.shape()));
  }
  if (tensor.rank() < 1) {
    throw InvalidArgumentError(
        cat("Tensor must be at least a vector, but saw shape: ", tensor.shape()));
  }
  if (shape.has_rank() && (shape.rank() != tensor.rank() ||
                           !without_first(shape).is_compatible(without_first(tensor.shape())))) {
    throw InvalidArgumentError(
        cat("tensor shape ", tensor.shape(), " is not compatible with element_shape ", shape));
  }
  auto list = make_ref<TensorList>(tensor.dtype(), shape);
  std::int64_t begin = 0;
  const auto* sizes = lengths.data<std::int64_t>();
  for (std::int64_t i = 0; i < lengths.num_elements(); ++i) {
    if (sizes[i] < 0) throw InvalidArgumentError(cat("Invalid value in lengths: ", sizes[i]));
    if (sizes[i] > tensor.dim(0) - begin) {
      throw InvalidArgumentError(cat("Attempting to slice [", begin, ", ", begin + sizes[i],
                                     "] from tensor with length ", tensor.dim(0)));
    }
    list->items().push_back(tensor.slice_outer(begin, begin + sizes[i]));
    begin += sizes[i];
  }
  if (begin != tensor.dim(0)) {
    throw InvalidArgumentError(
        cat("Unused values in tensor. Length of tensor: ", tensor.dim(0), " Values used: ", begin));
  }
  c.set_output(0, TensorList::wrap(std::move(list)));
}

// Puts row i of `tensor` at indices[i], where the list must be long enough or may grow.
void scatter_rows(std::vector<Array>& items, const Array& tensor, const Array& indices,
                  std::int64_t fixed_size) {
  if (indices.rank() != 1) {
    throw InvalidArgumentError(
        cat("Expected indices to be a vector, but received shape: ", indices.shape()));
  }
  if (indices.num_elements() != tensor.dim(0)) {
    throw InvalidArgumentError(cat("Invalid number of rows in input tensor. Expected: ",
                                   indices.num_elements(), " Actual: ", tensor.dim(0)));
  }
  const IntInput at(indices, "indices");
  std::int64_t longest = static_cast<std::int64_t>(items.size());
  for (std::int64_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0)
      throw InvalidArgumentError("Indices in TensorListScatter must all be non-negative.");
    if (fixed_size >= 0 && at[i] >= fixed_size) {
      throw InvalidArgumentError(cat("TensorListScatter: Trying to scatter at index ", at[i],
                                     " in list with size ", fixed_size));
    }
    longest = std::max(longest, at[i] + 1);
  }
  resize_list(items, std::max(longest, fixed_size));
  const std::vector<Array> rows = rows_of(tensor);
  for (std::int64_t i = 0; i < at.size(); ++i)
    items[static_cast<std::size_t>(at[i])] = rows[static_cast<std::size_t>(i)];
}

void scatter(KernelContext& c) {
  const Array& tensor = c.input(0);
  const PartialShape shape = element_shape_input(c, 2);
  const std::int64_t size = c.num_inputs() > 3 ? scalar_int_input(c, 3, "num_elements") : -1;
  if (size < -1) {
    throw InvalidArgumentError(cat("TensorListScatter expects num_elements >= -1, found: ", size));
  }
  check_rows(tensor, shape);
  auto list = make_ref<TensorList>(tensor.dtype(), shape);
  scatter_rows(list->items(), tensor, c.input(1), size);
  c.set_output(0, TensorList::wrap(std::move(list)));
}

void scatter_into(KernelContext& c) {
  list_input(c, 0);
  const Array& tensor = c.input(1);
  check_rows(tensor, PartialShape::unknown());
  ChangedList list(c);
  scatter_rows(list.items(), tensor, c.input(2), -1);
  list.finish(c);
}

const KernelRegistration kStack{{.op = "TensorListStack", .run = stack}};
const KernelRegistration kGather{{.op = "TensorListGather", .run = gather}};
const KernelRegistration kConcat{{.op = "TensorListConcat", .run = concat}};
const KernelRegistration kConcatV2{{.op = "TensorListConcatV2", .run = concat}};
const KernelRegistration kFromTensor{{.op = "TensorListFromTensor", .run = from_tensor}};
const KernelRegistration kSplit{{.op = "TensorListSplit", .run = split}};
const KernelRegistration kScatter{{.op = "TensorListScatter", .run = scatter}};
const KernelRegistration kScatterV2{{.op = "TensorListScatterV2", .run = scatter}};
const KernelRegistration kScatterInto{
    {.op = "TensorListScatterIntoExistingList", .run = scatter_into}};

}  // namespace
}  // namespace tandem::cpu
