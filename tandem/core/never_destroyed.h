#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace tandem {

/// A function's static object that is never destroyed: threads (detached ones of the program, those
/// of devices and datasets) may use it while static objects are destroyed at the program's end.
///
///     static const NeverDestroyed<Table> table([] { return Table{{"one", 1}, {"two", 2}}; });
///     return *table;
///
/// Its memory stays reachable, so leak checkers are content.
template <class T>
class NeverDestroyed {
 public:
  /// T().
  NeverDestroyed() { ::new (static_cast<void*>(memory_)) T(); }
  /// What `make()` returns, made in place: T may be immovable.
  template <class Make>
  explicit NeverDestroyed(Make&& make) {
    ::new (static_cast<void*>(memory_)) T(std::forward<Make>(make)());
  }
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(memory_)); }
  const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(memory_)); }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

 private:
  alignas(T) std::byte memory_[sizeof(T)];
};

}  // namespace tandem
