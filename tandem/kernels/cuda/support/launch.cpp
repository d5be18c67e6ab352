#include "tandem/kernels/cuda/support/launch.h"

#include <cstdlib>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "tandem/device/cuda/internal/stream.h"

#if defined(TANDEM_CUDA_ON_HOST)
#include <cstdio>
#endif

namespace tandem::cuda {
namespace {

// A launcher's thread serves one GPU.
std::unordered_map<const void*, Function>& functions() {
  thread_local std::unordered_map<const void*, Function> all;
  return all;
}

}  // namespace

unsigned default_block() {
  static const unsigned threads = [] {
    const char* text = std::getenv("TANDEM_TEST_CUDA_BLOCK");
    const long asked = text ? std::strtol(text, nullptr, 10) : 256;
    return asked >= 32 && asked <= 1024 && asked % 32 == 0 ? static_cast<unsigned>(asked) : 256u;
  }();
  return threads;
}

Function known_function(const void* kernel) {
  const auto found = functions().find(kernel);
  return found == functions().end() ? nullptr : found->second;
}

Function remember_function(const void* kernel, Function function) {
  functions()[kernel] = function;
  return function;
}

Function remember_function(const void* kernel, const HostFunction& function) {
  struct All {
    std::mutex mutex;
    std::deque<HostFunction> functions;
  };
  static auto* all = new All;  // graphs of streams that end with the process name them
  std::lock_guard lock(all->mutex);
  all->functions.push_back(function);
  return remember_function(kernel, reinterpret_cast<Function>(&all->functions.back()));
}

#if defined(TANDEM_CUDA_ON_HOST)

namespace {

// The first fault of a kernel since the last launch; a launch reports it.
struct Faults {
  std::mutex mutex;
  std::string text;
};
Faults& faults() {
  static auto* all = new Faults;
  return *all;
}

void report_fault() {
  std::lock_guard lock(faults().mutex);
  if (!faults().text.empty()) throw Failure(TANDEM_INTERNAL, std::exchange(faults().text, {}));
}

}  // namespace

void run_on_host(const HostFunction& function, const unsigned* grid, const unsigned* block,
                 unsigned shared_bytes, const std::function<void()>& body) {
  try {
    host::run_grid(function.name, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},
                   shared_bytes, body);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::lock_guard lock(faults().mutex);
    if (faults().text.empty()) faults().text = error.what();
  }
}

#else

namespace {
void report_fault() {}
}  // namespace

#endif

void add_launch(const char* name, Function function, const Shape& shape, std::size_t shared_bytes,
                const void* const* parameters, const std::size_t* sizes, std::size_t count) {
  report_fault();
  Command kernel;
  kernel.name = name;
  kernel.function = function;
  kernel.grid[0] = shape.grid.x;
  kernel.grid[1] = shape.grid.y;
  kernel.grid[2] = shape.grid.z;
  kernel.block[0] = shape.block.x;
  kernel.block[1] = shape.block.y;
  kernel.block[2] = shape.block.z;
  kernel.shared_bytes = static_cast<unsigned>(shared_bytes);
  StreamState& stream = StreamState::current();
  stream.commands().add_kernel(kernel, parameters, sizes, count);
  stream.added();
}

LastLaunch::LastLaunch() {
  const Command* const last = StreamState::current().commands().last();
  if (last && last->kind == Command::Kind::kKernel) function_ = last->function;
}

void* LastLaunch::parameter(std::size_t i) const {
  CommandList& commands = StreamState::current().commands();
  return commands.parameters(*commands.last())[i];
}

unsigned LastLaunch::blocks() const { return StreamState::current().commands().last()->grid[0]; }

void LastLaunch::set_blocks(unsigned blocks) const {
  StreamState::current().commands().last()->grid[0] = blocks;
}

std::span<const MemoryUse> LastLaunch::uses() const {
  return StreamState::current().commands().uses_of_last();
}

void LastLaunch::add_uses(std::span<const MemoryUse> uses) const {
  StreamState::current().commands().add_uses_of_last(uses);
}

void LastLaunch::remove() const { StreamState::current().commands().remove_last_kernel(); }

}  // namespace tandem::cuda
