#pragma once

#include <exception>
#include <functional>

namespace tandem {

/// Starts work that reports its end by calling `done`, and blocks until then; throws what `done`
/// was given.
void wait_until_done(
    const std::function<void(std::function<void(std::exception_ptr)> done)>& start);

}  // namespace tandem
