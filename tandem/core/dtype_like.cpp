#include "tandem/core/dtype_like.h"

#include <optional>

#include "tandem/core/error.h"

namespace tandem {
namespace {

DType dtype_named(std::string_view name) {
  if (const std::optional<DType> dtype = parse_dtype(name)) return *dtype;
  throw InvalidArgumentError(cat("Cannot convert '", name,
                                 "' to a TensorFlow DType. Give a name such as \"float32\", "
                                 "\"int64\" or \"string\"."));
}

}  // namespace

DTypeLike::DTypeLike(StringView name) : dtype_(dtype_named(name)) {}

}  // namespace tandem
