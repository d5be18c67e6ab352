#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/tensor_list.h"

namespace tandem {
namespace {

PartialShape element_shape(const Array& shape) {
  const auto at = [&](std::int64_t i) -> std::int64_t {
    return shape.dtype() == DType::kInt64 ? shape.data<std::int64_t>()[i]
                                          : shape.data<std::int32_t>()[i];
  };
  if (shape.rank() == 0) {
    if (at(0) != -1)
      throw InvalidArgumentError(
          cat("The element shape of a list must be a vector, or -1, but is ", at(0), "."));
    return PartialShape::unknown();
  }
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) dims.push_back(at(i));
  return PartialShape(std::move(dims));
}

void empty_list(KernelContext& c) {
  c.set_output(0, TensorList::wrap(make_ref<TensorList>(c.type_attr("element_dtype"),
                                                        element_shape(c.input(0)))));
}

// The list of input 0 to change: itself if nobody else can see it, else a copy (of references, not
// of elements).
Ref<TensorList> take_list(KernelContext& c) {
  TensorList& list = TensorList::of(c.input(0));
  if (c.may_overwrite_input(0) && list.unique()) return Ref<TensorList>(&list);
  return list.copy();
}

void push_back(KernelContext& c) {
  const Array& element = c.input(1);
  const TensorList& before = TensorList::of(c.input(0));
  if (before.dtype() != element.dtype()) {
    throw InvalidArgumentError(cat("A list of ", before.dtype(),
                                   " cannot take an element of dtype ", element.dtype(), "."));
  }
  if (!before.element_shape().is_compatible(element.shape())) {
    throw InvalidArgumentError(cat("A list of elements of shape ", before.element_shape(),
                                   " cannot take one of shape ", element.shape(), "."));
  }
  Ref<TensorList> list = take_list(c);
  list->items().push_back(element);
  c.set_output(0, TensorList::wrap(std::move(list)));
}

void pop_back(KernelContext& c) {
  if (TensorList::of(c.input(0)).items().empty())
    throw InvalidArgumentError("Trying to pop from an empty list.");
  Ref<TensorList> list = take_list(c);
  Array element = std::move(list->items().back());
  list->items().pop_back();
  c.set_output(1, std::move(element));
  c.set_output(0, TensorList::wrap(std::move(list)));
}

void length(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<std::int32_t>() =
      static_cast<std::int32_t>(TensorList::of(c.input(0)).items().size());
}

const KernelRegistration kEmpty{{.op = "EmptyTensorList", .run = empty_list}};
const KernelRegistration kPush{{.op = "TensorListPushBack", .run = push_back}};
const KernelRegistration kPop{{.op = "TensorListPopBack", .run = pop_back}};
const KernelRegistration kLength{{.op = "TensorListLength", .run = length}};

}  // namespace
}  // namespace tandem
