#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#include "tandem/core/internal/sanitizers.h"

#if TANDEM_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

// Fibers of the execution model on the host. Each change of stacks is announced to
// AddressSanitizer, so that its reports show the right one, and exceptions leave none of its marks
// behind.

namespace tandem::cuda::host {

/// One side of changes between stacks.
class Stack {
 public:
  /// Before the calling stack is left for this one; `leaving` is the calling one, null if it ends.
  void enter([[maybe_unused]] Stack* leaving) const {
#if TANDEM_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(leaving ? &leaving->frames_ : nullptr, bottom_, bytes_);
#endif
  }
  /// On this stack, when it goes on; `from` is learnt from where it was entered.
  void entered([[maybe_unused]] Stack* from) {
#if TANDEM_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(frames_, from ? &from->bottom_ : nullptr,
                                    from ? &from->bytes_ : nullptr);
    frames_ = nullptr;
#endif
  }
  void set([[maybe_unused]] const boost::context::stack_context& memory) {
#if TANDEM_ADDRESS_SANITIZER
    bottom_ = static_cast<const char*>(memory.sp) - memory.size;
    bytes_ = memory.size;
#endif
  }

 private:
#if TANDEM_ADDRESS_SANITIZER
  void* frames_ = nullptr;  // what it keeps elsewhere of a stack that is left
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
#endif
};

/// Memory for stacks: that of finished GPU threads serves the next ones. Instrumented code needs
/// more of it.
inline boost::context::pooled_fixedsize_stack& stacks() {
  constexpr std::size_t kBytes = std::size_t{TANDEM_ADDRESS_SANITIZER ? 256 : 128} << 10;
  thread_local boost::context::pooled_fixedsize_stack pool(kBytes);
  return pool;
}

/// A fiber on memory of `stacks()`, described to `stack`.
template <class Body>
boost::context::fiber make_fiber(Stack& stack, Body body) {
  const boost::context::stack_context memory = stacks().allocate();
  stack.set(memory);
  return {std::allocator_arg, boost::context::preallocated(memory.sp, memory.size, memory),
          stacks(), std::move(body)};
}

}  // namespace tandem::cuda::host
