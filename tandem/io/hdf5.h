#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tandem/core/array.h"
#include "tandem/core/export.h"

namespace tandem::io {

/// What a file of HDF5 holds, as far as it is tensors in groups: Keras' `.weights.h5`. Paths are as
/// in "layers/dense/vars/0"; the root is "".
struct Hdf5Content {
  std::map<std::string, Array> datasets;
  /// The attributes that are texts, by the path of a group or dataset; a group without datasets is
  /// in here too.
  std::map<std::string, std::map<std::string, std::string>> attributes;
};

// HDF5's own library reads and writes, from libtandem_hdf5.so beside libtandem.so. Without it both
// throw UnimplementedError that names Debian's package. The library trusts its files more than
// Tandem does elsewhere: read files of strangers in another form, such as safetensors.

/// Decodes a file in memory; errors call it `name`. Throws DataLossError if it is damaged or keeps
/// its data in other files. Datasets that are no numbers are left out.
TANDEM_EXPORT Hdf5Content decode_hdf5(std::string_view bytes, const std::string& name);
TANDEM_EXPORT std::string encode_hdf5(const Hdf5Content& content);

}  // namespace tandem::io
