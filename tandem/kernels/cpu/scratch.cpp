#include "tandem/kernels/cpu/scratch.h"

#include <algorithm>

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
thread_local ThreadBlock t_block;

}  // namespace

Scratch::Scratch(std::size_t bytes) {
  if (bytes == 0) return;
  ThreadBlock& own = t_block;
  if (bytes > kKept || own.taken) {
    data_ = host_allocate(bytes);
    bytes_ = bytes;
    return;
  }
  if (own.size < bytes) {
    const std::size_t size = std::min(kKept, std::max(2 * own.size, bytes));
    void* larger = host_allocate(size);
    if (own.data) host_free(own.data, own.size);
    own.data = larger;
    own.size = size;
  }
  own.taken = true;
  data_ = own.data;
}

Scratch::~Scratch() {
  if (bytes_ != 0) {
    host_free(data_, bytes_);
  } else if (data_) {
    t_block.taken = false;
  }
}

}  // namespace tandem::cpu
