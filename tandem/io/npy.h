#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem::io {

/// The array of a NumPy file (.npy, versions 1 to 3).
///
/// Taken are bool, all integers, half, float, double, complex, bfloat16 (`<V2`), and strings of
/// fixed length (`|S`, and `<U`, which becomes UTF-8; the NULs that pad them are dropped), in
/// either byte order; Fortran order is converted. Throws DataLossError if the file is damaged or
/// cut off, UnimplementedError for other element types; pickled objects are refused.
TANDEM_EXPORT Array read_npy(const String& path);

/// Decodes bytes in memory; errors call them `name`.
TANDEM_EXPORT Array decode_npy(std::string_view bytes, const String& name);

/// Writes a NumPy file, complete or not at all. Strings become `|S` of the longest one's length: a
/// string that ends in NUL could not be read back and throws InvalidArgumentError. Throws
/// UnimplementedError for element types that NumPy has no name for (resource, variant).
TANDEM_EXPORT void write_npy(const String& path, const Array& array);

TANDEM_EXPORT std::string encode_npy(const Array& array);

/// `write_npy` and `read_npy` with tensors, as numpy.save and numpy.load.
TANDEM_EXPORT void save_npy(const String& path, const Tensor& tensor);
TANDEM_EXPORT Tensor load_npy(const String& path);

/// Writes tensors by name into one uncompressed .npz file, as numpy.savez does.
TANDEM_EXPORT void save_npz(const String& path, const std::map<std::string, Tensor>& tensors);

/// The tensors of an .npz file, compressed or not. Throws DataLossError if it is damaged.
TANDEM_EXPORT std::map<std::string, Tensor> load_npz(const std::string& path);
inline std::map<std::string, Tensor> load_npz(const char* path) {
  return load_npz(tandem::internal::name_argument(path, "the path of an .npz file"));
}

/// Decodes bytes in memory; errors call them `name`.
TANDEM_EXPORT std::map<std::string, Tensor> decode_npz(std::string_view bytes, const String& name);

}  // namespace tandem::io
