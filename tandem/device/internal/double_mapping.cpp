#include "tandem/device/internal/double_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/device/internal/byte_size.h"

namespace tandem {
namespace {

[[noreturn]] void throw_no_room(std::size_t bytes, const char* what) {
  throw ResourceExhaustedError(cat("The host has no room to emulate a device with ",
                                   byte_text(bytes), " of memory: ", what, ": ",
                                   std::strerror(errno), ". Emulate less (memory=...)."));
}

}  // namespace

DoubleMapping::DoubleMapping(std::size_t bytes, std::size_t capacity) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  view_bytes_ = (bytes + page - 1) / page * page;
  const int file = memfd_create("tandem-emulated", MFD_CLOEXEC);
  if (file < 0) throw_no_room(capacity, "memfd_create");
  // Two views side by side, and a page behind them that nothing may touch.
  total_ = 2 * view_bytes_ + page;
  void* at = MAP_FAILED;
  const char* what = "ftruncate";
  if (ftruncate(file, static_cast<off_t>(view_bytes_)) == 0) {
    what = "mmap";
    at = mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (at != MAP_FAILED) {
    base_ = static_cast<std::byte*>(at);
    const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    if (mmap(base_, view_bytes_, PROT_NONE, flags, file, 0) == MAP_FAILED ||
        mmap(base_ + view_bytes_, view_bytes_, PROT_READ | PROT_WRITE, flags, file, 0) ==
            MAP_FAILED) {
      const int error = errno;
      munmap(base_, total_);
      errno = error;
      at = MAP_FAILED;
    }
  }
  const int error = errno;
  close(file);
  errno = error;
  if (at == MAP_FAILED) throw_no_room(capacity, what);
  // Device memory does not belong in a core dump of the host.
  madvise(base_, total_, MADV_DONTDUMP);
}

DoubleMapping::~DoubleMapping() { munmap(base_, total_); }

}  // namespace tandem
