#include "tandem/device/cuda/cuda_backend.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "tandem/core/error.h"
#include "tandem/device/cuda/internal/build_id.h"
#include "tandem/device/plugin_backend.h"

namespace tandem {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kLibrary = "libtandem_cuda.so";

// The toolkit has a library of the driver's name to link against, which does nothing.
bool is_stub(void* driver) {
  const link_map* map = nullptr;
  if (dlinfo(driver, RTLD_DI_LINKMAP, &map) != 0 || !map) return false;
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::canonical(map->l_name, failed);
  return !failed && path.parent_path().filename() == "stubs";
}

std::optional<std::string> driver_problem(const std::string& name) {
  void* driver = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!driver) return cat("no CUDA driver (", name, ") found");
  const bool stub = is_stub(driver);
  dlclose(driver);
  if (stub) return cat("no CUDA driver found: ", name, " is the toolkit's stub, not a driver");
  return std::nullopt;
}

// Where libtandem.so lies, or the program that holds it.
std::string beside_this_library(const char* name) {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&driver_problem), &info) == 0) return name;
  std::error_code failed;
  const auto here = std::filesystem::canonical(info.dli_fname, failed).parent_path();
  for (const auto& folder : {here, here / ".." / "lib"}) {
    if (std::filesystem::exists(folder / name, failed)) return folder / name;
  }
  return here / name;
}

// The library is part of the same build, or it is not used.
std::optional<std::string> library_problem(const std::string& driver, const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) {
    return cat("a CUDA driver is there, but no ", kLibrary,
               ": this Tandem was built without the CUDA toolkit");
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return cat(path, " cannot be opened: ", dlerror());
  using Id = const char* (*)();
  using UseDriver = void (*)(const char*);
  const auto id = reinterpret_cast<Id>(dlsym(library, "tandem_cuda_build_id"));
  const auto use = reinterpret_cast<UseDriver>(dlsym(library, "tandem_cuda_use_driver"));
  if (!id || !use || std::strcmp(id(), kBuildId) != 0) {
    return cat(path, " is of another build of Tandem (", id ? id() : "without an id", ", not ",
               kBuildId, "): install both from one");
  }
  use(driver.c_str());
  return std::nullopt;
}

}  // namespace

CudaBackend::CudaBackend() : CudaBackend(kDriver, {}) {}

CudaBackend::CudaBackend(const std::string& driver, const std::string& library) {
  const std::string path = library.empty() ? beside_this_library(kLibrary) : library;
  std::optional<std::string> problem = driver_problem(driver);
  if (!problem) problem = library_problem(driver, path);
  if (!problem) {
    try {
      plugin_ = load_plugin(path);
      if (plugin_->physical_devices().empty()) problem = "the CUDA driver finds no GPU";
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  why_not_ = problem.value_or("");
}

CudaBackend::~CudaBackend() = default;

Backend& CudaBackend::opened() const {
  if (!plugin_) throw FailedPreconditionError(cat("There is no GPU: ", why_not_, '.'));
  return *plugin_;
}

std::vector<PhysicalDevice> CudaBackend::physical_devices() const {
  return plugin_ ? plugin_->physical_devices() : std::vector<PhysicalDevice>{};
}

DeviceProperties CudaBackend::properties(const PhysicalDevice& physical) const {
  return opened().properties(physical);
}

std::shared_ptr<Device> CudaBackend::make_device(const PhysicalDevice& physical,
                                                 const LogicalDeviceOptions& options,
                                                 DeviceSpec spec) {
  return opened().make_device(physical, options, std::move(spec));
}

std::string CudaBackend::unavailable() const { return why_not_; }

std::string CudaBackend::libraries() const {
  return plugin_ && why_not_.empty() ? libraries_of(*plugin_) : std::string();
}

}  // namespace tandem
