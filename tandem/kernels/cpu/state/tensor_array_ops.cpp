// The ops on TensorArrays, and on stacks: what TensorFlow 1 loops keep from one iteration to
// others.

#include <algorithm>
#include <mutex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/state/tensor_array.h"
#include "tandem/kernels/cpu/state/tensor_lists.h"

namespace tandem::cpu {

namespace {

// The resource of input 0, which must be a T.
template <class T>
T& resource_input(const KernelContext& c) {
  const Array& handle = c.input(0);
  const auto* element = handle.dtype() == DType::kResource && handle.num_elements() == 1
                            ? handle.data<ResourceHandle>()
                            : nullptr;
  auto* resource = element ? dynamic_cast<T*>(element->resource()) : nullptr;
  if (!resource)
    throw InvalidArgumentError("The handle is not one of the kind that this op takes.");
  return *resource;
}

std::string name_or(const KernelContext& c, const char* attr) {
  const auto& given = c.attr<std::string>(attr);
  return given.empty() ? std::string(c.node_name()) : given;
}

void flow(KernelContext& c, int output, int input) { c.set_output(output, c.input(input)); }

void make_array(KernelContext& c) {
  TensorArray::Options options;
  options.dtype = c.attr<DType>("dtype");
  options.element_shape = c.attr<PartialShape>("element_shape");
  options.dynamic_size = c.attr<bool>("dynamic_size");
  options.clear_after_read = c.attr<bool>("clear_after_read");
  options.identical_element_shapes = c.attr<bool>("identical_element_shapes");
  const std::string name = name_or(c, "tensor_array_name");
  const std::int64_t size = scalar_int_input(c, 0, "size");
  const DType dtype = options.dtype;
  auto array = make_ref<TensorArray>(name, size, std::move(options));
  c.set_output(0, make_handle(c, std::move(array), name, "TensorArray", dtype));
  *c.allocate_output(1, Shape{}).data<float>() = 0;
}

void gradient(KernelContext& c) {
  auto& array = resource_input<TensorArray>(c);
  std::vector<std::int64_t> prepend;
  if (c.num_inputs() > 2) {
    const IntInput dims(c, 2, "shape_to_prepend");
    for (std::int64_t i = 0; i < dims.size(); ++i) prepend.push_back(dims[i]);
  }
  Ref<TensorArray> found = array.gradient(c.attr<std::string>("source"), prepend);
  const std::string name = found->name();
  c.set_output(0, make_handle(c, std::move(found), name, "TensorArray", array.dtype()));
  flow(c, 1, 1);
}

void write(KernelContext& c) {
  resource_input<TensorArray>(c).write(scalar_int_input(c, 1, "index"), c.input(2));
  flow(c, 0, 3);
}

void check_dtype(const TensorArray& array, DType wanted) {
  if (array.dtype() != wanted) {
    throw InvalidArgumentError(
        cat("TensorArray dtype is ", array.dtype(), " but Op requested dtype ", wanted, "."));
  }
}

void read(KernelContext& c) {
  auto& array = resource_input<TensorArray>(c);
  check_dtype(array, c.output_dtype(0));
  c.set_output(0, array.read(scalar_int_input(c, 1, "index")));
}

Shape joined_shape(std::int64_t first, const Shape& element, int from) {
  std::vector<std::int64_t> dims{first};
  for (int i = from; i < element.rank(); ++i) dims.push_back(element[i]);
  return Shape(dims);
}

void gather(KernelContext& c) {
  auto& array = resource_input<TensorArray>(c);
  check_dtype(array, c.output_dtype(0));
  const IntInput indices(c, 1, "indices");
  const auto& wanted = c.attr<PartialShape>("element_shape");
  if (indices.size() == 0) {
    if (!wanted.is_fully_known()) {
      throw UnimplementedError(cat("TensorArray has size zero, but element shape ", wanted,
                                   " is not fully defined. Currently only static shapes are "
                                   "supported when packing zero-size TensorArrays."));
    }
    c.allocate_output(0, joined_shape(0, wanted.to_shape(), 0));
    return;
  }
  std::vector<Array> values;
  for (std::int64_t i = 0; i < indices.size(); ++i) {
    values.push_back(array.read(indices[i]));
    if (!(values[0].shape() == values.back().shape())) {
      throw InvalidArgumentError(
          cat("TensorArray has inconsistent shapes.  Index 0 has shape: ", values[0].shape(),
              " but index ", i, " has shape: ", values.back().shape()));
    }
  }
  if (!wanted.is_compatible(values[0].shape())) {
    throw InvalidArgumentError(cat("TensorArray's elements have shape ", values[0].shape(),
                                   ", which is not the element_shape ", wanted, "."));
  }
  const Shape element = values[0].shape();
  Array& out = c.allocate_output(0, joined_shape(indices.size(), element, 0));
  for (std::size_t i = 0; i < values.size(); ++i) {
    copy_flat(c.intra_op(), out.dtype(),
              element_at(out.raw_data(), out.dtype(),
                         static_cast<std::int64_t>(i) * element.num_elements()),
              values[i].raw_data(), element.num_elements());
  }
}

void concat(KernelContext& c) {
  auto& array = resource_input<TensorArray>(c);
  check_dtype(array, c.output_dtype(0));
  const std::int64_t n = array.size();
  const auto& wanted = c.attr<PartialShape>("element_shape_except0");
  Array& lengths = c.allocate_output(1, Shape{n});
  if (n == 0) {
    if (!wanted.is_fully_known()) {
      throw UnimplementedError(cat("TensorArray has size zero, but element_shape_except0 ", wanted,
                                   " is not fully defined. Currently only static shapes are "
                                   "supported when concatenating zero-size TensorArrays."));
    }
    c.allocate_output(0, joined_shape(0, wanted.to_shape(), 0));
    return;
  }
  std::vector<Array> values;
  std::int64_t total = 0;
  Shape first;
  for (std::int64_t i = 0; i < n; ++i) {
    values.push_back(array.read(i));
    const Shape& shape = values.back().shape();
    if (shape.rank() < 1) {
      throw InvalidArgumentError(cat("Concat saw a scalar shape at index ", i,
                                     " but requires at least vectors.  Did you mean to call "
                                     "pack?"));
    }
    const Shape rest = joined_shape(0, shape, 1);
    if (i == 0) first = rest;
    if (!(rest == first)) {
      throw InvalidArgumentError(
          cat("TensorArray has inconsistent shapes.  Index 0 has shape: ", values[0].shape(),
              " but index ", i, " has shape: ", shape, " (excepting dimension 0)."));
    }
    lengths.data<std::int64_t>()[i] = shape[0];
    total += shape[0];
  }
  Array& out = c.allocate_output(0, joined_shape(total, values[0].shape(), 1));
  std::int64_t at = 0;
  for (const Array& value : values) {
    copy_flat(c.intra_op(), out.dtype(), element_at(out.raw_data(), out.dtype(), at),
              value.raw_data(), value.num_elements());
    at += value.num_elements();
  }
}

void scatter(KernelContext& c) {
  auto& array = resource_input<TensorArray>(c);
  const IntInput indices(c, 1, "indices");
  const Array& value = c.input(2);
  if (value.rank() < 1) {
    throw InvalidArgumentError(cat(
        "Input value for unpack must be at least a vector but received shape: ", value.shape()));
  }
  if (c.input(1).rank() != 1 || indices.size() != value.dim(0)) {
    throw InvalidArgumentError(cat("Expected len(indices) == values.shape[0], but saw: ",
                                   indices.size(), " vs. ", value.dim(0)));
  }
  std::int64_t largest = -1;
  for (std::int64_t i = 0; i < indices.size(); ++i) largest = std::max(largest, indices[i]);
  const std::int64_t size = array.size();
  if (largest >= size && !array.dynamic_size()) {
    throw InvalidArgumentError(
        cat("Max scatter index must be < array size (", largest, " vs. ", size, ")"));
  }
  const std::vector<Array> rows = rows_of(value);
  for (std::int64_t i = 0; i < indices.size(); ++i)
    array.write(indices[i], rows[static_cast<std::size_t>(i)]);
  flow(c, 0, 3);
}

void split(KernelContext& c) {
  auto& array = resource_input<TensorArray>(c);
  const Array& value = c.input(1);
  const Array& lengths = c.input(2);
  if (lengths.rank() != 1) {
    throw InvalidArgumentError(
        cat("Expected lengths to be a vector, received shape: ", lengths.shape()));
  }
  if (value.rank() < 1) {
    throw InvalidArgumentError(
        cat("Expected value to be at least a vector, but received shape: ", value.shape()));
  }
  const std::int64_t n = lengths.num_elements();
  const auto* sizes = lengths.data<std::int64_t>();
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (sizes[i] < 0 || sizes[i] > value.dim(0))
      throw InvalidArgumentError(cat("Invalid value in lengths: ", sizes[i]));
    total += sizes[i];
  }
  if (total != value.dim(0)) {
    throw InvalidArgumentError(
        cat("Expected sum of lengths to be equal to values.shape[0], but sum of lengths is ", total,
            " and value's shape is: ", value.shape()));
  }
  const std::int64_t size = array.size();
  const std::int64_t grown = array.dynamic_size() ? std::max(size, n) : size;
  if (grown != n) {
    throw InvalidArgumentError(
        cat("TensorArray's size is not equal to the size of lengths (", size, " vs. ", n,
            "), and the TensorArray is not marked as dynamically resizeable"));
  }
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    array.write(i, value.slice_outer(begin, begin + sizes[i]));
    begin += sizes[i];
  }
  flow(c, 0, 3);
}

