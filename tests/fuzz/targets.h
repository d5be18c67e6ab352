#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/npy.h"
#include "tandem/io/tensor_bundle.h"

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

/// The size of the index in four bytes, the index, the data of its only shard.
inline void tensor_bundle(std::string_view bytes) {
  std::uint32_t announced = 0;
  if (bytes.size() < sizeof(announced)) return;
  std::memcpy(&announced, bytes.data(), sizeof(announced));
  bytes.remove_prefix(sizeof(announced));
  const std::string_view index = bytes.substr(0, announced);
  try {
    const io::TensorBundleReader reader(std::string(index), std::string(bytes.substr(index.size())),
                                        "input");
    for (const std::string& name : reader.names()) {
      try {
        reader.read(name);
      } catch (const Error&) {
      }
      try {
        io::TensorSlice slice;
        slice.extents.resize(static_cast<std::size_t>(reader.shape(name).rank()), {0, 1});
        reader.read_slice(name, slice);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace tandem::fuzz
