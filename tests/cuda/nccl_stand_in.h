#pragma once

// What tests may ask of the stand-in for NCCL, beside the library's own functions.

extern "C" {

struct NcclStandInControl {
  /// Collectives that were computed, each once for all of its members.
  long long (*computed)();
  /// Communicators that there are.
  long long (*communicators)();
  /// 1: members do not come to each other any more, so that what was issued waits until it is
  /// aborted; 0: they do.
  void (*stall)(int on);
  /// Members that wait for others.
  long long (*waiting)();
  /// What ncclCommGetAsyncError reports of every communicator from now on.
  void (*report)(int error);
};

/// The library's one function beside NCCL's.
const NcclStandInControl* nccl_stand_in_control();
}
