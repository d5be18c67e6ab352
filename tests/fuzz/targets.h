#pragma once

#include <string_view>

#include "tandem/core/error.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/npy.h"

/// What the fuzz targets do with an input: whatever the bytes, a value or an Error comes of it.
namespace tandem::fuzz {

inline void graph_def(std::string_view bytes) {
  for (const auto format : {io::GraphFormat::kBinary, io::GraphFormat::kText}) {
    for (const bool allow_unsupported : {false, true}) {
      io::ImportOptions options;
      options.format = format;
      options.allow_unsupported = allow_unsupported;
      try {
        io::import_graph_def(bytes, options);
      } catch (const Error&) {
      }
    }
  }
}

inline void npy(std::string_view bytes) {
  try {
    io::encode_npy(io::decode_npy(bytes, "input"));
  } catch (const Error&) {
  }
  try {
    io::decode_npz(bytes, "input");
  } catch (const Error&) {
  }
}

}  // namespace tandem::fuzz
