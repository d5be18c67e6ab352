// Kernels: their code, and their launches.

#include "tests/plugin/cuda_stand_in/launch.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/plugin/cuda_stand_in/calls.h"
#include "tests/plugin/cuda_stand_in/contexts.h"
#include "tests/plugin/cuda_stand_in/streams.h"
#include "tests/plugin/host_module.h"

using namespace stand_in;

namespace stand_in {

Launch::Launch(CUfunction function, const unsigned* grid, const unsigned* block,
               unsigned shared_bytes, void** parameters)
    : function_(reinterpret_cast<const tandem::cuda::HostFunction*>(function)),
      shared_bytes_(shared_bytes) {
  std::copy_n(grid, 3, grid_);
  std::copy_n(block, 3, block_);
  for (std::size_t i = 0; i < function_->num_parameters; ++i) {
    constexpr std::size_t kUnit = sizeof(std::max_align_t);
    const std::size_t bytes = function_->parameter_sizes[i];
    values_.emplace_back((bytes + kUnit - 1) / kUnit);
    std::memcpy(values_.back().data(), parameters[i], bytes);
  }
}

void Launch::operator()() const {
  std::vector<void*> pointers;
  for (const auto& value : values_) pointers.push_back(const_cast<std::max_align_t*>(value.data()));
  const Activity activity(StandInActivity::kKernel, 0, function_->name);
  function_->run(*function_, grid_, block_, shared_bytes_, pointers.data());
}

}  // namespace stand_in

extern "C" {

STAND_IN cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** parameters, void**) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  ++counts.kernels;
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  stream->add_work(Launch(function, grid, block, shared_bytes, parameters));
  return CUDA_SUCCESS;
}
// What the stand-in for NVRTC makes is a shared object (tests/plugin/host_module.h). It stays
// loaded.
STAND_IN cuModuleLoadData(CUmodule* module, const void* image) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  HostModule header = {};
  std::memcpy(&header, image, sizeof(header.magic));
  if (std::memcmp(header.magic, kHostModule, sizeof(kHostModule)) != 0)
    return CUDA_ERROR_INVALID_IMAGE;
  std::memcpy(&header, image, sizeof(header));
  char path[] = "/tmp/tandem-module-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) return CUDA_ERROR_UNKNOWN;
  const auto* const bytes = static_cast<const char*>(image) + sizeof(header);
  const bool written = write(file, bytes, header.bytes) == static_cast<ssize_t>(header.bytes);
  close(file);
  void* const opened = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!opened) std::fprintf(stderr, "stand-in: %s\n", written ? dlerror() : "no space in /tmp");
  unlink(path);
  if (!opened) return CUDA_ERROR_INVALID_IMAGE;
  *module = reinterpret_cast<CUmodule>(opened);
  return CUDA_SUCCESS;
}
STAND_IN cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  ENTER();
  using Get = const tandem::cuda::HostFunction* (*)();
  const auto get = reinterpret_cast<Get>(dlsym(module, (std::string(name) + "_function").c_str()));
  if (!get) return CUDA_ERROR_INVALID_VALUE;
  *function = reinterpret_cast<CUfunction>(const_cast<tandem::cuda::HostFunction*>(get()));
  return CUDA_SUCCESS;
}
}
