#include "tandem/kernels/cpu/support/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "tandem/core/host_memory.h"

namespace tandem::cpu {
namespace {

constexpr std::size_t kKept = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 64;

// Not of host_allocate: what a thread keeps for its kernels is a cache, which belongs to no call
// and is not in use by tensors. That of a thread of an emulated device is not the host's at all.
struct ThreadBlock {
  void* data = nullptr;
  std::size_t size = 0;
  bool taken = false;
  ~ThreadBlock() { std::free(data); }
  // False where there is no memory.
  bool grow(std::size_t bytes) {
    const std::size_t wanted = std::min(kKept, std::max(2 * size, bytes));
    const std::size_t rounded = (wanted + kAlignment - 1) / kAlignment * kAlignment;
    void* larger = std::aligned_alloc(kAlignment, rounded);
    if (!larger) return false;
    std::free(data);
    data = larger;
    size = rounded;
    return true;
  }
};
// The most buffers in use at once: a kernel's own, and those of what it calls.
thread_local ThreadBlock t_blocks[3];

}  // namespace

Scratch::Scratch(std::size_t bytes) {
  if (bytes == 0) return;
  ThreadBlock* own = nullptr;
  if (bytes <= kKept) {
    own = std::find_if(std::begin(t_blocks), std::end(t_blocks),
                       [](const ThreadBlock& b) { return !b.taken; });
  }
  if (own == std::end(t_blocks) || (own && own->size < bytes && !own->grow(bytes))) own = nullptr;
  if (!own) {
    data_ = host_allocate(bytes);
    bytes_ = bytes;
    return;
  }
  own->taken = true;
  data_ = own->data;
  block_ = own;
}

Scratch::~Scratch() {
  if (block_) {
    static_cast<ThreadBlock*>(block_)->taken = false;
  } else if (data_) {
    host_free(data_, bytes_);
  }
}

}  // namespace tandem::cpu
