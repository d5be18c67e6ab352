#pragma once

// How each call of the stand-in for a CUDA driver begins: it is counted, and fails where a test has
// asked for that.

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "tandem/device/cuda/internal/driver_api.h"

namespace stand_in {

/// What a call of the driver begins with: CUDA_SUCCESS, or what it fails with. The calls that
/// destroy an object do so in any case: what they return may be the error of earlier work.
CUresult enter(const char* name);

/// What a program asked of the driver.
struct Counts {
  std::atomic<long long> driver_calls{0}, kernels{0}, graph_launches{0}, bytes_to_gpu{0},
      bytes_from_gpu{0}, managed_blocks{0};
};
extern Counts counts;

/// Objects of the driver's that exist.
struct Objects {
  std::atomic<long long> streams{0}, events{0}, graphs{0}, host_blocks{0};
};
extern Objects objects;

/// Calls that fail on request (StandInControl).
struct Failures {
  std::atomic<long long> left{0};  // calls until the one that fails, with it; 0: none
  std::atomic<int> result{0};
  std::atomic<bool> sticks{false};
  // What every call fails with once an error has stuck. GPUs do nothing any more then.
  std::atomic<int> stuck{CUDA_SUCCESS};
  std::shared_mutex working;  // shared while a GPU does something
  std::mutex naming;          // for the next three: calls of one function that fail
  std::string name;
  int result_of_name = 0;
  std::atomic<long long> left_of_name{0};
};
Failures& failures();

}  // namespace stand_in

#define STAND_IN __attribute__((visibility("default"))) CUresult
#define ENTER() \
  if (const CUresult failed = stand_in::enter(__func__); failed != CUDA_SUCCESS) return failed
