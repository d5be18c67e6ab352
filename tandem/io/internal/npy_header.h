#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"

namespace tandem::io {

/// What the header of a .npy file says.
struct NpyHeader {
  DType dtype = DType::kInvalid;
  Shape shape;
  std::size_t element_bytes = 0;  ///< in the file; the length of strings
  bool utf32 = false;             ///< strings: of four bytes a character
  bool fortran_order = false;
  bool big_endian = false;
  std::size_t data_offset = 0;
};

/// Reads the header at the beginning of `bytes`; errors call them `name`.
NpyHeader read_npy_header(std::string_view bytes, const std::string& name);

/// The header for an array, padded so that the data begins at a multiple of 64.
std::string make_npy_header(DType dtype, std::size_t element_bytes, const Shape& shape);

}  // namespace tandem::io
