#include "tandem/runtime/execute/program_end.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace tandem {

void thread_ends() {
  if (syscall(SYS_gettid) == getpid()) drain_default_runtime();
}

}  // namespace tandem
