#include "tandem/core/buffer.h"

#include <new>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"

namespace tandem {
namespace {

constexpr std::size_t kHeader = 64;

// One block holds this object and, 64 bytes on, its memory.
class HeapBuffer final : public Buffer {
 public:
  static Ref<Buffer> make(std::size_t bytes) {
    if (bytes > SIZE_MAX - kHeader) {
      throw ResourceExhaustedError(cat("A buffer of ", bytes, " bytes cannot be allocated."));
    }
    void* block = host_allocate(kHeader + bytes);
    return Ref<Buffer>(new (block) HeapBuffer(static_cast<std::byte*>(block) + kHeader, bytes));
  }

 private:
  using Buffer::Buffer;
  void destroy() const noexcept override {
    const std::size_t bytes = kHeader + size_;
    auto* self = const_cast<HeapBuffer*>(this);
    self->~HeapBuffer();
    host_free(self, bytes);
  }
};
static_assert(sizeof(HeapBuffer) <= kHeader);

template <class T>
class ObjectBuffer final : public Buffer {
 public:
  explicit ObjectBuffer(std::size_t count)
      : Buffer(nullptr, count * sizeof(T)), objects_(new T[count]()) {
    data_ = objects_.get();
  }

 private:
  std::unique_ptr<T[]> objects_;
};

class OutsideBuffer final : public Buffer {
 public:
  OutsideBuffer(void* data, std::size_t bytes, std::function<void()> release)
      : Buffer(data, bytes, /*owned=*/false), release_(std::move(release)) {}
  ~OutsideBuffer() override {
    if (release_) release_();
  }

 private:
  std::function<void()> release_;
};

template <class T>
Ref<Buffer> make_objects(std::size_t count) {
  try {
    // More cannot be had anyway, and sanitizers end the process where it is asked for.
    if (count > (std::size_t{1} << 39) / sizeof(T)) throw std::bad_alloc();
    return Ref<Buffer>(new ObjectBuffer<T>(count));
  } catch (const std::bad_alloc&) {
    throw ResourceExhaustedError(
        cat("Out of host memory for ", count, " objects of ", sizeof(T), " bytes."));
  }
}

}  // namespace

Ref<Buffer> allocate_host_buffer(std::size_t bytes) { return HeapBuffer::make(bytes); }

std::size_t counted_host_buffer_bytes(std::size_t bytes) noexcept {
  return host_counted_bytes(kHeader + bytes);
}

Ref<Buffer> Buffer::allocate_like(std::size_t bytes) const { return allocate_host_buffer(bytes); }

Ref<Buffer> allocate_object_buffer(DType dtype, std::size_t count) {
  switch (dtype) {
    case DType::kString: return make_objects<std::string>(count);
    case DType::kVariant: return make_objects<Variant>(count);
    case DType::kResource: return make_objects<ResourceHandle>(count);
    default: throw InternalError(cat("dtype ", dtype, " has no object elements"));
  }
}

Ref<Buffer> wrap_memory(void* data, std::size_t bytes, std::function<void()> release) {
  return Ref<Buffer>(new OutsideBuffer(data, bytes, std::move(release)));
}

}  // namespace tandem
