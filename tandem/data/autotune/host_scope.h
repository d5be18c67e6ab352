#pragma once

#include "tandem/runtime/thread_context.h"

namespace tandem::data {

/// Inside, what runs for a pipeline, its functions and generators above all, runs on the host's
/// CPU, whatever device scopes the thread is in. A device scope that a function opens itself
/// counts.
class HostScope {
 public:
  static constexpr const char* kDevice = "/CPU:0";

  HostScope() { thread_context().devices.emplace_back(kDevice); }
  ~HostScope() { thread_context().devices.pop_back(); }
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;
};

}  // namespace tandem::data
