#include "tandem/ops/variable_slice.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/internal/index_builder.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {

namespace {

// The value as the variable takes it: numbers in its dtype, and broadcast to its shape.
Tensor fitted(Operand value, const Variable& variable) {
  Tensor given = std::move(value).take_as(variable.dtype());
  const PartialShape& wanted = variable.shape();
  if (!wanted.is_fully_known() || given.rank() == wanted.rank()) return given;
  return broadcast_to(given, wanted.to_shape());
}

}  // namespace

const Variable& Variable::assign_operand(const Operand& value) const {
  return assign(fitted(value, *this));
}
const Variable& Variable::operator+=(Operand delta) const {
  return assign_add(fitted(std::move(delta), *this));
}
const Variable& Variable::operator-=(Operand delta) const {
  return assign_sub(fitted(std::move(delta), *this));
}
VariableSlice Variable::operator[](const Index& entry) const { return {*this, {entry}}; }
VariableSlice Variable::operator[](std::initializer_list<Index> entries) const {
  return {*this, std::vector<Index>(entries)};
}

Tensor VariableSlice::value() const {
  const Tensor whole = variable_.read_value();
  return entries_.size() == 1 ? whole[entries_.front()] : index(whole, entries_);
}

const VariableSlice& VariableSlice::assign(Operand value) const {
  Tensor given = std::move(value).take_as(variable_.dtype());
  const internal::IndexBuilder spec(entries_);
  // The op wants the part's own shape.
  const Tensor part = spec.of(variable_.read_value());
  if (!(given.partial_shape() == part.partial_shape())) given = broadcast_to(given, shape(part));
  raw_op("ResourceStridedSliceAssign",
         {variable_.handle(), spec.begin(), spec.end(), spec.strides(), given}, spec.masks());
  return *this;
}

const VariableSlice& VariableSlice::assign_add(Operand delta) const {
  return assign(value() + std::move(delta));
}
const VariableSlice& VariableSlice::assign_sub(Operand delta) const {
  return assign(value() - std::move(delta));
}

}  // namespace tandem
