#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/string.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {

/// Any op by its name in docs/ops.md, eagerly or in a function that is being traced; all outputs.
/// Attributes that follow from the inputs or have defaults may be left out. Throws NotFoundError
/// for an unknown name.
///
///     td::Tensor y = td::call("LeakyRelu", {x}, {{"alpha", 0.3f}})[0];
inline std::vector<Tensor> call(StringView op_name, std::initializer_list<Tensor> inputs,
                                const AttrMap& attrs = {}) {
  return raw_op(op_name, inputs, attrs);
}
inline std::vector<Tensor> call(StringView op_name, std::span<const Tensor> inputs,
                                const AttrMap& attrs = {}) {
  return raw_op(op_name, inputs, attrs);
}

}  // namespace tandem
