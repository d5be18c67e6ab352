#pragma once

namespace tandem {

/// For the making of a primitive, or a call of BLAS, which use static objects of their libraries:
/// the program's end, which destroys those, waits for the block.
class MakingScope {
 public:
  MakingScope();
  ~MakingScope();
  MakingScope(const MakingScope&) = delete;
  MakingScope& operator=(const MakingScope&) = delete;

  /// False once the program ends: nothing may be made any more. Primitives that exist still run.
  bool allowed() const { return allowed_; }

 private:
  bool allowed_;
};

/// Whether the calling thread is the one that ends the program: static objects that are still there
/// may be used by it.
bool program_ends_here();

/// For what cannot go on without a new primitive. While the program ends, a thread that nothing
/// waits for (a detached one, the main thread) stops here; another one gets a CancelledError.
/// Returns if the program does not end.
void stop_at_program_end();

}  // namespace tandem
