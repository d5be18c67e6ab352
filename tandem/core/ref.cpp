#include "tandem/core/ref.h"

namespace tandem {

RefCounted::~RefCounted() = default;

}  // namespace tandem
