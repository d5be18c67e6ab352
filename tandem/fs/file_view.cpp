#include "tandem/fs/file_view.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"

namespace tandem::fs {
namespace {

std::uintptr_t page_bytes() {
  static const auto bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Has the system fetch the pages of these bytes; false where it cannot.
bool fetch([[maybe_unused]] std::string_view bytes) {
#if defined(MADV_POPULATE_READ)
  const std::uintptr_t page = page_bytes();
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  int result;
  do {
    result = ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result == 0;
#else
  return false;
#endif
}

}  // namespace

FileView::FileView(const std::string& path) {
  try {
    if (is_local(path) && file_system_of(path).stat(path).is_regular) file_.emplace(path);
  } catch (const Error&) {
    // Reading the file throws it again.
  }
}

std::string_view FileView::bytes(std::uint64_t offset, std::size_t size) const {
  if (!file_ || offset > file_->bytes().size() || size > file_->bytes().size() - offset) return {};
  const std::string_view bytes = file_->bytes().substr(static_cast<std::size_t>(offset), size);
  return fetch(bytes) ? bytes : std::string_view();
}

void FileView::release(std::string_view bytes) const {
  const std::uintptr_t page = page_bytes();
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + bytes.size()) / page * page;
  // A refusal leaves them where they are.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace tandem::fs
