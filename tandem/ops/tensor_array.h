#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/structure.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

struct TensorArrayOptions {
  bool dynamic_size = false;  ///< writing behind the end makes the array longer
  /// What all elements are like; as far as it is known, elements that were not written are zeros.
  PartialShape element_shape = PartialShape::unknown();
  bool infer_shape = true;  ///< elements have one shape: that of the first one written
};

/// Tensors by number, written and read one by one: what loops collect.
///
/// A value like Tensor: cheap to copy, traced in functions, a loop variable, an argument and a
/// result. Writing gives a new array and leaves the old one as it was, so keep the result; what
/// changed is made in the old one's memory where nothing else holds it. Differentiable.
///
///     td::TensorArray squares(td::float32, 10);
///     auto [i, all] = td::while_loop(
///         [](td::Tensor k, td::TensorArray) { return k < 10; },
///         [](td::Tensor k, td::TensorArray a) {
///           return std::pair(k + 1, a.write(k, td::cast(k * k, td::float32)));
///         },
///         std::pair(td::Tensor(0), squares));
///     td::Tensor y = all.stack();  // [0. 1. 4. … 81.]
///
/// Errors are InvalidArgumentError: another dtype or shape than the elements', a number outside of
/// the array.
class TANDEM_EXPORT TensorArray {
 public:
  TensorArray() = default;
  explicit TensorArray(DType dtype, const Operand& size = 0,
                       const TensorArrayOptions& options = {});

  bool defined() const { return list_.defined(); }
  DType dtype() const { return dtype_; }
  bool dynamic_size() const { return options_.dynamic_size; }
  /// What is known of every element's shape.
  const PartialShape& element_shape() const { return options_.element_shape; }
  /// How many elements there are, int32.
  Tensor size() const;

  /// Element `index`, an int32 scalar.
  Tensor read(const Operand& index) const;
  TensorArray write(const Operand& index, const Operand& value) const;
  /// All elements, [size, element…].
  Tensor stack() const;
  /// An array of the rows of `value`, in place of what is there.
  TensorArray unstack(const Tensor& value) const;
  /// The elements with these numbers, an int32 vector, stacked.
  Tensor gather(const Tensor& indices) const;
  /// The array with row i of `value` as element indices[i].
  TensorArray scatter(const Tensor& indices, const Tensor& value) const;
  /// The elements joined along their first axis, whose sizes may differ.
  Tensor concat() const;
  /// An array of pieces of `value` along its first axis, `lengths[i]` rows each.
  TensorArray split(const Tensor& value, const Tensor& lengths) const;
  TensorArray identity() const { return *this; }

  /// The list of elements, a variant scalar; see tandem/ops/list_ops.h.
  const Tensor& flow() const { return list_; }
  /// This array with another list of elements.
  TensorArray with_flow(Tensor list) const;

 private:
  TensorArray changed(Tensor list, const PartialShape& element_shape) const;
  void check_dtype(const Tensor& value, const char* what) const;

  DType dtype_ = DType::kInvalid;
  TensorArrayOptions options_;
  Tensor list_;
};

template <>
struct Structure<TensorArray> {
  static void write(const TensorArray& x, StructureWriter& w) {
    w.key += 'L' + std::to_string(static_cast<int>(x.dtype())) + (x.dynamic_size() ? 'd' : 'f');
    Structure<Tensor>::write(x.flow(), w);
  }
  static TensorArray read(const TensorArray& like, StructureReader& r) {
    return like.with_flow(r.next());
  }
};

}  // namespace tandem
