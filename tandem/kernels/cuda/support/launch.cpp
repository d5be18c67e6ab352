#include "tandem/kernels/cuda/support/launch.h"

#include <cstdlib>

#include "tandem/device/cuda/internal/driver.h"
#include "tandem/device/cuda/internal/stream.h"

#if defined(TANDEM_CUDA_ON_HOST)
#include <cstdio>
#include <memory>
#include <mutex>
#endif

namespace tandem::cuda {

void* current_stream() { return StreamState::current(); }

unsigned default_block() {
  static const unsigned threads = [] {
    const char* text = std::getenv("TANDEM_TEST_CUDA_BLOCK");
    const long asked = text ? std::strtol(text, nullptr, 10) : 256;
    return asked >= 32 && asked <= 1024 && asked % 32 == 0 ? static_cast<unsigned>(asked) : 256u;
  }();
  return threads;
}

#if defined(TANDEM_CUDA_ON_HOST)

namespace {

struct Launch {
  const char* name;
  Shape shape;
  std::size_t shared_bytes;
  std::function<void()> body;
};

// The first fault of a kernel since the last launch; a launch reports it.
struct Faults {
  std::mutex mutex;
  std::string text;
};
Faults& faults() {
  static auto* all = new Faults;
  return *all;
}

void run(void* argument) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(argument));
  try {
    host::run_grid(launch->name, launch->shape.grid, launch->shape.block, launch->shared_bytes,
                   launch->body);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::lock_guard lock(faults().mutex);
    if (faults().text.empty()) faults().text = error.what();
  }
}

}  // namespace

void launch_on_host(const char* name, const Shape& shape, std::size_t shared_bytes,
                    std::function<void()> body) {
  {
    std::lock_guard lock(faults().mutex);
    if (!faults().text.empty()) throw Failure(TANDEM_INTERNAL, std::exchange(faults().text, {}));
  }
  auto launch = std::make_unique<Launch>(Launch{name, shape, shared_bytes, std::move(body)});
  const CUresult result = driver().p_cuLaunchHostFunc(StreamState::current(), run, launch.get());
  if (result != CUDA_SUCCESS) throw Failure(code_of(result), "cuLaunchHostFunc fails");
  launch.release();
}

#endif

}  // namespace tandem::cuda
