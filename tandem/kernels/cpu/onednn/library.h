#pragma once

#if __has_include(<oneapi/dnnl/dnnl.hpp>)
#include <oneapi/dnnl/dnnl.hpp>
#else
#include <dnnl.hpp>
#endif

#include "tandem/core/dtype.h"
#include "tandem/kernels/cpu/onednn/support.h"

// oneDNN as the files of this folder see it: versions 2.6 and later, and 3.x. No other code
// includes its headers.

namespace tandem::cpu::onednn {

/// The CPU's engine. Never destroyed: threads may outlive static objects.
const dnnl::engine& engine();

/// The calling thread's stream.
dnnl::stream& thread_stream();

/// float or bfloat16.
dnnl::memory::data_type data_type(DType dtype);

/// Attributes of all our primitives: scratch memory is the caller's.
dnnl::primitive_attr user_scratch();

/// Keeps the library on the calling thread for a block. Debian's build of it is parallel by OpenMP;
/// a team of one thread means that it starts none. The thread's own setting comes back afterwards.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// Throws a status of the library as our error.
[[noreturn]] void throw_status(dnnl_status_t status, const char* doing);

}  // namespace tandem::cpu::onednn
