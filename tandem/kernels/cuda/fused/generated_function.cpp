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
CUresult load(const std::vector<std::byte>& code, bool has_parts, GeneratedFunctions& functions) {
  CUmodule module = nullptr;
  CUresult result = driver().p_cuModuleLoadData(&module, code.data());
  if (result != CUDA_SUCCESS) return result;
  result = driver().p_cuModuleGetFunction(&functions.kernel, module, kGeneratedName);
  if (result != CUDA_SUCCESS || !has_parts) return result;
  return driver().p_cuModuleGetFunction(&functions.of_parts, module, kGeneratedPartsName);
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

GeneratedFunctions make(Gpu& gpu, const GeneratedKernel& kernel) {
  const std::string source = kernel.source();
  const bool has_parts = kernel.num_sums() == 0;
  static const auto* const cache = new CodeCache(CodeCache::standard());
  const int capability = gpu.compute_capability();
  const TextHash hash = hash_of(source, capability);
  GeneratedFunctions functions;
  if (const auto code = cache->find(hash)) {
    // Code that the driver refuses is compiled again.
    bool refused = false;
    with_room([&] {
      const CUresult result = load(*code, has_parts, functions);
      refused = result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU;
      if (!refused) gpu.check(result, "loading a generated kernel");
    });
    if (!refused) return functions;
  }
  const std::vector<std::byte> code = Nvrtc::get().compile(source, generated_headers(), capability);
  with_room([&] { gpu.check(load(code, has_parts, functions), "loading a generated kernel"); });
  cache->put(hash, code);
  return functions;
}

// Functions by GPU and source.
struct Known {
  std::mutex mutex;
  std::map<std::pair<Gpu*, std::string>, GeneratedFunctions> functions;
};
Known& known() {
  static auto* const all = new Known;  // streams may end after static objects
  return *all;
}

}  // namespace

GeneratedFunctions generated_functions(const GeneratedKernel& kernel) {
  // A launcher's thread serves one GPU.
  thread_local std::unordered_map<std::string, GeneratedFunctions> own;
  std::string key = kernel.key();
  if (const auto found = own.find(key); found != own.end()) return found->second;
  Gpu& gpu = StreamState::current().gpu();
  GeneratedFunctions functions;
  {
    std::lock_guard lock(known().mutex);
    GeneratedFunctions& entry = known().functions[{&gpu, key}];
    if (!entry.kernel) entry = make(gpu, kernel);
    functions = entry;
  }
  own.emplace(std::move(key), functions);
  return functions;
}

}  // namespace tandem::cuda
