#include "tandem/core/string.h"

#include "tandem/core/error.h"

namespace tandem::internal {

void throw_null_string(int line, const char* function) {
  throw InvalidArgumentError(cat("null was given where a text is expected, in line ", line, " (",
                                 function, "). Give \"\" for an empty text."));
}

}  // namespace tandem::internal
