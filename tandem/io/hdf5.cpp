#include "tandem/io/hdf5.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <mutex>
#include <new>
#include <set>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/hdf5/wrapper.h"

namespace tandem::io {
namespace {

constexpr const char* kLibrary = "libtandem_hdf5.so";

// Beside libtandem.so, or the program that holds it.
std::string library_path() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&library_path), &info) == 0) return kLibrary;
  std::error_code failed;
  const auto here = std::filesystem::canonical(info.dli_fname, failed).parent_path();
  for (const auto& folder : {here, here / ".." / "lib"}) {
    if (std::filesystem::exists(folder / kLibrary, failed)) return folder / kLibrary;
  }
  return here / kLibrary;
}

struct Library {
  TandemHdf5Read read = nullptr;
  TandemHdf5Write write = nullptr;
  std::string problem;
  std::mutex mutex;  // Debian's library has no locks of its own

  Library() {
    const std::string path = library_path();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
      problem = dlerror();
      return;
    }
    read = reinterpret_cast<TandemHdf5Read>(dlsym(library, "tandem_hdf5_read"));
    write = reinterpret_cast<TandemHdf5Write>(dlsym(library, "tandem_hdf5_write"));
    if (!read || !write) problem = cat(path, " is of another version of Tandem");
  }
};

Library& library() {
  static Library& opened = *new Library;  // NOLINT: used until the program ends
  if (!opened.problem.empty()) {
    throw UnimplementedError(cat("Files of HDF5 (.h5, .keras) need ", kLibrary,
                                 ", which cannot be opened: ", opened.problem,
                                 ". Install Debian's package libhdf5-dev and build Tandem again."));
  }
  return opened;
}

constexpr std::size_t kErrorBytes = 512;

}  // namespace

Hdf5Content decode_hdf5(std::string_view bytes, const std::string& name) {
  constexpr std::string_view kMagic = "\x89HDF\r\n\x1a\n";
  if (!bytes.starts_with(kMagic)) throw DataLossError(cat(name, " is no file of HDF5."));
  Library& hdf5 = library();
  Hdf5Content content;
  TandemHdf5Visitor visitor = {};
  visitor.context = &content;
  visitor.group = [](void* into, const char* path) {
    static_cast<Hdf5Content*>(into)->attributes[path];
  };
  visitor.attribute = [](void* into, const char* path, const char* key, const char* text,
                         std::size_t size) {
    static_cast<Hdf5Content*>(into)->attributes[path][key] = std::string(text, size);
  };
  visitor.dataset = [](void* into, const char* path, int dtype, int rank, const long long* dims,
                       std::size_t) -> void* {
    try {
      Shape shape;
      for (int i = 0; i < rank; ++i) shape.add_dim(dims[i]);
      Array& array = static_cast<Hdf5Content*>(into)->datasets[path] =
          Array(static_cast<DType>(dtype), shape);
      static char empty;
      return array.num_bytes() == 0 ? &empty : array.raw_data();
    } catch (const std::exception&) {
      return nullptr;
    }
  };
  std::array<char, kErrorBytes> error{};
  const std::lock_guard lock(hdf5.mutex);
  if (hdf5.read(bytes.data(), bytes.size(), &visitor, error.data(), error.size()) != 0)
    throw DataLossError(cat(name, ": ", error.data(), "."));
  return content;
}

std::string encode_hdf5(const Hdf5Content& content) {
  Library& hdf5 = library();
  std::vector<TandemHdf5Item> items;
  std::vector<std::vector<long long>> shapes;
  shapes.reserve(content.datasets.size());
  for (const auto& [path, array] : content.datasets) {
    shapes.emplace_back(array.shape().dims().begin(), array.shape().dims().end());
    items.push_back({path.c_str(), nullptr, nullptr, static_cast<int>(array.dtype()),
                     array.shape().rank(), shapes.back().data(), array.raw_data()});
    // HDF5 has no such type: Keras notes what the two bytes are.
    if (array.dtype() == DType::kBFloat16)
      items.push_back({path.c_str(), "dtype", "bfloat16", 0, 0, nullptr, nullptr});
  }
  for (const auto& [path, attributes] : content.attributes) {
    if (content.datasets.count(path) == 0)
      items.push_back({path.c_str(), nullptr, nullptr, 0, 0, nullptr, nullptr});
    for (const auto& [key, text] : attributes)
      items.push_back({path.c_str(), key.c_str(), text.c_str(), 0, 0, nullptr, nullptr});
  }
  std::string bytes;
  std::array<char, kErrorBytes> error{};
  const auto take = [](void* into, const void* data, std::size_t size) {
    static_cast<std::string*>(into)->assign(static_cast<const char*>(data), size);
  };
  const std::lock_guard lock(hdf5.mutex);
  if (hdf5.write(items.data(), items.size(), take, &bytes, error.data(), error.size()) != 0)
    throw InvalidArgumentError(cat("encode_hdf5: ", error.data(), "."));
  return bytes;
}

}  // namespace tandem::io
