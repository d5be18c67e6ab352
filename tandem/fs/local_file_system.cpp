#include "tandem/fs/internal/local_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/internal/system_error.h"
#include "tandem/fs/paths.h"

namespace tandem::fs {
namespace {

// A file descriptor and the path that its errors name.
class Handle {
 public:
  Handle(std::string path, int flags) : path_(std::move(path)) {
    do {
      fd_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0) throw_system_error(errno, path_);
  }
  ~Handle() {
    if (fd_ >= 0) ::close(fd_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  int fd() const { return fd_; }
  [[noreturn]] void fail_as_no_file() const {
    throw FailedPreconditionError(
        cat(path_,
            "; Not a regular file, but a pipe, terminal or socket, which cannot be read at "
            "an offset. Write it to a file first"));
  }
  [[noreturn]] void fail() const { throw_system_error(errno, path_); }
  void close() {
    const int fd = std::exchange(fd_, -1);
    if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) fail();
  }

 private:
  std::string path_;
  int fd_;
};

// One system call moves at most this much.
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

class LocalReadableFile final : public ReadableFile {
 public:
  explicit LocalReadableFile(const std::string& path) : file_(path, O_RDONLY) {}

  std::size_t read(std::uint64_t offset, std::span<char> out) const override {
    std::size_t got = 0;
    while (got < out.size()) {
      const ssize_t n =
          ::pread(file_.fd(), out.data() + got, std::min(out.size() - got, kPieceBytes),
                  static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == ESPIPE) file_.fail_as_no_file();
      if (n < 0) file_.fail();
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    return got;
  }

 private:
  Handle file_;
};

class LocalWritableFile final : public WritableFile {
 public:
  LocalWritableFile(const std::string& path, int how) : file_(path, O_WRONLY | O_CREAT | how) {}

  void append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_.fd(), bytes.data(), std::min(bytes.size(), kPieceBytes));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) file_.fail();
      bytes.remove_prefix(static_cast<std::size_t>(n));
      written_ += static_cast<std::uint64_t>(n);
      start_writeback();
    }
  }
  void sync() override {
    if (::fsync(file_.fd()) != 0) file_.fail();
  }
  void close() override { file_.close(); }

 private:
  // The disk works on what was written while more is being made, so that a sync has little left
  // to wait for. Only large files get there; failures are reported by the sync.
  void start_writeback() {
    constexpr std::uint64_t kStep = std::uint64_t{8} << 20;
    if (written_ - started_ < kStep) return;
    ::sync_file_range(file_.fd(), static_cast<off_t>(started_),
                      static_cast<off_t>(written_ - started_), SYNC_FILE_RANGE_WRITE);
    started_ = written_;
  }

  Handle file_;
  std::uint64_t written_ = 0;
  std::uint64_t started_ = 0;
};

std::string local(const std::string& path) { return without_file_scheme(path); }

}  // namespace

std::unique_ptr<ReadableFile> LocalFileSystem::open(const std::string& path) {
  return std::make_unique<LocalReadableFile>(local(path));
}

std::unique_ptr<WritableFile> LocalFileSystem::create(const std::string& path) {
  return std::make_unique<LocalWritableFile>(local(path), O_TRUNC);
}

std::unique_ptr<WritableFile> LocalFileSystem::append_to(const std::string& path) {
  return std::make_unique<LocalWritableFile>(local(path), O_APPEND);
}

FileInfo LocalFileSystem::stat(const std::string& path) {
  struct ::stat info;
  if (::stat(local(path).c_str(), &info) != 0) throw_system_error(errno, path);
  return {static_cast<std::uint64_t>(info.st_size), S_ISDIR(info.st_mode), S_ISREG(info.st_mode)};
}

std::vector<std::string> LocalFileSystem::list(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator at(local(path), error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error) throw_system_error(error.value(), path);
  std::sort(names.begin(), names.end());
  return names;
}

void LocalFileSystem::remove(const std::string& path) {
  if (std::remove(local(path).c_str()) != 0) throw_system_error(errno, path);
}

void LocalFileSystem::rename(const std::string& from, const std::string& to) {
  if (std::rename(local(from).c_str(), local(to).c_str()) != 0) {
    throw_system_error(errno, from + " -> " + to);
  }
}

// A link may lead to what is not there yet, so it is followed step by step.
std::string LocalFileSystem::follow_links(const std::string& path) {
  constexpr int kMaxLinks = 40;
  std::filesystem::path target = local(path);
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) return i == 0 ? path : target.string();  // no link
    target = target.parent_path() / next;               // `next` alone if it is absolute
  }
  return path;  // in a circle: opening it fails
}

void LocalFileSystem::copy_permissions(const std::string& from, const std::string& to) {
  struct ::stat info;
  if (::stat(local(from).c_str(), &info) != 0) return;  // gone meanwhile
  if (::chmod(local(to).c_str(), info.st_mode & 07777) != 0) throw_system_error(errno, to);
}

// Some file systems do not sync folders: EINVAL.
void LocalFileSystem::sync_directory(const std::string& path) {
  const std::string folder = local(path);
  const Handle handle(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (::fsync(handle.fd()) != 0 && errno != EINVAL && errno != ENOTSUP) handle.fail();
}

void LocalFileSystem::make_directories(const std::string& path) {
  // Those that are missing, the highest last: each is an entry of the folder above it, which must
  // survive a crash if what is written into the new one shall.
  std::vector<std::filesystem::path> missing;
  std::error_code error;
  for (std::filesystem::path at = local(path); !at.empty() && !std::filesystem::exists(at, error);
       at = at.parent_path()) {
    missing.push_back(at);
  }
  std::filesystem::create_directories(local(path), error);
  if (error) throw_system_error(error.value(), path);
  for (; !missing.empty(); missing.pop_back())
    sync_directory(missing.back().parent_path().string());
}

}  // namespace tandem::fs
