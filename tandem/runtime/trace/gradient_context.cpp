#include "tandem/runtime/gradient_context.h"

namespace tandem {

GradientContext::~GradientContext() = default;

Tensor GradientContext::grad(int i) {
  Tensor& g = grads_.at(static_cast<std::size_t>(i));
  if (!g.defined()) g = zeros_like(output(i));
  return g;
}

const AttrValue* GradientContext::find_attr(std::string_view name) const {
  if (const AttrValue* value = attrs_->find(name)) return value;
  const AttrDef* def = op_->find_attr(name);
  return def && !def->default_value.empty() ? &def->default_value : nullptr;
}

}  // namespace tandem
