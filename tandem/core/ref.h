#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "tandem/core/export.h"

namespace tandem {

/// Base of objects owned by counted references (`Ref<T>`): tensors, buffers, resources.
///
/// The count starts at zero; the first `Ref` makes it one. Counting is thread-safe. The last `Ref`
/// to go deletes the object on whichever thread lets it go.
class TANDEM_EXPORT RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    // A sole owner needs no atomic write: nothing else can gain or lose a reference meanwhile.
    if (count_.load(std::memory_order_acquire) == 1 ||
        count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy();
    }
  }

  /// True if the caller holds the only reference, so it may change the object in place.
  bool unique() const noexcept { return count_.load(std::memory_order_acquire) == 1; }

 protected:
  virtual ~RefCounted();

  /// Frees the object; overridden where memory comes from elsewhere than `new`.
  virtual void destroy() const noexcept { delete this; }

 private:
  mutable std::atomic<std::int64_t> count_{0};
};

/// A counted reference to a `RefCounted`. Empty by default. Copying is one relaxed atomic
/// increment.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) {
    if (object_) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  Ref(const Ref<U>& other) : Ref(static_cast<T*>(other.get())) {}
  template <class U>
  Ref(Ref<U>&& other) noexcept : object_(other.detach()) {}
  ~Ref() {
    if (object_) object_->release();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  bool operator==(const Ref& other) const noexcept { return object_ == other.object_; }

  /// Gives up the reference without releasing it.
  T* detach() noexcept { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace tandem
