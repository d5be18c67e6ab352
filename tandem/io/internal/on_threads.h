#pragma once

#include <cstddef>
#include <functional>

namespace tandem::io {

/// Runs work(i) for all i below `count` on so many threads, the caller's among them and in its
/// context. After an exception no further work begins; the first is thrown.
void on_threads(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace tandem::io
