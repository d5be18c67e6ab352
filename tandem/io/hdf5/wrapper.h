#pragma once

#include <cstddef>

// What libtandem_hdf5.so offers. libtandem.so opens it when a file of HDF5 is first read or
// written, and depends on no library of HDF5 itself. Plain C types alone cross the line; a function
// returns 0, or another number after it has put the reason into `error`. Used by one thread at a
// time.

extern "C" {

/// Receives the content of a file. Paths have no '/' in front; the root is "". dtypes are the
/// numbers of tandem::DType.
struct TandemHdf5Visitor {
  void* context;
  void (*group)(void* context, const char* path);
  /// Attributes that are texts; others are left out.
  void (*attribute)(void* context, const char* path, const char* name, const char* text,
                    std::size_t size);
  /// Returns where the elements go, or null after which reading ends with an error.
  void* (*dataset)(void* context, const char* path, int dtype, int rank, const long long* dims,
                   std::size_t bytes);
};

/// One thing to write: a group, a dataset, or an attribute of one of them that came before.
struct TandemHdf5Item {
  const char* path;
  const char* attribute;  ///< its name; null: the item is a group or a dataset
  const char* text;       ///< the attribute's value
  int dtype;              ///< 0: a group
  int rank;
  const long long* dims;
  const void* data;
};

using TandemHdf5Read = int (*)(const void* bytes, std::size_t size,
                               const TandemHdf5Visitor* visitor, char* error,
                               std::size_t error_size);
/// Passes the file's bytes to `result`.
using TandemHdf5Write = int (*)(const TandemHdf5Item* items, std::size_t count,
                                void (*result)(void* context, const void* bytes, std::size_t size),
                                void* context, char* error, std::size_t error_size);

}  // extern "C"
