#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/core/variant.h"

namespace tandem {

/// A list of values of one dtype: what the TensorList ops pass around as a variant. An item that
/// was never set is an empty Array and counts as zeros.
class TANDEM_EXPORT TensorList final : public VariantValue {
 public:
  TensorList(DType dtype, PartialShape element_shape, std::int64_t max_items = -1)
      : dtype_(dtype), element_shape_(std::move(element_shape)), max_items_(max_items) {}

  DType dtype() const { return dtype_; }
  const PartialShape& element_shape() const { return element_shape_; }
  /// How many items may be pushed; -1: any number.
  std::int64_t max_items() const { return max_items_; }
  std::vector<Array>& items() { return items_; }
  const std::vector<Array>& items() const { return items_; }
  Ref<TensorList> copy() const;

  std::string type_name() const override { return "tensorflow::TensorList"; }
  std::string debug_string() const override;

  /// The list in a scalar variant array; throws InvalidArgumentError if it holds something else.
  static TensorList& of(const Array& handle);
  static Array wrap(Ref<TensorList> list);

 private:
  DType dtype_;
  PartialShape element_shape_;
  std::int64_t max_items_;
  std::vector<Array> items_;
};

}  // namespace tandem
