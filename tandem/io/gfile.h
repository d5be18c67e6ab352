#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/fs/file_system.h"

/// Files and folders by path, of this machine and of every registered scheme ("s3://…", see
/// docs/file-systems.md). Errors are those of the file systems: NotFoundError,
/// PermissionDeniedError and the like, whose message begins with the path.
namespace tandem::io::gfile {

/// A file opened by a mode: "r" reads, "w" empties and writes, "a" writes at the end; a "b" or "+"
/// in it changes nothing. Used by one thread at a time.
class TANDEM_EXPORT GFile {
 public:
  explicit GFile(const String& name, const String& mode = "r");
  ~GFile();  ///< closes, hiding errors
  GFile(GFile&&) noexcept;
  GFile& operator=(GFile&&) noexcept;

  /// The next `count` bytes, or all that is left with -1.
  std::string read(std::int64_t count = -1);
  /// The next line with its end, "" at the end of the file.
  std::string readline();
  std::vector<std::string> readlines();
  void write(std::string_view bytes);
  void seek(std::int64_t offset);
  std::int64_t position() const;  ///< the byte that is read or written next
  std::int64_t size() const;
  void flush();
  void close();

 private:
  struct State;
  State& reading() const;
  State& writing() const;
  std::unique_ptr<State> state_;
};

TANDEM_EXPORT bool exists(const String& path);
TANDEM_EXPORT bool isdir(const String& path);
/// Names in a folder.
TANDEM_EXPORT std::vector<std::string> listdir(const String& path);
/// Paths that a pattern with `*`, `?` and `[…]` matches, sorted.
TANDEM_EXPORT std::vector<std::string> glob(const String& pattern);
TANDEM_EXPORT void mkdir(const String& path);
TANDEM_EXPORT void makedirs(const String& path);
/// AlreadyExistsError if `dst` is there, unless it is to be overwritten; so does rename.
TANDEM_EXPORT void copy(const String& src, const String& dst, bool overwrite = false);
TANDEM_EXPORT void rename(const String& src, const String& dst, bool overwrite = false);
TANDEM_EXPORT void remove(const String& path);
/// A folder and all that is in it.
TANDEM_EXPORT void rmtree(const String& path);
TANDEM_EXPORT fs::FileInfo stat(const String& path);
TANDEM_EXPORT std::string join(const String& path, const String& name);

/// A folder, the folders in it, and its files.
using Walked = std::tuple<std::string, std::vector<std::string>, std::vector<std::string>>;
/// `top` and all folders below it, each before its own if `topdown`.
TANDEM_EXPORT std::vector<Walked> walk(const String& top, bool topdown = true);

}  // namespace tandem::io::gfile
