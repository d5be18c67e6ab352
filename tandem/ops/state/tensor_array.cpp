#include "tandem/ops/tensor_array.h"

#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

Tensor shape_tensor(const PartialShape& shape) {
  if (!shape.has_rank()) return Tensor(-1);
  std::vector<std::int32_t> dims;
  for (const std::int64_t d : shape.dims()) dims.push_back(static_cast<std::int32_t>(d));
  return Tensor::from(dims);
}

PartialShape row_shape(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return PartialShape::unknown();
  return PartialShape(std::vector<std::int64_t>(shape.dims().begin() + 1, shape.dims().end()));
}

Tensor as_int32(Tensor index) {
  return index.dtype() == int32 ? index : cast(std::move(index), int32);
}

Tensor run(std::string_view op, std::initializer_list<Tensor> inputs, const AttrMap& attrs = {}) {
  return raw_op(op, inputs, attrs)[0];
}

}  // namespace

TensorArray::TensorArray(DType dtype, const Operand& size, const TensorArrayOptions& options)
    : dtype_(dtype), options_(options) {
  list_ = list_ops::reserve(as_int32(Operand(size).take()), dtype, options_.element_shape);
}

TensorArray TensorArray::with_flow(Tensor list) const {
  TensorArray other = *this;
  other.list_ = std::move(list);
  return other;
}

TensorArray TensorArray::changed(Tensor list, const PartialShape& element_shape) const {
  TensorArray other = with_flow(std::move(list));
  if (!options_.element_shape.is_compatible(element_shape)) {
    throw InvalidArgumentError(cat("TensorArray: an element of shape ", element_shape,
                                   " was given, but the elements have shape ",
                                   options_.element_shape, "."));
  }
  if (options_.infer_shape && !options_.element_shape.is_fully_known())
    other.options_.element_shape = element_shape;
  return other;
}

void TensorArray::check_dtype(const Tensor& value, const char* what) const {
  if (!defined()) {
    throw FailedPreconditionError(cat("TensorArray::", what,
                                      ": this array is undefined. Make it with a dtype and a size: "
                                      "td::TensorArray(td::float32, 10)."));
  }
  if (!value.defined()) {
    throw InvalidArgumentError(cat("TensorArray::", what, ": the value is an undefined tensor."));
  }
  if (value.dtype() == dtype_) return;
  throw InvalidArgumentError(cat("TensorArray::", what, ": the array has dtype ", dtype_,
                                 " but the value has ", value.dtype(), ". td::cast changes one."));
}

Tensor TensorArray::size() const { return list_ops::length(list_); }

Tensor TensorArray::read(const Operand& index) const {
  return list_ops::get_item(list_, as_int32(Operand(index).take()), dtype_, options_.element_shape);
}

TensorArray TensorArray::write(const Operand& index, const Operand& value) const {
  Tensor element = Operand(value).take_as(dtype_);
  check_dtype(element, "write");
  const PartialShape shape = element.partial_shape();
  return changed(
      run("TensorListSetItem", {list_, as_int32(Operand(index).take()), std::move(element)},
          {{"resize_if_index_out_of_bounds", options_.dynamic_size}}),
      shape);
}

Tensor TensorArray::stack() const { return list_ops::stack(list_, dtype_, options_.element_shape); }

TensorArray TensorArray::unstack(const Tensor& value) const {
  check_dtype(value, "unstack");
  return changed(list_ops::from_tensor(value), row_shape(value.partial_shape()));
}

Tensor TensorArray::gather(const Tensor& indices) const {
  return run("TensorListGather", {list_, as_int32(indices), shape_tensor(options_.element_shape)},
             {{"element_dtype", dtype_}});
}

TensorArray TensorArray::scatter(const Tensor& indices, const Tensor& value) const {
  check_dtype(value, "scatter");
  return changed(run("TensorListScatterIntoExistingList", {list_, value, as_int32(indices)},
                     {{"element_dtype", dtype_}}),
                 row_shape(value.partial_shape()));
}

Tensor TensorArray::concat() const {
  const PartialShape rest = row_shape(options_.element_shape);
  PartialShape element = PartialShape::unknown();
  if (options_.element_shape.has_rank() && options_.element_shape.rank() > 0) {
    std::vector<std::int64_t> dims{-1};
    dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
    element = PartialShape(std::move(dims));
  }
  return run("TensorListConcatV2",
             {list_, shape_tensor(element), Tensor(std::vector<std::int64_t>{})},
             {{"element_dtype", dtype_}});
}

TensorArray TensorArray::split(const Tensor& value, const Tensor& lengths) const {
  check_dtype(value, "split");
  std::vector<std::int64_t> dims{-1};
  const PartialShape rest = row_shape(value.partial_shape());
  if (!rest.has_rank()) {
    return with_flow(run("TensorListSplit", {value, Tensor(-1), cast(lengths, int64)},
                         {{"element_dtype", dtype_}}));
  }
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  const PartialShape piece(std::move(dims));
  TensorArray other =
      changed(run("TensorListSplit", {value, shape_tensor(piece), cast(lengths, int64)},
                  {{"element_dtype", dtype_}}),
              PartialShape::unknown());
  if (!options_.element_shape.has_rank()) other.options_.element_shape = piece;
  return other;
}

}  // namespace tandem
