#include "tandem/device/cuda/internal/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

// The CUDA version that a driver must be for: that of the functions below, or of the toolkit by
// which the library's kernels were compiled, whose runtime takes no driver of an older major
// version.
#if !defined(TANDEM_CUDA_TOOLKIT_MAJOR)
#define TANDEM_CUDA_TOOLKIT_MAJOR 12
#endif

namespace tandem::cuda {
namespace {

constexpr int kMinMajor = TANDEM_CUDA_TOOLKIT_MAJOR;
// The first branch of NVIDIA's drivers for it, by the release notes of the CUDA toolkit.
constexpr const char* kMinRelease = kMinMajor >= 13 ? "580" : "525";

Driver& table() {
  static Driver functions;
  return functions;
}

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// "12.4" for 12040.
std::string version_text(int version) {
  return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

// What the driver says before it is started; 0 if it does not.
int version_of(void* library) {
  decltype(&::cuDriverGetVersion) ask = nullptr;
  look_up(library, "cuDriverGetVersion", ask);
  int version = 0;
  return ask && ask(&version) == CUDA_SUCCESS ? version : 0;
}

void refuse_old(int version) {
  if (version == 0 || version / 1000 >= kMinMajor) return;
  throw Failure(TANDEM_FAILED_PRECONDITION,
                "the CUDA driver is too old: it is for CUDA " + version_text(version) +
                    ", and this Tandem needs one for CUDA " + version_text(kMinMajor * 1000) +
                    " or later; install NVIDIA's driver " + kMinRelease + " or later");
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  look_up(library, name, function);
  if (function) return;
  const int version = version_of(library);
  throw Failure(TANDEM_FAILED_PRECONDITION,
                "the CUDA driver" + (version == 0 ? "" : " for CUDA " + version_text(version)) +
                    " lacks a function that Tandem needs, " + name + "; install NVIDIA's driver " +
                    kMinRelease + " or later");
}

}  // namespace

const Driver& driver() { return table(); }

void open_driver(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Failure(TANDEM_NOT_FOUND, "no CUDA driver (" + name + ") found");
  refuse_old(version_of(library));
#define TANDEM_CUDA_TEXT_OF(NAME) #NAME
#define TANDEM_CUDA_TEXT(NAME) TANDEM_CUDA_TEXT_OF(NAME)
#define TANDEM_CUDA_FIND(NAME) find(library, TANDEM_CUDA_TEXT(NAME), table().p_##NAME);
  TANDEM_CUDA_FUNCTIONS(TANDEM_CUDA_FIND)
#undef TANDEM_CUDA_FIND
#define TANDEM_CUDA_LOOK_UP(NAME) look_up(library, TANDEM_CUDA_TEXT(NAME), table().p_##NAME);
  TANDEM_CUDA_OPTIONAL_FUNCTIONS(TANDEM_CUDA_LOOK_UP)
#undef TANDEM_CUDA_LOOK_UP
#undef TANDEM_CUDA_TEXT
#undef TANDEM_CUDA_TEXT_OF
  const CUresult result = driver().p_cuInit(0);
  if (result == CUDA_ERROR_STUB_LIBRARY) {
    throw Failure(TANDEM_NOT_FOUND, "no CUDA driver found: " + name + " is the toolkit's stub");
  }
  if (result == CUDA_ERROR_NO_DEVICE) return;  // a driver without a GPU, or none that is visible
  if (result != CUDA_SUCCESS) {
    throw Failure(TANDEM_FAILED_PRECONDITION, "the CUDA driver does not start: " + text_of(result));
  }
}

std::vector<int> toolkit_majors() {
  int version = 0;
  if (driver().p_cuDriverGetVersion(&version) != CUDA_SUCCESS) return {};
  std::vector<int> majors;
  for (const int major : {13, 12}) {
    if (major <= version / 1000) majors.push_back(major);
  }
  return majors;
}

std::string text_of(CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver().p_cuGetErrorName(result, &name);
  driver().p_cuGetErrorString(result, &text);
  return std::string(name ? name : "CUDA error " + std::to_string(result)) + " (" +
         (text ? text : "no text") + ")";
}

bool is_fatal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return false;
  }
}

std::int32_t code_of(CUresult result) {
  if (is_fatal(result)) return TANDEM_UNAVAILABLE;
  switch (result) {
    case CUDA_SUCCESS: return TANDEM_OK;
    case CUDA_ERROR_OUT_OF_MEMORY: return TANDEM_RESOURCE_EXHAUSTED;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_INVALID_HANDLE: return TANDEM_INVALID_ARGUMENT;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: return TANDEM_UNIMPLEMENTED;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_NO_DEVICE: return TANDEM_FAILED_PRECONDITION;
    default: return TANDEM_INTERNAL;
  }
}

void set(TandemStatus* status, std::int32_t code, const std::string& text) {
  status->code = code;
  const std::size_t length = std::min(text.size(), sizeof(status->message) - 1);
  std::memcpy(status->message, text.data(), length);
  status->message[length] = '\0';
}

}  // namespace tandem::cuda
