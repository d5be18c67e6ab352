#pragma once

#include <exception>
#include <functional>

#include "tandem/core/array.h"

namespace tandem {

/// Copies the elements of `from` to `to`, memory of the same size; one of them lies on a device.
/// Returns at once: `done` is called exactly once, on a thread of a backend's or before this
/// returns, with null or why the copy failed, and must not block. Between devices that cannot reach
/// each other it goes out by the one and in by the other; nothing waits in between. What cancels
/// the calling thread's work cancels the copy. Throws UnavailableError, and calls nothing, if the
/// copy cannot begin.
void start_transfer(const Array& from, const Array& to,
                    std::function<void(std::exception_ptr)> done);

}  // namespace tandem
