#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"

namespace tandem::io {

/// The header of a safetensors file, checked against the size of the file.
struct SafetensorsHeader {
  struct Entry {
    std::string type;            ///< "F32"
    std::optional<DType> dtype;  ///< none: Tandem has no such elements
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;  ///< from the beginning of the file
    std::uint64_t end = 0;
  };
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;
};

/// Reads the header of a file's bytes. Throws DataLossError where the file is not as the format
/// says: see SafetensorsReader.
SafetensorsHeader read_safetensors_header(std::string_view file, const std::string& name);

/// The format's name of a dtype; empty if there is none.
std::string safetensors_type(DType dtype);

}  // namespace tandem::io
