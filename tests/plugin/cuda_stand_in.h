#pragma once

// A stand-in for a CUDA driver (tests/plugin/cuda_stand_in/): the functions that libtandem_cuda.so
// uses, on host memory and threads. It is no GPU and nothing is measured on it; with it the
// conformance suite runs through the library's own queues, events and error paths on machines
// without one. It is stricter than a driver where that finds mistakes: copies always come late, and
// addresses and contexts are checked.
//
// Below is what tests, and stand-ins for NVIDIA's libraries, may ask of it beside the driver's own
// functions.

#include <cstddef>
#include <functional>

struct CUstream_st;

extern "C" {

struct StandInUse {
  long long device_bytes, streams, events, graphs, host_blocks, reserved_ranges;
  long long managed_blocks;  // that were allocated so far
};

/// What was asked of the driver so far, by all threads.
struct StandInCounts {
  long long driver_calls, kernels, graph_launches, bytes_to_gpu, bytes_from_gpu;
};

/// A kernel or a transfer that begins or ends on a GPU.
struct StandInActivity {
  enum Kind { kKernel, kToGpu, kToHost, kCopy, kSet };
  Kind kind;
  const char* name;  ///< of a kernel
  unsigned long long bytes;
  int gpu;
  unsigned stream;
  bool begins;
};

struct StandInControl {
  /// Calls of the driver so far, by all threads.
  long long (*calls)();
  /// The `nth` call from now on (1: the next) fails with `result`; 0: none. If the error `sticks`
  /// all later calls fail so too, in this process, and the GPUs do nothing any more.
  void (*fail)(long long nth, int result, int sticks);
  /// 1 while that call has not come.
  int (*pending)();
  /// What exists of the driver's objects and memory.
  StandInUse (*used)();
  long long (*graph_launches)();
  long long (*kernels)();
  /// For libraries. A call of one of their functions, which counts as one of the driver's and may
  /// fail as those do: 0, or the driver's number of the error.
  int (*library_call)(const char* name);
  /// Has the GPU do something in the stream's order, as a kernel would; captured where the stream
  /// is capturing.
  void (*add_kernel)(CUstream_st* stream, std::function<void()> work);
  /// 1 if these bytes lie in one block of a GPU's memory.
  int (*is_device_memory)(const void* address, std::size_t bytes);
  StandInCounts (*counts)();
  /// The next `count` calls of the function of that name fail with `result`.
  void (*fail_function)(const char* name, long long count, int result);
  /// How many of these have not come.
  long long (*function_pending)();
  /// Another process takes all of the GPUs' memory that is free but `bytes`, instead of what it
  /// held so far; below 0 it ends.
  void (*leave_free)(long long bytes);
  /// Has `seen` called, on the GPU's threads, for all that GPUs do from now on; null: no more.
  void (*observe)(void (*seen)(const StandInActivity& activity));
};

/// The library's one function beside the driver's.
const StandInControl* cuda_stand_in_control();
}
