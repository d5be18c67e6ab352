#include "tests/unit/data/allocations_util.h"

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#define TANDEM_HAS_FEATURE(x) __has_feature(x)
#else
#define TANDEM_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    TANDEM_HAS_FEATURE(address_sanitizer) || TANDEM_HAS_FEATURE(thread_sanitizer)
#define TANDEM_OWN_HEAP 1
#endif

namespace {

thread_local bool t_counting = false;
thread_local std::int64_t t_allocations = 0;

}  // namespace

#ifndef TANDEM_OWN_HEAP
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
#ifdef TANDEM_OWN_HEAP
  return false;
#else
  return true;
#endif
}

}  // namespace tandem::data
