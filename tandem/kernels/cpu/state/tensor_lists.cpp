// Lists of tensors, item by item.

#include "tandem/kernels/cpu/state/tensor_lists.h"

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/optional_value.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kLongestList = 100'000'000;

void check_dtype(DType op, DType list) {
  if (op != list) {
    throw InvalidArgumentError(
        cat("Invalid data types; op elements ", op, " but list elements ", list));
  }
}

}  // namespace

PartialShape element_shape_input(const KernelContext& c, int input) {
  const Array& shape = c.input(input);
  if (shape.rank() > 1) {
    throw InvalidArgumentError(cat("Shape must be at most rank 1 but is rank ", shape.rank()));
  }
  const IntInput dims(shape, "element_shape");
  if (shape.rank() == 0) {
    if (dims[0] != -1) {
      throw InvalidArgumentError(
          "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    }
    return PartialShape::unknown();
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < -1) throw InvalidArgumentError(cat("Dimension ", dims[i], " must be >= -1"));
    sizes.push_back(dims[i]);
  }
  return PartialShape(std::move(sizes));
}

const TensorList& list_input(const KernelContext& c, int input) {
  const TensorList& list = TensorList::of(c.input(input));
  check_dtype(c.type_attr("element_dtype"), list.dtype());
  return list;
}

ChangedList::ChangedList(KernelContext& c) : list_(&TensorList::of(c.input(0))) {
  if (c.may_overwrite_input(0) && list_->unique()) {
    handle_ = c.input(0);
    return;
  }
  Ref<TensorList> copy = list_->copy();
  list_ = copy.get();
  handle_ = TensorList::wrap(std::move(copy));
}

void resize_list(std::vector<Array>& items, std::int64_t size) {
  if (size > kLongestList) {
    throw ResourceExhaustedError(
        cat("A list of ", size, " tensors is too long: at most ", kLongestList, " are possible."));
  }
  items.resize(static_cast<std::size_t>(size));
}

std::vector<Array> rows_of(const Array& tensor) {
  std::vector<Array> rows;
  rows.reserve(static_cast<std::size_t>(tensor.dim(0)));
  const std::vector<std::int64_t> dims = tensor.shape().to_vector();
  const Shape row(std::vector<std::int64_t>(dims.begin() + 1, dims.end()));
  const std::int64_t size = row.num_elements();
  for (std::int64_t i = 0; i < tensor.dim(0); ++i) {
    rows.emplace_back(tensor.dtype(), row, tensor.buffer(),
                      element_at(tensor.raw_data(), tensor.dtype(), i * size));
  }
  return rows;
}

void check_rows(const Array& tensor, const PartialShape& element_shape) {
  if (tensor.rank() == 0)
    throw InvalidArgumentError("Tensor must be at least a vector, but saw shape: []");
  const std::vector<std::int64_t> dims = tensor.shape().to_vector();
  const PartialShape row(std::vector<std::int64_t>(dims.begin() + 1, dims.end()));
  if (!element_shape.is_compatible(row)) {
    throw InvalidArgumentError(
        cat("Specified a list with shape ", element_shape, " from a tensor with shape ", row));
  }
}

namespace {

void empty_list(KernelContext& c) {
  const std::int64_t most = scalar_int_input(c, 1, "max_num_elements");
  c.set_output(0, TensorList::wrap(make_ref<TensorList>(c.type_attr("element_dtype"),
                                                        element_shape_input(c, 0), most)));
}

void reserve(KernelContext& c) {
  const Array& count = c.input(1);
  if (count.rank() != 0) {
    throw InvalidArgumentError(
        cat("The num_elements to reserve must be a tensor size 1, but got ", count.shape()));
  }
  const std::int64_t n = scalar_int_input(c, 1, "num_elements");
  if (n < 0) {
    throw InvalidArgumentError(
        cat("The num_elements to reserve must be a non negative number, but got ", n));
  }
  auto list = make_ref<TensorList>(c.type_attr("element_dtype"), element_shape_input(c, 0));
  resize_list(list->items(), n);
  c.set_output(0, TensorList::wrap(std::move(list)));
}

void check_item(const TensorList& list, const Array& item) {
  check_dtype(item.dtype(), list.dtype());
  if (!list.element_shape().is_compatible(item.shape())) {
    throw InvalidArgumentError(
        cat("Tried to append a tensor with incompatible shape to a list. Op element shape: ",
            item.shape(), " list shape: ", list.element_shape()));
  }
  if (list.max_items() != -1 &&
      static_cast<std::int64_t>(list.items().size()) >= list.max_items()) {
    throw InvalidArgumentError(cat("Tried to push item into a full list list size: ",
                                   list.items().size(), " max_num_elements: ", list.max_items()));
  }
}

void push_back(KernelContext& c) {
  check_item(TensorList::of(c.input(0)), c.input(1));
  ChangedList list(c);
  list.items().push_back(c.input(1));
  list.finish(c);
}

void push_back_batch(KernelContext& c) {
  const Array& handles = c.input(0);
  const Array& tensor = c.input(1);
  if (tensor.rank() < 1) {
    throw InvalidArgumentError(
        cat("Expected tensor to be at least a vector, but saw shape: ", tensor.shape()));
  }
  if (tensor.dim(0) != handles.num_elements()) {
    throw InvalidArgumentError(cat("Expected tensor.shape[0] == input_handles.size, but saw ",
                                   tensor.dim(0), " vs. ", handles.num_elements()));
  }
  const std::vector<Array> rows = rows_of(tensor);
  Array out(DType::kVariant, handles.shape());
  for (std::int64_t i = 0; i < handles.num_elements(); ++i) {
    const auto* list = handles.data<Variant>()[i].as<TensorList>();
    if (!list) throw InvalidArgumentError(cat("Input handle at index ", i, " is not a list."));
    check_item(*list, rows[static_cast<std::size_t>(i)]);
    Ref<TensorList> longer = list->copy();
    longer->items().push_back(rows[static_cast<std::size_t>(i)]);
    out.data<Variant>()[i] = Variant(std::move(longer));
  }
  c.set_output(0, std::move(out));
}

// Zeros for an item that was never set; its shape may also show from the others.
Array unset_item(KernelContext& c, const TensorList& list, int shape_input) {
  PartialShape shape = list.element_shape().merge(element_shape_input(c, shape_input));
  for (const Array& item : list.items()) {
    if (shape.is_fully_known()) break;
    if (item.valid()) shape = shape.merge(item.shape());
  }
  if (!shape.is_fully_known()) {
    throw InvalidArgumentError(cat(
        "Trying to read an uninitialized tensor but element_shape is not fully defined: ", shape,
        " and no list element is set."));
  }
  return Array::zeros(list.dtype(), shape.to_shape());
}

void pop_back(KernelContext& c) {
  const TensorList& before = list_input(c, 0);
  if (before.items().empty()) throw InvalidArgumentError("Trying to pop from an empty list.");
  Array item = before.items().back();
  if (!item.valid()) item = unset_item(c, before, 1);
  ChangedList list(c);
  list.items().pop_back();
  list.finish(c);
  c.set_output(1, std::move(item));
}

void get_item(KernelContext& c) {
  const TensorList& list = list_input(c, 0);
  const std::int64_t index = scalar_int_input(c, 1, "index");
  const auto size = static_cast<std::int64_t>(list.items().size());
  if (index < 0 || index >= size) {
    throw InvalidArgumentError(
        cat("Trying to access element ", index, " in a list with ", size, " elements."));
  }
  const Array& item = list.items()[static_cast<std::size_t>(index)];
  c.set_output(0, item.valid() ? item : unset_item(c, list, 2));
}

void set_item(KernelContext& c) {
  const Array& item = c.input(2);
  const TensorList& before = list_input(c, 0);
  const std::int64_t index = scalar_int_input(c, 1, "index");
  const auto size = static_cast<std::int64_t>(before.items().size());
  const bool grows = c.attr<bool>("resize_if_index_out_of_bounds") && index >= size;
  if (index < 0 || (index >= size && !grows)) {
    throw InvalidArgumentError(
        cat("Trying to modify element ", index, " in a list with ", size, " elements."));
  }
  if (!before.element_shape().is_compatible(item.shape())) {
    throw InvalidArgumentError(
        cat("Tried to set a tensor with incompatible shape at a list index. Item element shape: ",
            item.shape(), " list shape: ", before.element_shape()));
  }
  ChangedList list(c);
  if (grows) resize_list(list.items(), index + 1);
  list.items()[static_cast<std::size_t>(index)] = item;
  list.finish(c);
}

void resize(KernelContext& c) {
  const std::int64_t size = scalar_int_input(c, 1, "size");
  if (size < 0) {
    throw InvalidArgumentError(cat("TensorListSlice expects size to be non-negative. Got: ", size));
  }
  ChangedList list(c);
  resize_list(list.items(), size);
  list.finish(c);
}

void length(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<std::int32_t>() =
      static_cast<std::int32_t>(TensorList::of(c.input(0)).items().size());
}

void element_shape(KernelContext& c) {
  const PartialShape& shape = TensorList::of(c.input(0)).element_shape();
  const auto put = [&](Array& out, std::int64_t i, std::int64_t size) {
    if (out.dtype() == DType::kInt64) {
      out.data<std::int64_t>()[i] = size;
    } else if (size > INT32_MAX) {
      throw InvalidArgumentError(cat("Shape ", shape, " does not fit into int32: ask for int64."));
    } else {
      out.data<std::int32_t>()[i] = static_cast<std::int32_t>(size);
    }
  };
  if (!shape.has_rank()) return put(c.allocate_output(0, Shape{}), 0, -1);
  Array& out = c.allocate_output(0, Shape{shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) put(out, i, shape.dim(i));
}

void concat_lists(KernelContext& c) {
  const Array& a = c.input(0);
  const Array& b = c.input(1);
  if (!(a.shape() == b.shape())) {
    throw InvalidArgumentError(cat(
        "input_a and input_b must have the same shape, but saw: ", a.shape(), " vs. ", b.shape()));
  }
  const DType dtype = c.type_attr("element_dtype");
  Array out(DType::kVariant, a.shape());
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    const auto* first = a.data<Variant>()[i].as<TensorList>();
    const auto* second = b.data<Variant>()[i].as<TensorList>();
    if (!first || !second) {
      throw InvalidArgumentError(
          cat(first ? "input_b" : "input_a", " at index ", i, " is not a list."));
    }
    if (first->dtype() != dtype || second->dtype() != dtype) {
      const bool at_first = first->dtype() != dtype;
      throw InvalidArgumentError(cat(at_first ? "input_a[" : "input_b[", i,
                                     "].dtype != element_dtype.  Saw: ",
                                     at_first ? first->dtype() : second->dtype(), " vs. ", dtype));
    }
    if (!(first->element_shape() == second->element_shape())) {
      throw InvalidArgumentError(
          cat("input_a and input_b TensorList element shapes are not identical at index ", i,
              ".  Saw ", first->element_shape(), " vs. ", second->element_shape()));
    }
    Ref<TensorList> both = first->copy();
    both->items().insert(both->items().end(), second->items().begin(), second->items().end());
    out.data<Variant>()[i] = Variant(std::move(both));
  }
  c.set_output(0, std::move(out));
}

Array zero_array(const Array& x);

std::vector<Array> zero_arrays(const std::vector<Array>& values) {
  std::vector<Array> zeros;
  for (const Array& value : values) zeros.push_back(zero_array(value));
  return zeros;
}

// Zeros like a list or an optional: one of zeros. Like anything else that a variant may hold:
// nothing.
Variant zero_variant(const Variant& x) {
  if (const auto* list = x.as<TensorList>()) {
    auto zeros = make_ref<TensorList>(list->dtype(), list->element_shape(), list->max_items());
    zeros->items() = zero_arrays(list->items());
    return Variant(std::move(zeros));
  }
  if (const auto* optional = x.as<OptionalValue>()) {
    return Variant(optional->has_value()
                       ? make_ref<OptionalValue>(zero_arrays(optional->components()))
                       : make_ref<OptionalValue>());
  }
  return {};
}

Array zero_array(const Array& x) {
  if (!x.valid()) return x;
  if (x.dtype() != DType::kVariant) return Array::zeros(x.dtype(), x.shape());
  Array zeros(DType::kVariant, x.shape());
  for (std::int64_t i = 0; i < x.num_elements(); ++i)
    zeros.data<Variant>()[i] = zero_variant(x.data<Variant>()[i]);
  return zeros;
}

void zero_variants(KernelContext& c) { c.set_output(0, zero_array(c.input(0))); }

const KernelRegistration kEmpty{{.op = "EmptyTensorList", .run = empty_list}};
const KernelRegistration kReserve{{.op = "TensorListReserve", .run = reserve}};
const KernelRegistration kPush{{.op = "TensorListPushBack", .run = push_back}};
const KernelRegistration kPushBatch{{.op = "TensorListPushBackBatch", .run = push_back_batch}};
const KernelRegistration kPop{{.op = "TensorListPopBack", .run = pop_back}};
const KernelRegistration kGet{{.op = "TensorListGetItem", .run = get_item}};
const KernelRegistration kSet{{.op = "TensorListSetItem", .run = set_item}};
const KernelRegistration kResize{{.op = "TensorListResize", .run = resize}};
const KernelRegistration kLength{{.op = "TensorListLength", .run = length}};
const KernelRegistration kElementShape{{.op = "TensorListElementShape", .run = element_shape}};
const KernelRegistration kConcatLists{{.op = "TensorListConcatLists", .run = concat_lists}};
const KernelRegistration kZerosLike{{.op = "ZerosLike",
                                     .name = "variants",
                                     .types = {{"T", DTypeSet{DType::kVariant}}},
                                     .priority = 10,
                                     .run = zero_variants}};

}  // namespace
}  // namespace tandem::cpu
