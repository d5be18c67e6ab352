#include "tandem/fs/stores.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "tandem/core/error.h"
#include "tandem/fs/internal/stores_build_id.h"
#include "tandem/fs/internal/stores_library.h"
#include "tandem/fs/io_scope.h"

namespace tandem::fs {
namespace {

constexpr const char* kLibrary = "libtandem_stores.so";

// Where libtandem.so lies, or the program that holds it.
std::filesystem::path library_path() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&library_path), &info) == 0) return kLibrary;
  std::error_code failed;
  const auto here = std::filesystem::canonical(info.dli_fname, failed).parent_path();
  for (const auto& folder : {here, here / ".." / "lib", here / ".." / "lib64"}) {
    if (std::filesystem::exists(folder / kLibrary, failed)) return folder / kLibrary;
  }
  return here / kLibrary;
}

// The library is part of the same build, or it is not used.
MakeStore open_library(std::string_view scheme) {
  const std::filesystem::path path = library_path();
  const auto refuse = [&](const std::string& why) {
    throw UnimplementedError(cat("File system scheme '", scheme, "' needs ", kLibrary, ": ", why));
  };
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) {
    refuse(cat("there is none beside this library (", path.string(),
               "). Build Tandem where libcurl4-openssl-dev, libpugixml-dev and libssl-dev are "
               "installed, and install it whole."));
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    refuse(cat(dlerror(), ". It needs the packages libcurl4, libpugixml1v5 and libssl3."));
  }
  const auto id = reinterpret_cast<const char* (*)()>(dlsym(library, "tandem_stores_build_id"));
  const auto make = reinterpret_cast<MakeStore>(dlsym(library, "tandem_stores_make"));
  if (!id || !make || std::strcmp(id(), kStoresBuildId) != 0) {
    refuse(cat(path.string(), " is of another build of Tandem (", id ? id() : "without an id",
               ", not ", kStoresBuildId, "): install both from one."));
  }
  return make;
}

}  // namespace

std::unique_ptr<FileSystem> make_store(std::string_view scheme, const StoreOptions& options) {
  const MakeStore make = open_library(scheme);
  return std::unique_ptr<FileSystem>(make(scheme, options, &IoScope::current));
}

}  // namespace tandem::fs
