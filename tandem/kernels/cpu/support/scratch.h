#pragma once

#include <cstddef>

namespace tandem::cpu {

/// Uninitialised memory for the length of a block, 64-byte aligned. The thread keeps what small
/// requests took for its next ones, so a steady state allocates nothing. Stays on its thread.
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
  std::size_t bytes_ = 0;
  void* block_ = nullptr;  ///< the thread's own, if it is one of those
};

}  // namespace tandem::cpu
