#include "tandem/graph/tensor_list.h"

#include "tandem/core/error.h"

namespace tandem {

Ref<TensorList> TensorList::copy() const {
  auto twin = make_ref<TensorList>(dtype_, element_shape_, max_items_);
  twin->items_ = items_;
  return twin;
}

std::string TensorList::debug_string() const {
  return cat("list of ", items_.size(), " ", dtype_, " tensors");
}

TensorList& TensorList::of(const Array& handle) {
  if (handle.dtype() != DType::kVariant || handle.rank() != 0) {
    throw InvalidArgumentError(cat("Input list must be a scalar saw: ", handle.shape()));
  }
  auto* list = handle.data<Variant>()->as<TensorList>();
  if (!list) throw InvalidArgumentError("Input handle is not a list.");
  return *list;
}

Array TensorList::wrap(Ref<TensorList> list) { return Array::scalar(Variant(std::move(list))); }

}  // namespace tandem
