#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/device/cuda/internal/nvidia_library.h"

namespace tandem::cuda {

/// NVRTC, NVIDIA's compiler as a library: makes code for a GPU from CUDA C++ source at run time.
/// Thread-safe.
class Nvrtc {
 public:
  /// A header that sources may include by this name; both texts stay.
  struct Header {
    const char* name;
    const char* text;
  };

  /// The process' one, opened at the first call.
  static const Nvrtc& get();

  const NvidiaLibrary& library() const { return library_; }
  bool usable() const { return library_.usable(); }
  /// "13.0": code of one version is not taken for that of another.
  const std::string& version() const { return version_; }
  /// Code that the driver of a GPU of this compute capability (90 for 9.0) loads: machine code, or
  /// PTX where NVRTC does not know the GPU yet. Throws Failure with the compiler's messages.
  std::vector<std::byte> compile(const std::string& source, const std::vector<Header>& headers,
                                 int capability) const;

 private:
  using Program = struct NvrtcProgram*;
  using Result = int;  // 0: success

  Nvrtc();
  void check(Result result, const char* call) const;
  std::string log(Program program) const;
  std::string architecture(int capability, bool& machine_code) const;

  NvidiaLibrary library_;
  std::string version_;
  Result (*nvrtcVersion_)(int* major, int* minor) = nullptr;
  const char* (*nvrtcGetErrorString_)(Result result) = nullptr;
  Result (*nvrtcGetNumSupportedArchs_)(int* count) = nullptr;
  Result (*nvrtcGetSupportedArchs_)(int* capabilities) = nullptr;
  Result (*nvrtcCreateProgram_)(Program* program, const char* source, const char* name,
                                int num_headers, const char* const* headers,
                                const char* const* names) = nullptr;
  Result (*nvrtcDestroyProgram_)(Program* program) = nullptr;
  Result (*nvrtcCompileProgram_)(Program program, int num_options,
                                 const char* const* options) = nullptr;
  Result (*nvrtcGetProgramLogSize_)(Program program, std::size_t* bytes) = nullptr;
  Result (*nvrtcGetProgramLog_)(Program program, char* text) = nullptr;
  Result (*nvrtcGetCUBINSize_)(Program program, std::size_t* bytes) = nullptr;
  Result (*nvrtcGetCUBIN_)(Program program, char* code) = nullptr;
  Result (*nvrtcGetPTXSize_)(Program program, std::size_t* bytes) = nullptr;
  Result (*nvrtcGetPTX_)(Program program, char* code) = nullptr;
};

}  // namespace tandem::cuda
