#include "tandem/device/cuda/internal/nvrtc.h"

#include <algorithm>

#include "tandem/device/cuda/internal/driver.h"

namespace tandem::cuda {

const Nvrtc& Nvrtc::get() {
  static const auto* const one = new Nvrtc;  // streams may end after static objects
  return *one;
}

Nvrtc::Nvrtc()
    : library_({.name = "NVRTC",
                .file = "libnvrtc.so.",
                .majors = toolkit_majors(),
                .without = "elementwise fusion off"}) {
#define TANDEM_NVRTC_FIND(NAME) library_.find(#NAME, NAME##_);
  TANDEM_NVRTC_FIND(nvrtcVersion)
  TANDEM_NVRTC_FIND(nvrtcGetErrorString)
  TANDEM_NVRTC_FIND(nvrtcGetNumSupportedArchs)
  TANDEM_NVRTC_FIND(nvrtcGetSupportedArchs)
  TANDEM_NVRTC_FIND(nvrtcCreateProgram)
  TANDEM_NVRTC_FIND(nvrtcDestroyProgram)
  TANDEM_NVRTC_FIND(nvrtcCompileProgram)
  TANDEM_NVRTC_FIND(nvrtcGetProgramLogSize)
  TANDEM_NVRTC_FIND(nvrtcGetProgramLog)
  TANDEM_NVRTC_FIND(nvrtcGetCUBINSize)
  TANDEM_NVRTC_FIND(nvrtcGetCUBIN)
  TANDEM_NVRTC_FIND(nvrtcGetPTXSize)
  TANDEM_NVRTC_FIND(nvrtcGetPTX)
#undef TANDEM_NVRTC_FIND
  if (!usable()) return;
  int major = 0, minor = 0;
  if (const Result result = nvrtcVersion_(&major, &minor); result != 0) {
    library_.disable(std::string("it does not start: ") + nvrtcGetErrorString_(result));
    return;
  }
  version_ = std::to_string(major) + '.' + std::to_string(minor);
  library_.set_version(version_);
}

void Nvrtc::check(Result result, const char* call) const {
  if (result == 0) return;
  throw Failure(TANDEM_INTERNAL,
                std::string(call) + " of NVRTC fails: " + nvrtcGetErrorString_(result));
}

std::string Nvrtc::log(Program program) const {
  std::size_t bytes = 0;
  if (nvrtcGetProgramLogSize_(program, &bytes) != 0 || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (nvrtcGetProgramLog_(program, text.data()) != 0) return {};
  text.resize(std::char_traits<char>::length(text.c_str()));
  return text;
}

// A GPU newer than NVRTC runs PTX for the newest one that NVRTC knows below it.
std::string Nvrtc::architecture(int capability, bool& machine_code) const {
  int count = 0;
  check(nvrtcGetNumSupportedArchs_(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> known(static_cast<std::size_t>(count));
  check(nvrtcGetSupportedArchs_(known.data()), "nvrtcGetSupportedArchs");
  machine_code = std::find(known.begin(), known.end(), capability) != known.end();
  if (machine_code) return "sm_" + std::to_string(capability);
  int best = 0;
  for (const int one : known) {
    if (one < capability) best = std::max(best, one);
  }
  if (best == 0) {
    throw Failure(TANDEM_UNIMPLEMENTED,
                  "NVRTC " + version_ + " knows no GPU of compute capability " +
                      std::to_string(capability / 10) + '.' + std::to_string(capability % 10));
  }
  return "compute_" + std::to_string(best);
}

std::vector<std::byte> Nvrtc::compile(const std::string& source, const std::vector<Header>& headers,
                                      int capability) const {
  std::vector<const char*> names, texts;
  for (const Header& header : headers) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  struct Destroyer {
    const Nvrtc& nvrtc;
    Program program = nullptr;
    ~Destroyer() {
      if (program) nvrtc.nvrtcDestroyProgram_(&program);
    }
  } made{*this};
  check(nvrtcCreateProgram_(&made.program, source.c_str(), "fused.cu",
                            static_cast<int>(headers.size()), texts.data(), names.data()),
        "nvrtcCreateProgram");
  bool machine_code = false;
  const std::string target = "--gpu-architecture=" + architecture(capability, machine_code);
  // Functions that know nothing of CUDA (tandem/core/half.h) are for the GPU too.
  const char* const options[] = {target.c_str(), "--std=c++20",
                                 "--device-as-default-execution-space"};
  if (const Result result = nvrtcCompileProgram_(made.program, 3, options); result != 0) {
    throw Failure(TANDEM_INTERNAL, std::string("NVRTC cannot compile a generated kernel: ") +
                                       nvrtcGetErrorString_(result) + '\n' + log(made.program));
  }
  std::size_t bytes = 0;
  check((machine_code ? nvrtcGetCUBINSize_ : nvrtcGetPTXSize_)(made.program, &bytes),
        "the size of the code");
  std::vector<std::byte> code(bytes);
  check((machine_code ? nvrtcGetCUBIN_ : nvrtcGetPTX_)(made.program,
                                                       reinterpret_cast<char*>(code.data())),
        "the code");
  return code;
}

}  // namespace tandem::cuda
