#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/ops/distributed_variable.h"
#include "tandem/ops/variable.h"

namespace tandem {

struct Variable::Components {
  std::vector<Variable> parts;
  VariableAggregation aggregation = VariableAggregation::kMirrored;
};

struct Variable::State {
  Tensor handle;
  std::string name;
  PartialShape shape;
  DType dtype = DType::kInvalid;
  bool trainable = true;
  bool autocast = false;
  std::function<Tensor(const Tensor&)> constraint;
  AttrMap read_attrs;  // made once: reads are frequent
  AttrMap assign_attrs;
  std::shared_ptr<const Components> components;  // null: a plain variable
};

/// What a variable of components does where a plain one has one value.
class DistributedVariables {
 public:
  using Components = Variable::Components;
  static const Variable& here(const Components& components);
  static Tensor read(const Components& components);
  static void assign(const Components& components, const Tensor& value);
  /// `sign`: 1 adds, -1 subtracts.
  static void add(const Components& components, const Tensor& delta, int sign);
  static Variable make(std::vector<Variable> parts, VariableAggregation aggregation);
  static const Components* of(const Variable& variable);
};

}  // namespace tandem
