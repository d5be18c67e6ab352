#include "tests/unit/data/allocations_util.h"

#include <cstddef>
#include <cstdlib>
#include <new>

#include "tandem/core/internal/sanitizers.h"

#define TANDEM_OWN_HEAP (TANDEM_ADDRESS_SANITIZER || TANDEM_THREAD_SANITIZER)

namespace {

thread_local bool t_counting = false;
thread_local std::int64_t t_allocations = 0;

}  // namespace

#if !TANDEM_OWN_HEAP
namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  t_allocations += t_counting ? 1 : 0;
  void* block = nullptr;
  return posix_memalign(&block, alignment, bytes == 0 ? 1 : bytes) == 0 ? block : nullptr;
}

}  // namespace

// The program's, and so the library's too.
void* operator new(std::size_t bytes) {
  if (void* block = allocate(bytes, alignof(std::max_align_t))) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

// Where tensors have their memory from if none is left over.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return allocate(bytes, alignment);
}
#endif

namespace tandem::data {

AllocationCount::AllocationCount() {
  t_allocations = 0;
  t_counting = true;
}

AllocationCount::~AllocationCount() { t_counting = false; }

std::int64_t AllocationCount::so_far() const { return t_allocations; }

bool AllocationCount::possible() {
#if TANDEM_OWN_HEAP
  return false;
#else
  return true;
#endif
}

}  // namespace tandem::data
