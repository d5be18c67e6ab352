#pragma once

// What tests may ask of the stand-in for a CUDA driver, beside the driver's own functions.

extern "C" {

struct StandInUse {
  long long device_bytes, streams, events, graphs, host_blocks;
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
};

/// The library's one function beside the driver's.
const StandInControl* cuda_stand_in_control();
}