void size(KernelContext& c) {
  const std::int64_t n = resource_input<TensorArray>(c).size();
  *c.allocate_output(0, Shape{}).data<std::int32_t>() = static_cast<std::int32_t>(n);
}

void close(KernelContext& c) { resource_input<TensorArray>(c).close(); }

// ---- Stacks ----

class Stack final : public Resource {
 public:
  Stack(std::string name, DType dtype, std::int64_t max_size)
      : name_(std::move(name)), dtype_(dtype), max_size_(max_size) {}
  DType dtype() const { return dtype_; }

  void push(const Array& value) {
    std::lock_guard lock(mutex_);
    check_open();
    if (max_size_ >= 0 && static_cast<std::int64_t>(values_.size()) >= max_size_) {
      throw InvalidArgumentError(
          cat("Stack[", name_, "] overflowed its max_size (", max_size_, ")"));
    }
    values_.push_back(value);
  }
  Array pop() {
    std::lock_guard lock(mutex_);
    check_open();
    if (values_.empty())
      throw InvalidArgumentError(cat("Stack[", name_, "] is empty when calling Pop()."));
    Array value = std::move(values_.back());
    values_.pop_back();
    return value;
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    values_.clear();
  }
  std::string debug_string() const override { return cat("stack ", name_); }

 private:
  void check_open() const {
    if (closed_) throw InvalidArgumentError(cat("Stack[", name_, "] has already been closed."));
  }
  const std::string name_;
  const DType dtype_;
  const std::int64_t max_size_;
  std::mutex mutex_;  // guards the below
  std::vector<Array> values_;
  bool closed_ = false;
};

