#include "tandem/fs/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/internal/system_error.h"

namespace tandem::fs {
namespace {

class Descriptor {
 public:
  Descriptor(const char* name, const std::string& path) {
    do {
      fd_ = ::open(name, O_RDONLY | O_CLOEXEC);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0) throw_system_error(errno, path);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  constexpr std::string_view kScheme = "file://";
  std::string local = path;
  if (path.starts_with(kScheme)) local.erase(0, kScheme.size());
  if (local.find("://") != std::string::npos) {
    content_ = read_file(path);
    bytes_ = content_;
    return;
  }
  const Descriptor file(local.c_str(), path);
  struct ::stat info;
  if (::fstat(file.get(), &info) != 0) throw_system_error(errno, path);
  if (!S_ISREG(info.st_mode)) {  // a folder is an error of reading, a pipe has no size
    content_ = read_file(path);
    bytes_ = content_;
    return;
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return;
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED) throw_system_error(errno, path);
  mapping_ = mapping;
  bytes_ = {static_cast<const char*>(mapping), size};
}

MappedFile::~MappedFile() {
  if (mapping_) ::munmap(mapping_, bytes_.size());
}

}  // namespace tandem::fs
