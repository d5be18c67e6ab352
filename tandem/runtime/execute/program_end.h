#pragma once

namespace tandem {

/// Waits for the eager calls that the default runtime's devices have yet to run, if there is one.
void drain_default_runtime();

/// Called when the thread's context is destroyed. The main thread's is when the program ends,
/// before any static object: kernels of the program's own may use those.
void thread_ends();

}  // namespace tandem
