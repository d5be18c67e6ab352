#pragma once

// What tests may ask of the stand-in for cuDNN, beside the library's own functions.

extern "C" {

struct CudnnStandInUse {
  /// How often it was asked for engines, how many plans were made, and what ran by engine.
  long long heuristics, plans, plain, nondeterministic, tensor_core;
  long long attentions;  ///< graphs that were attention
};

struct CudnnStandInControl {
  CudnnStandInUse (*used)();
};

/// The library's one function beside cuDNN's.
const CudnnStandInControl* cudnn_stand_in_control();
}
