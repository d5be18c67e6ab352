#include "tandem/cli/distribute_library.h"

#include <dlfcn.h>

#include <string>

#include "tandem/core/error.h"
#include "tandem/core/version.h"

namespace tandem::cli {
namespace {

#define TANDEM_TEXT_OF(x) #x
#define TANDEM_TEXT(x) TANDEM_TEXT_OF(x)

// As the linker would name it: see TANDEM_VERSION_MAJOR in docs/compatibility.md.
std::string library_name() {
  const std::string version = TANDEM_VERSION_MAJOR == 0 ? "0." TANDEM_TEXT(TANDEM_VERSION_MINOR)
                                                        : TANDEM_TEXT(TANDEM_VERSION_MAJOR);
  return "libtandem_distribute.so." + version;
}

const distribute::Commands* open_library() {
  const std::string name = library_name();
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = ::dlerror();
    throw UnimplementedError(cat("Clusters need ", name, ", which cannot be opened (",
                                 why ? why : "unknown reason",
                                 "). Builds have it where gRPC's headers are found (Debian: "
                                 "libgrpc++-dev)."));
  }
  using Find = const distribute::Commands*();
  auto* find = reinterpret_cast<Find*>(::dlsym(library, distribute::kCommandsSymbol));
  if (!find) throw InternalError(cat(name, " has no ", distribute::kCommandsSymbol, "."));
  return find();
}

}  // namespace

const distribute::Commands& distribute_library() {
  static const distribute::Commands* const commands = open_library();
  return *commands;
}

}  // namespace tandem::cli
