#include "tandem/keras/internal/file_index.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"

namespace tandem::keras::internal {
namespace {

namespace stdfs = std::filesystem;

std::string joined(const std::string& folder, const std::string& name) {
  if (folder.empty() || folder.back() == '/') return folder + name;
  return name.empty() ? folder + "/" : folder + "/" + name;
}

bool is_link(const std::string& path) {
  std::error_code ignored;
  return fs::is_local(path) && stdfs::is_symlink(fs::without_file_scheme(path), ignored);
}

// What identifies a folder whatever links lead to it; stores have none.
stdfs::path identity(const std::string& folder) {
  if (!fs::is_local(folder)) return folder;
  std::error_code failed;
  return stdfs::canonical(fs::without_file_scheme(folder), failed);
}

// Collects the names of the files of every folder below a root.
class Walk {
 public:
  Walk(std::span<const std::string_view> endings, bool follow_links)
      : endings_(endings), follow_links_(follow_links) {}

  void visit(const std::string& folder, const std::string& relative) {
    const stdfs::path real = identity(folder);
    // A link to a folder above would lead round for ever.
    if (std::find(above_.begin(), above_.end(), real) != above_.end()) return;
    std::vector<fs::DirectoryEntry> entries;
    try {
      entries = fs::file_system_of(folder).list_entries(folder);
    } catch (const Error&) {
      if (above_.empty()) throw;
      return;
    }
    above_.push_back(real);
    for (const auto& [name, info] : entries) {
      const std::string path = joined(folder, name);
      if (!info.is_directory) {
        if (wanted(name)) found_[folder].push_back(joined(relative, name));
      } else if (follow_links_ || !is_link(path)) {
        visit(path, joined(relative, name));
      }
    }
    above_.pop_back();
  }

  /// Folder by folder in the order of their paths; `list` gives names sorted.
  const std::map<std::string, std::vector<std::string>>& found() const { return found_; }

 private:
  bool wanted(std::string name) const {
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return std::any_of(endings_.begin(), endings_.end(),
                       [&](std::string_view ending) { return name.ends_with(ending); });
  }

  std::span<const std::string_view> endings_;
  const bool follow_links_;
  std::vector<stdfs::path> above_;
  std::map<std::string, std::vector<std::string>> found_;
};

}  // namespace

std::vector<std::string> class_folders(const std::string& directory) {
  std::vector<std::string> names;
  for (fs::DirectoryEntry& entry : fs::file_system_of(directory).list_entries(directory)) {
    if (entry.name.front() != '.' && entry.info.is_directory) {
      names.push_back(std::move(entry.name));
    }
  }
  return names;
}

std::vector<IndexedFile> index_files(const std::string& directory,
                                     const std::vector<std::string>& folders,
                                     std::span<const std::string_view> endings, bool follow_links) {
  std::vector<IndexedFile> files;
  for (std::size_t label = 0; label < folders.size(); ++label) {
    Walk walk(endings, follow_links);
    walk.visit(joined(directory, folders[label]), folders[label]);
    for (const auto& [folder, names] : walk.found()) {
      for (const std::string& name : names) {
        files.push_back({joined(directory, name), static_cast<std::int32_t>(label)});
      }
    }
  }
  return files;
}

std::vector<std::size_t> numpy_shuffle(std::size_t count, std::uint32_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(seed);
  for (std::size_t i = count; i-- > 1;) {
    // Numbers of as many bits as i has, until one is not larger.
    std::size_t mask = i;
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    std::size_t chosen = 0;
    do {
      std::uint64_t bits = random();
      if (i > 0xffffffffu) bits = (bits << 32) | random();
      chosen = static_cast<std::size_t>(bits) & mask;
    } while (chosen > i);
    std::swap(order[i], order[chosen]);
  }
  return order;
}

}  // namespace tandem::keras::internal
