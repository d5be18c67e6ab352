#include "tandem/core/dtype.h"

#include <array>
#include <ostream>

#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"

namespace tandem {
namespace {

struct DTypeInfo {
  const char* name;
  std::size_t size;
};

constexpr std::array<DTypeInfo, kDTypeCount> kInfo{{
    {"invalid", 0},
    {"float", 4},
    {"double", 8},
    {"int32", 4},
    {"uint8", 1},
    {"int16", 2},
    {"int8", 1},
    {"string", sizeof(std::string)},
    {"complex64", 8},
    {"int64", 8},
    {"bool", 1},
    {"qint8", 1},
    {"quint8", 1},
    {"qint32", 4},
    {"bfloat16", 2},
    {"qint16", 2},
    {"quint16", 2},
    {"uint16", 2},
    {"complex128", 16},
    {"half", 2},
    {"resource", sizeof(ResourceHandle)},
    {"variant", sizeof(Variant)},
    {"uint32", 4},
    {"uint64", 8},
    {"float8_e5m2", 1},
    {"float8_e4m3fn", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e4m3b11fnuz", 1},
    {"float8_e5m2fnuz", 1},
    {"int4", 1},
    {"uint4", 1},
    {"int2", 1},
    {"uint2", 1},
}};

}  // namespace

std::size_t dtype_size(DType t) {
  const int number = static_cast<int>(base_dtype(t));
  return number >= 0 && number < kDTypeCount ? kInfo[static_cast<std::size_t>(number)].size : 0;
}

std::string dtype_name(DType t) {
  const int number = static_cast<int>(base_dtype(t));
  if (number < 0 || number >= kDTypeCount) {
    return "dtype(" + std::to_string(static_cast<int>(t)) + ")";
  }
  std::string name = kInfo[static_cast<std::size_t>(number)].name;
  if (is_ref(t)) name += "_ref";
  return name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  std::string lower(name);
  if (lower.starts_with("DT_")) lower.erase(0, 3);
  for (char& c : lower) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  bool ref = false;
  if (lower.ends_with("_ref")) {
    ref = true;
    lower.resize(lower.size() - 4);
  }
  if (lower == "float32") lower = "float";
  if (lower == "float64") lower = "double";
  if (lower == "float16") lower = "half";
  if (lower == "boolean") lower = "bool";
  for (int i = 1; i < kDTypeCount; ++i) {
    if (lower == kInfo[static_cast<std::size_t>(i)].name) {
      const DType t = static_cast<DType>(i);
      return ref ? ref_dtype(t) : t;
    }
  }
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, DType t) { return out << dtype_name(t); }

}  // namespace tandem
