#include "tandem/graph/table_resource.h"

namespace tandem {

TableResource::~TableResource() = default;

}  // namespace tandem
