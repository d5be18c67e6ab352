#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace tandem::data {

/// So many default-constructed objects for the time of a call: on the stack if they are few, so
/// that a call for each element of a dataset takes no heap memory. Neither copied nor moved.
template <class T, std::size_t kFew = 8>
class CallList {
 public:
  explicit CallList(std::size_t size) {
    T* first = reinterpret_cast<T*>(few_);
    if (size > kFew) {
      many_ = std::make_unique<T[]>(size);
      first = many_.get();
    } else {
      std::uninitialized_default_construct_n(first, size);
    }
    items_ = {first, size};
  }
  ~CallList() {
    if (!many_) std::destroy(items_.begin(), items_.end());
  }
  CallList(const CallList&) = delete;
  CallList& operator=(const CallList&) = delete;

  std::span<T> items() { return items_; }
  T& operator[](std::size_t i) { return items_[i]; }

 private:
  alignas(T) std::byte few_[kFew * sizeof(T)];
  std::unique_ptr<T[]> many_;
  std::span<T> items_;
};

}  // namespace tandem::data
