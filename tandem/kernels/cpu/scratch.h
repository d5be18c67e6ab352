#pragma once

#include <cstddef>

namespace tandem::cpu {

/// Uninitialised memory for the length of a block, 64-byte aligned. The thread keeps what small
/// requests took for its next one, so a steady state allocates nothing.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;  ///< 0: the thread's own block, or nothing
};

}  // namespace tandem::cpu
