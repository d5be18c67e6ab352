#include "tandem/kernels/cuda/fused/generated_function.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tandem/device/cuda/internal/code_cache.h"
#include "tandem/device/cuda/internal/nvrtc.h"
#include "tandem/device/cuda/internal/room.h"
#include "tandem/device/cuda/internal/stream.h"
#include "tandem/kernels/cuda/fused/headers.h"

namespace tandem::cuda {
namespace {

// The module of a kernel stays until the process ends.
CUresult load(const std::vector<std::byte>& code, Function& function) {
  CUmodule module = nullptr;
  const CUresult result = driver().p_cuModuleLoadData(&module, code.data());
  if (result != CUDA_SUCCESS) return result;
  return driver().p_cuModuleGetFunction(&function, module, kGeneratedName);
}

// Code depends on the text, on the headers that it includes, on the compiler and on the GPU.
TextHash hash_of(const std::string& source, int capability) {
  static const std::string headers = [] {
    std::string all;
    for (const Nvrtc::Header& header : generated_headers()) all += header.text;
    return TextHash::of(all).digits();
  }();
  return TextHash::of(source + '\n' + headers + '\n' + Nvrtc::get().version() + '\n' +
                      std::to_string(capability));
}

Function make(Gpu& gpu, const std::string& source) {
  static const auto* const cache = new CodeCache(CodeCache::standard());
  const int capability = gpu.compute_capability();
  const TextHash hash = hash_of(source, capability);
  Function function = nullptr;
  if (const auto code = cache->find(hash)) {
    // Code that the driver refuses is compiled again.
    bool refused = false;
    with_room([&] {
      const CUresult result = load(*code, function);
      refused = result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU;
      if (!refused) gpu.check(result, "loading a generated kernel");
    });
    if (!refused) return function;
  }
  const std::vector<std::byte> code = Nvrtc::get().compile(source, generated_headers(), capability);
  with_room([&] { gpu.check(load(code, function), "loading a generated kernel"); });
  cache->put(hash, code);
  return function;
}

// Functions by GPU and source.
struct Known {
  std::mutex mutex;
  std::map<std::pair<Gpu*, std::string>, Function> functions;
};
Known& known() {
  static auto* const all = new Known;  // streams may end after static objects
  return *all;
}

}  // namespace

Function generated_function(const GeneratedKernel& kernel) {
  // A launcher's thread serves one GPU.
  thread_local std::unordered_map<std::string, Function> own;
  std::string key = kernel.key();
  if (const auto found = own.find(key); found != own.end()) return found->second;
  Gpu& gpu = StreamState::current().gpu();
  Function function = nullptr;
  {
    std::lock_guard lock(known().mutex);
    Function& entry = known().functions[{&gpu, key}];
    if (!entry) entry = make(gpu, kernel.source());
    function = entry;
  }
  own.emplace(std::move(key), function);
  return function;
}

}  // namespace tandem::cuda
