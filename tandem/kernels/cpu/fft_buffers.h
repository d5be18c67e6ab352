#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace tandem::cpu {

/// The two buffers of a transform of `lanes` lines of `elements` complex numbers, for vectors.
class FftBuffers {
 public:
  FftBuffers(std::int64_t elements, std::int64_t lanes)
      : size_(((2 * elements * lanes + 7) / 8) * 8),
        memory_(static_cast<double*>(
            std::aligned_alloc(64, static_cast<std::size_t>(2 * size_) * sizeof(double)))) {
    if (!memory_) throw std::bad_alloc();
  }
  double* a() const { return memory_.get(); }
  double* b() const { return memory_.get() + size_; }

 private:
  struct Free {
    void operator()(double* p) const { std::free(p); }
  };
  std::int64_t size_;
  std::unique_ptr<double, Free> memory_;
};

}  // namespace tandem::cpu
