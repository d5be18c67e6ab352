#include "tandem/kernels/cpu/scratch.h"

#include <algorithm>
#include <iterator>

#include "tandem/core/host_memory.h"

namespace tandem::cpu {
namespace {

constexpr std::size_t kKept = std::size_t{1} << 20;

struct ThreadBlock {
  void* data = nullptr;
  std::size_t size = 0;
  bool taken = false;
  ~ThreadBlock() {
    if (data) host_free(data, size);
  }
};
// As many as are in use at once: a kernel's own, and those of what it calls.
thread_local ThreadBlock t_blocks[3];

}  // namespace

Scratch::Scratch(std::size_t bytes) {
  if (bytes == 0) return;
  ThreadBlock* own = nullptr;
  if (bytes <= kKept) {
    own = std::find_if(std::begin(t_blocks), std::end(t_blocks),
                       [](const ThreadBlock& b) { return !b.taken; });
  }
  if (!own || own == std::end(t_blocks)) {
    data_ = host_allocate(bytes);
    bytes_ = bytes;
    return;
  }
  if (own->size < bytes) {
    const std::size_t size = std::min(kKept, std::max(2 * own->size, bytes));
    void* larger = host_allocate(size);
    if (own->data) host_free(own->data, own->size);
    own->data = larger;
    own->size = size;
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
