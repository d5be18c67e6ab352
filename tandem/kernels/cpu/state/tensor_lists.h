#pragma once

#include <cstdint>
#include <vector>

#include "tandem/graph/kernel_context.h"
#include "tandem/graph/tensor_list.h"

namespace tandem::cpu {

/// An element shape given as an input: a vector (-1 for unknown sizes), or the scalar -1 for any
/// shape.
PartialShape element_shape_input(const KernelContext& c, int input);

/// The list in input `input`, whose items must be of the attribute element_dtype.
const TensorList& list_input(const KernelContext& c, int input);

/// The list of input 0 to change, as what it will be forwarded as: itself if nothing else can see
/// it, else a copy (of references, not of items).
class ChangedList {
 public:
  explicit ChangedList(KernelContext& c);
  std::vector<Array>& items() { return list_->items(); }
  TensorList& list() { return *list_; }
  /// Sets the list as output 0.
  void finish(KernelContext& c) { c.set_output(0, std::move(handle_)); }

 private:
  Array handle_;
  TensorList* list_;
};

/// Makes a list longer or shorter. Throws ResourceExhaustedError for absurd sizes.
void resize_list(std::vector<Array>& items, std::int64_t size);

/// The rows of `tensor`, which share its memory.
std::vector<Array> rows_of(const Array& tensor);

/// Throws InvalidArgumentError unless the tensor has rows, and `element_shape` fits them.
void check_rows(const Array& tensor, const PartialShape& element_shape);

}  // namespace tandem::cpu