void make_stack(KernelContext& c) {
  const std::string name = name_or(c, "stack_name");
  const DType dtype = c.attr<DType>("elem_type");
  const std::int64_t most = scalar_int_input(c, 0, "max_size");
  c.set_output(0, make_handle(c, make_ref<Stack>(name, dtype, most), name, "Stack", dtype));
}

void push(KernelContext& c) {
  auto& stack = resource_input<Stack>(c);
  if (c.input(1).dtype() != stack.dtype()) {
    throw InvalidArgumentError(
        cat("Must have type ", stack.dtype(), " but got ", c.input(1).dtype()));
  }
  stack.push(c.input(1));
  c.set_output(0, c.input(1));
}

void pop(KernelContext& c) {
  auto& stack = resource_input<Stack>(c);
  if (c.output_dtype(0) != stack.dtype()) {
    throw InvalidArgumentError(
        cat("The stack holds ", stack.dtype(), " but the op asks for ", c.output_dtype(0), "."));
  }
  c.set_output(0, stack.pop());
}

void close_stack(KernelContext& c) { resource_input<Stack>(c).close(); }

const KernelRegistration kArray{{.op = "TensorArrayV3", .run = make_array}};
const KernelRegistration kGrad{{.op = "TensorArrayGradV3", .run = gradient}};
const KernelRegistration kGradShape{{.op = "TensorArrayGradWithShape", .run = gradient}};
const KernelRegistration kWrite{{.op = "TensorArrayWriteV3", .run = write}};
const KernelRegistration kRead{{.op = "TensorArrayReadV3", .run = read}};
const KernelRegistration kGather{{.op = "TensorArrayGatherV3", .run = gather}};
const KernelRegistration kScatter{{.op = "TensorArrayScatterV3", .run = scatter}};
const KernelRegistration kConcat{{.op = "TensorArrayConcatV3", .run = concat}};
const KernelRegistration kSplit{{.op = "TensorArraySplitV3", .run = split}};
const KernelRegistration kSize{{.op = "TensorArraySizeV3", .run = size}};
const KernelRegistration kClose{{.op = "TensorArrayCloseV3", .run = close}};
const KernelRegistration kStack{{.op = "StackV2", .run = make_stack}};
const KernelRegistration kPush{{.op = "StackPushV2", .run = push}};
const KernelRegistration kPop{{.op = "StackPopV2", .run = pop}};
const KernelRegistration kCloseStack{{.op = "StackCloseV2", .run = close_stack}};

}  // namespace
}  // namespace tandem::cpu
