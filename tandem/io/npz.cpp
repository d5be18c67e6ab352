#include <cstddef>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/npy.h"
#include "tandem/io/zip.h"

namespace tandem::io {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kLargest = std::size_t{1} << 40;  // nothing real is larger unpacked

}  // namespace

void save_npz(const String& path, const std::map<std::string, Tensor>& tensors) {
  std::vector<ZipEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty()) throw InvalidArgumentError("save_npz: a tensor has no name.");
    entries.push_back({name + std::string(kSuffix), encode_npy(tensor.array())});
  }
  fs::write_file(path, make_zip(entries));
}

std::map<std::string, Tensor> decode_npz(std::string_view bytes, const String& name) {
  std::map<std::string, Tensor> tensors;
  for (const ZipEntry& entry : read_zip(bytes, kLargest, name)) {
    std::string_view key = entry.name;
    if (key.ends_with(kSuffix)) key.remove_suffix(kSuffix.size());
    Tensor tensor(decode_npy(entry.content, cat(name, ": ", entry.name)));
    if (!tensors.emplace(key, std::move(tensor)).second)
      throw DataLossError(cat(name, " is damaged: it holds '", key, "' twice."));
  }
  return tensors;
}

std::map<std::string, Tensor> load_npz(const std::string& path) {
  return decode_npz(fs::read_file(path), path);
}

}  // namespace tandem::io
