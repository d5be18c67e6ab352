#pragma once

#include <initializer_list>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/operand.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/variable.h"

namespace tandem {

/// A part of a variable: what `w[...]` gives. Converts to its value; assigning changes the variable
/// there, in traced functions at that point of the program. The new value broadcasts to the part;
/// numbers take the variable's dtype. Throws InvalidArgumentError if it does not fit.
///
///     w[0] = 5;                                   // the first row
///     w[{td::ellipsis, td::Slice(0, 2)}] += 1;
///     td::Tensor last = w[-1];
class TANDEM_EXPORT VariableSlice {
 public:
  VariableSlice(Variable variable, std::vector<Index> entries)
      : variable_(std::move(variable)), entries_(std::move(entries)) {}
  VariableSlice(const VariableSlice&) = default;

  Tensor value() const;
  operator Tensor() const { return value(); }

  const VariableSlice& assign(Operand value) const;
  const VariableSlice& assign_add(Operand delta) const;
  const VariableSlice& assign_sub(Operand delta) const;
  const VariableSlice& operator=(Operand value) const { return assign(std::move(value)); }
  const VariableSlice& operator=(const VariableSlice& other) const { return assign(other.value()); }
  const VariableSlice& operator+=(Operand delta) const { return assign_add(std::move(delta)); }
  const VariableSlice& operator-=(Operand delta) const { return assign_sub(std::move(delta)); }

 private:
  Variable variable_;
  std::vector<Index> entries_;
};

}  // namespace tandem
