#include "tandem/core/variant.h"

namespace tandem {

VariantValue::~VariantValue() = default;

}  // namespace tandem
