#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/string.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {

/// The attributes of a call by name, `{{"alpha", 0.3f}}`. A name that is null throws
/// InvalidArgumentError.
class CallAttrs {
 public:
  struct Entry {
    String name;
    AttrValue value;
  };
  CallAttrs() = default;
  CallAttrs(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) attrs_.set(entry.name, entry.value);
  }
  CallAttrs(AttrMap attrs) : attrs_(std::move(attrs)) {}
  const AttrMap& map() const { return attrs_; }

 private:
  AttrMap attrs_;
};

/// Any op by its name in docs/ops.md, eagerly or in a function that is being traced; all outputs.
/// Attributes that follow from the inputs or have defaults may be left out. Throws NotFoundError
/// for an unknown name.
///
///     td::Tensor y = td::call("LeakyRelu", {x}, {{"alpha", 0.3f}})[0];
inline std::vector<Tensor> call(StringView op_name, std::initializer_list<Tensor> inputs,
                                const CallAttrs& attrs = {}) {
  return raw_op(op_name, inputs, attrs.map());
}
inline std::vector<Tensor> call(StringView op_name, std::span<const Tensor> inputs,
                                const CallAttrs& attrs = {}) {
  return raw_op(op_name, inputs, attrs.map());
}

}  // namespace tandem
