#pragma once

namespace tandem::cpu::onednn {

/// From now on oneDNN's static objects are made without being registered for destruction: they stay
/// until the process is gone. Its kernels make such objects when they first run (generated code,
/// the cache of primitives), and `exit` would destroy them under the threads that use or are just
/// making them. False where the library cannot be changed so (it is not a shared one of its own, or
/// the platform is another); it then works as it is. Once is enough; thread-safe.
bool keep_static_objects();

}  // namespace tandem::cpu::onednn
