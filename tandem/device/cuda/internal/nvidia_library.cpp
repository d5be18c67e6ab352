#include "tandem/device/cuda/internal/nvidia_library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <utility>

#include "tandem/core/internal/cache_folder.h"

namespace tandem::cuda {
namespace {

namespace files = std::filesystem;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// What a folder has, in a fixed order; nothing if it cannot be read.
std::vector<files::path> entries(const files::path& folder) {
  std::vector<files::path> found;
  std::error_code failed;
  for (files::directory_iterator i(folder, failed), end; !failed && i != end; i.increment(failed))
    found.push_back(i->path());
  std::sort(found.begin(), found.end());
  return found;
}

void add_toolkit(std::vector<std::string>& folders, const std::string& root) {
  if (root.empty()) return;
  folders.push_back(root + "/lib64");
  folders.push_back(root + "/lib");
}

// NVIDIA's packages put libraries into site-packages/nvidia/PACKAGE/lib.
void add_packages(std::vector<std::string>& folders, const files::path& packages) {
  for (const files::path& package : entries(packages / "nvidia"))
    folders.push_back(package / "lib");
}

// The packages of every Python below `root`/lib.
void add_pythons(std::vector<std::string>& folders, const std::string& root) {
  if (root.empty()) return;
  for (const files::path& python : entries(files::path(root) / "lib")) {
    if (!python.filename().string().starts_with("python")) continue;
    add_packages(folders, python / "site-packages");
    add_packages(folders, python / "dist-packages");
  }
}

// A file of another major version that lies in one of the folders.
std::string other_version(const std::vector<std::string>& folders, const std::string& file) {
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    for (const files::path& found : entries(folder)) {
      if (found.filename().string().starts_with(file)) return found;
    }
  }
  return {};
}

// Where the tests have stand-ins: beside a stand-in for the driver the real ones cannot work.
std::vector<std::string> searched_folders() {
#if defined(TANDEM_CUDA_LIBRARY_FOLDER)
  return {TANDEM_CUDA_LIBRARY_FOLDER};
#else
  return library_folders();
#endif
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  add_toolkit(folders, internal::environment_text("CUDA_HOME"));
  add_toolkit(folders, internal::environment_text("CUDA_PATH"));
  folders.emplace_back();
  add_toolkit(folders, "/usr/local/cuda");
  add_pythons(folders, internal::environment_text("VIRTUAL_ENV"));
  const std::string conda = internal::environment_text("CONDA_PREFIX");
  if (!conda.empty()) folders.push_back(conda + "/lib");
  add_pythons(folders, conda);
  for (const std::string& path : split(internal::environment_text("PYTHONPATH"), ':'))
    add_packages(folders, path);
  if (const std::string home = internal::environment_text("HOME"); !home.empty())
    add_pythons(folders, home + "/.local");
  add_pythons(folders, "/usr/local");
  add_pythons(folders, "/usr");
  return folders;
}

bool is_library_allowed(const std::string& name) {
  const std::string text = internal::environment_text("TANDEM_CUDA_LIBRARIES");
  if (text.empty()) return true;
  const std::vector<std::string> allowed = split(in_lower_case(text), ',');
  return std::find(allowed.begin(), allowed.end(), in_lower_case(name)) != allowed.end();
}

NvidiaLibrary::NvidiaLibrary(Description description)
    : NvidiaLibrary(std::move(description), searched_folders()) {}

NvidiaLibrary::NvidiaLibrary(Description description, const std::vector<std::string>& folders)
    : description_(std::move(description)) {
  if (!is_library_allowed(description_.name)) {
    problem_ = "TANDEM_CUDA_LIBRARIES leaves it out";
    return;
  }
  for (const int major : description_.majors) {
    for (const std::string& folder : folders) {
      if (open(folder, major)) {
        problem_.clear();
        return;
      }
    }
  }
  if (problem_.empty()) problem_ = absence(folders);
}

// A file that is there and cannot be opened is the problem to report, unless another one can.
bool NvidiaLibrary::open(const std::string& folder, int major) {
  const std::string file = description_.file + std::to_string(major);
  const std::string path = folder.empty() ? file : folder + '/' + file;
  std::error_code failed;
  if (!folder.empty() && !files::exists(path, failed)) return false;
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char* const why = dlerror();
    if (!folder.empty() && problem_.empty())
      problem_ = path + " cannot be opened: " + (why ? why : "no reason is known");
    return false;
  }
  handle_ = handle;
  major_ = major;
  path_ = path;
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && *map->l_name != '\0')
    path_ = map->l_name;
  return true;
}

std::string NvidiaLibrary::absence(const std::vector<std::string>& folders) const {
  std::string wanted;
  for (const int major : description_.majors)
    wanted += (wanted.empty() ? "" : " or ") + std::to_string(major);
  if (wanted.empty()) return "the driver is too old for it";
  const std::string other = other_version(folders, description_.file);
  if (!other.empty()) return other + " is of another major version than " + wanted;
  return std::string(description_.file) + wanted + " was not found";
}

void* NvidiaLibrary::address_of(const char* symbol) {
  void* const address = handle_ ? dlsym(handle_, symbol) : nullptr;
  if (!address && handle_) disable(path_ + " has no " + symbol);
  return address;
}

void NvidiaLibrary::disable(const std::string& why) {
  if (problem_.empty()) problem_ = why;
}

std::string NvidiaLibrary::report() const {
  if (!usable())
    return std::string(description_.name) + " is not used: " + problem_ + "; " +
           description_.without;
  return std::string(description_.name) + ' ' +
         (version_.empty() ? std::to_string(major_) : version_) + " (" + path_ + ')';
}

}  // namespace tandem::cuda
