#include "tests/plugin/cuda_stand_in/calls.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>

namespace stand_in {

Counts counts;
Objects objects;

Failures& failures() {
  static auto* all = new Failures;  // streams' threads may outlive static objects
  return *all;
}

CUresult enter(const char* name) {
  ++counts.driver_calls;
  Failures& f = failures();
  if (f.stuck != CUDA_SUCCESS) return static_cast<CUresult>(f.stuck.load());
  if (f.left_of_name.load() > 0) {
    std::lock_guard lock(f.naming);
    if (f.name == name && f.left_of_name > 0) {
      --f.left_of_name;
      return static_cast<CUresult>(f.result_of_name);
    }
  }
  if (f.left.load() == 0 || f.left.fetch_sub(1) != 1) return CUDA_SUCCESS;
  static const bool verbose = std::getenv("CUDA_STAND_IN_VERBOSE") != nullptr;
  if (verbose) std::fprintf(stderr, "stand-in: %s fails with %d\n", name, f.result.load());
  if (f.sticks) {
    std::unique_lock lock(f.working);
    f.stuck = f.result.load();
  }
  return static_cast<CUresult>(f.result.load());
}

}  // namespace stand_in
