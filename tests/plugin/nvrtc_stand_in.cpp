// A stand-in for NVRTC: the functions that libtandem_cuda.so uses. It compiles the very text that
// NVRTC would be given, by the compiler that Tandem was built with and against the execution model
// on the host, into a shared object that the stand-in for the driver loads. Where there is no such
// compiler it does not start. It takes the headers of the source tree, which the texts that it is
// given are copies of. Where the real NVRTC is installed the text has to compile there too, with
// the headers as given: that needs no GPU.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/plugin/host_module.h"

struct NvrtcProgram {
  std::string source, log;
  std::vector<std::string> headers, names;
  std::vector<char> code;
};

namespace {

constexpr int kSuccess = 0, kCompilationFailed = 6, kNoCompiler = 11;

// The shared objects are linked with one build's kernels.
constexpr const char* kKernels = TANDEM_CUDA_ON_HOST_LIBRARY;

// What kernels have of the same name, such as the type of their numbers, must not be shared.
std::string compiler() {
  return TANDEM_HOST_COMPILER " -std=c++20 -O1 -fPIC -shared -fvisibility=hidden " TANDEM_HOST_FLAGS
                              " -DTANDEM_CUDA_ON_HOST -I" TANDEM_SOURCE_FOLDER;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Folders that a compilation works in, removed with what is in it.
class Folder {
 public:
  Folder() : made_(mkdtemp(path_) != nullptr) {}
  ~Folder() {
    for (const char* name : {"/fused.cpp", "/fused.so", "/log"})
      std::remove((std::string(path_) + name).c_str());
    rmdir(path_);
  }
  bool made() const { return made_; }
  std::string operator/(const char* name) const { return std::string(path_) + '/' + name; }

 private:
  char path_[64] = "/tmp/tandem-nvrtc-XXXXXX";
  bool made_;
};

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

void* real_nvrtc() {
  static void* const library = [] {
    const char* const home = std::getenv("CUDA_HOME");
    for (const std::string& root :
         {std::string(home ? home : ""), std::string("/usr/local/cuda")}) {
      for (const char* name : {"/lib64/libnvrtc.so.13", "/lib64/libnvrtc.so.12"}) {
        if (void* const opened = dlopen((root + name).c_str(), RTLD_NOW | RTLD_LOCAL))
          return opened;
      }
    }
    return static_cast<void*>(nullptr);
  }();
  return library;
}

// What the real NVRTC says against the program; nothing where there is none.
std::string complaints(const NvrtcProgram& program, int num_options, const char* const* options) {
  void* const library = real_nvrtc();
  if (!library) return {};
  std::vector<const char*> headers, names;
  for (const std::string& text : program.headers) headers.push_back(text.c_str());
  for (const std::string& name : program.names) names.push_back(name.c_str());
  void* real = nullptr;
  const auto create =
      find<int (*)(void**, const char*, const char*, int, const char* const*, const char* const*)>(
          library, "nvrtcCreateProgram");
  if (create(&real, program.source.c_str(), "fused.cu", static_cast<int>(headers.size()),
             headers.data(), names.data()) != kSuccess)
    return "nvrtcCreateProgram fails";
  const int result = find<int (*)(void*, int, const char* const*)>(library, "nvrtcCompileProgram")(
      real, num_options, options);
  std::size_t bytes = 0;
  find<int (*)(void*, std::size_t*)>(library, "nvrtcGetProgramLogSize")(real, &bytes);
  std::string log(bytes, '\0');
  find<int (*)(void*, char*)>(library, "nvrtcGetProgramLog")(real, log.data());
  find<int (*)(void**)>(library, "nvrtcDestroyProgram")(&real);
  return result == kSuccess ? std::string() : "the real NVRTC: " + log;
}

bool has_compiler() {
  static const bool works =
      std::system("command -v " TANDEM_HOST_COMPILER " > /dev/null 2>&1") == 0;
  return works;
}

}  // namespace

extern "C" {

#define STAND_IN __attribute__((visibility("default")))

// The minor version is that of a build: the code of another one is of no use.
STAND_IN int nvrtcVersion(int* major, int* minor) {
  std::uint32_t hash = 2166136261u;
  for (const char* c = kKernels; *c != '\0'; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
  *major = 13;
  *minor = static_cast<int>(hash % 1000000);
  return has_compiler() ? kSuccess : kNoCompiler;
}
STAND_IN const char* nvrtcGetErrorString(int result) {
  return result == kNoCompiler          ? "no host compiler (" TANDEM_HOST_COMPILER ")"
         : result == kCompilationFailed ? "NVRTC_ERROR_COMPILATION"
                                        : "an error";
}
STAND_IN int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return kSuccess;
}
STAND_IN int nvrtcGetSupportedArchs(int* capabilities) {
  *capabilities = 90;
  return kSuccess;
}
STAND_IN int nvrtcCreateProgram(NvrtcProgram** program, const char* source, const char*,
                                int num_headers, const char* const* headers,
                                const char* const* names) {
  *program = new NvrtcProgram{
      source, {}, {headers, headers + num_headers}, {names, names + num_headers}, {}};
  return kSuccess;
}
STAND_IN int nvrtcDestroyProgram(NvrtcProgram** program) {
  delete *program;
  *program = nullptr;
  return kSuccess;
}
STAND_IN int nvrtcCompileProgram(NvrtcProgram* program, int num_options,
                                 const char* const* options) {
  program->log = complaints(*program, num_options, options);
  if (!program->log.empty()) return kCompilationFailed;
  const Folder folder;
  if (!folder.made()) return kCompilationFailed;
  std::ofstream(folder / "fused.cpp") << program->source;
  const std::string command = compiler() + ' ' + folder / "fused.cpp" + ' ' + kKernels + " -o " +
                              folder / "fused.so" + " > " + folder / "log" + " 2>&1";
  const int failed = std::system(command.c_str());
  program->log = read(folder / "log");
  if (failed != 0) return kCompilationFailed;
  const std::string object = read(folder / "fused.so");
  HostModule header = {};
  std::memcpy(header.magic, kHostModule, sizeof(kHostModule));
  header.bytes = object.size();
  const auto* const bytes = reinterpret_cast<const char*>(&header);
  program->code.assign(bytes, bytes + sizeof(header));
  program->code.insert(program->code.end(), object.begin(), object.end());
  return kSuccess;
}
STAND_IN int nvrtcGetProgramLogSize(NvrtcProgram* program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return kSuccess;
}
STAND_IN int nvrtcGetProgramLog(NvrtcProgram* program, char* text) {
  std::memcpy(text, program->log.c_str(), program->log.size() + 1);
  return kSuccess;
}
STAND_IN int nvrtcGetCUBINSize(NvrtcProgram* program, std::size_t* bytes) {
  *bytes = program->code.size();
  return kSuccess;
}
STAND_IN int nvrtcGetCUBIN(NvrtcProgram* program, char* code) {
  std::memcpy(code, program->code.data(), program->code.size());
  return kSuccess;
}
STAND_IN int nvrtcGetPTXSize(NvrtcProgram*, std::size_t*) { return kCompilationFailed; }
STAND_IN int nvrtcGetPTX(NvrtcProgram*, char*) { return kCompilationFailed; }
}
