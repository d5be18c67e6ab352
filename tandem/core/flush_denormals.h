#pragma once

#include <cstdint>

namespace tandem {

/// While it lives, the calling thread's vector arithmetic takes denormal numbers for zero and gives
/// zero for them, as TensorFlow's kernels do: processors take several times as long for denormals,
/// and an optimizer's decaying averages are full of them.
class ScopedFlushDenormals {
 public:
  ScopedFlushDenormals() : before_(read()) {
    if ((before_ & kFlush) != kFlush) write(before_ | kFlush);
  }
  ~ScopedFlushDenormals() {
    if ((before_ & kFlush) != kFlush) write(before_);
  }
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  using Register = unsigned;
  static constexpr Register kFlush = 0x8040;  // flush to zero, denormals are zero
  static Register read() { return __builtin_ia32_stmxcsr(); }
  static void write(Register value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
  using Register = std::uint64_t;
  static constexpr Register kFlush = std::uint64_t{1} << 24;  // FPCR.FZ
  static Register read() {
    Register value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(Register value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
  using Register = unsigned;
  static constexpr Register kFlush = 0;
  static Register read() { return 0; }
  static void write(Register) {}
#endif

  Register before_;
};

}  // namespace tandem
