#include "tandem/keras/get_file.h"

#include <cstdlib>
#include <iostream>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"
#include "tandem/keras/internal/cache_paths.h"

namespace tandem::keras {
namespace internal {

bool file_exists(const std::string& path) {
  try {
    fs::file_system_of(path).stat(path);
    return true;
  } catch (const NotFoundError&) {
    return false;
  }
}

std::string cache_folder(const std::string& subdir, const std::string& cache_dir) {
  std::string home = cache_dir;
  if (home.empty()) {
    const char* keras_home = std::getenv("KERAS_HOME");
    const char* user_home = std::getenv("HOME");
    home = keras_home  ? std::string(keras_home)
           : user_home ? fs::join_path(user_home, ".keras")
                       : std::string("/tmp/.keras");
  }
  return fs::join_path(home, subdir);
}

}  // namespace internal

std::string utils::get_file(const GetFileOptions& o) {
  if (o.origin.empty()) {
    throw InvalidArgumentError(
        "Please specify the \"origin\" argument (URL of the file to download).");
  }
  const std::string name =
      o.fname.empty() ? std::string(fs::base_name(o.origin)) : std::string(o.fname);
  if (name.empty() || name.find('/') != std::string::npos) {
    throw InvalidArgumentError(cat("get_file: fname must be the name of a file without folders, ",
                                   "got '", name, "'. Use cache_dir for its folder."));
  }
  const std::string folder = internal::cache_folder(o.cache_subdir, o.cache_dir);
  const std::string path = fs::join_path(folder, name);
  if (!o.force_download && internal::file_exists(path)) return path;
  std::string content;
  try {
    std::cerr << "Downloading data from " << o.origin << '\n';
    content = fs::read_file(o.origin);
  } catch (const Error& error) {
    throw NotFoundError(cat("The file ", name, " is not in the cache (", path,
                            ") and could not be downloaded from ", o.origin, ": ", error.what(),
                            " Download it where there is a network, and put it there or give its "
                            "path."));
  }
  fs::file_system_of(folder).make_directories(folder);
  fs::write_file(path, content);
  return path;
}

}  // namespace tandem::keras
