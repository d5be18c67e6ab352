#include "tandem/placement/internal/json_reason.h"

#include <string_view>

#include "tandem/core/error.h"

namespace tandem {

std::string json_reason(const std::exception& error) {
  const std::string_view what = error.what();
  const std::size_t end = what.find("] ");
  return cat("no JSON: ", end == std::string_view::npos ? what : what.substr(end + 2));
}

}  // namespace tandem
