#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace tandem::data {

/// A thread of a pipeline; all of them are made here. Throws ResourceExhaustedError, which names
/// the stage, if the system gives no more.
std::thread start_thread(std::string_view stage, std::function<void()> work);

/// Adds threads until there are `count`, each of which calls `work` with its number. Where the
/// system gives fewer, but one at least, the stage is to make do with these, and a warning says so;
/// else throws as start_thread does. Returns how many there are.
std::size_t start_threads(std::string_view stage, std::size_t count,
                          const std::function<void(std::size_t number)>& work,
                          std::vector<std::thread>& threads);

}  // namespace tandem::data
