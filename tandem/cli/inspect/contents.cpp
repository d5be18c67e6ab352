#include "tandem/cli/inspect/contents.h"

#include <span>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"

namespace tandem::cli {
namespace {

using std::string_view_literals::operator""sv;

bool is_folder(const std::string& path) {
  return fs::exists(path) && fs::file_system_of(path).stat(path).is_directory;
}

// The first bytes of a file, and its last eight.
struct Ends {
  std::string first;
  std::string last;
};

Ends ends_of(const std::string& path) {
  constexpr std::size_t kFirst = 4096, kLast = 8;
  const auto size = fs::file_system_of(path).stat(path).size;
  const auto file = fs::file_system_of(path).open(path);
  Ends ends{std::string(kFirst, '\0'), std::string(kLast, '\0')};
  ends.first.resize(file->read(0, ends.first));
  ends.last.resize(size < kLast ? 0 : file->read(size - kLast, ends.last));
  return ends;
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// A length in eight bytes, then its masked checksum.
bool begins_with_record(std::string_view bytes) {
  return bytes.size() >= 12 &&
         fs::mask_crc32c(fs::crc32c(bytes.substr(0, 8))) == little_endian(bytes.substr(8, 4));
}

// What the state file of a folder of checkpoints names as the newest.
std::string newest_checkpoint(const std::string& folder) {
  const std::string state = fs::read_file(folder + "/checkpoint");
  constexpr std::string_view kField = "model_checkpoint_path: \"";
  const std::size_t at = state.find(kField);
  const std::size_t end = at == std::string::npos ? at : state.find('"', at + kField.size());
  if (end == std::string::npos)
    throw DataLossError(cat(folder, "/checkpoint is damaged: it names no checkpoint."));
  const std::string path = state.substr(at + kField.size(), end - at - kField.size());
  return path.starts_with('/') ? path : cat(folder, "/", path);
}

FileContents open_folder(const std::string& path) {
  if (fs::exists(path + "/saved_model.pb")) return saved_model_contents(path);
  if (fs::exists(path + "/checkpoint")) return checkpoint_contents(newest_checkpoint(path));
  if (fs::exists(path + "/model.safetensors.index.json"))
    return safetensors_contents(path + "/model.safetensors.index.json");
  throw InvalidArgumentError(
      cat(path,
          " is a folder without saved_model.pb, checkpoint or model.safetensors.index.json: "
          "name a file in it, or the beginning of a checkpoint's names."));
}

}  // namespace

FileTensor tensor_of(const std::string& name, const Array& array) {
  FileTensor tensor{name, dtype_name(array.dtype()), array.shape().to_vector(), 0,
                    [array] { return array; }};
  tensor.bytes = array.num_bytes();
  if (array.dtype() == DType::kString) {
    tensor.bytes = 0;
    for (const std::string& text : array.values<std::string>()) tensor.bytes += text.size();
  }
  return tensor;
}

FileContents open_contents(const std::string& path) {
  constexpr std::string_view kIndex = ".index";
  if (is_folder(path)) return open_folder(path);
  if (!fs::exists(path) && fs::exists(path + std::string(kIndex))) return checkpoint_contents(path);
  const Ends ends = ends_of(path);  // NotFoundError where there is nothing
  const std::string_view first = ends.first;
  if (ends.last == "\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv && path.ends_with(kIndex))
    return checkpoint_contents(path.substr(0, path.size() - kIndex.size()));
  if (first.starts_with("\x93NUMPY"sv)) return npy_contents(path);
  if (first.starts_with("\x89HDF\r\n\x1a\n"sv)) return hdf5_contents(path);
  if (first.starts_with("PK"sv))
    return path.ends_with(".npz") ? npz_contents(path) : keras_contents(path);
  if (path.ends_with(".safetensors.index.json") || path.ends_with(".safetensors"))
    return safetensors_contents(path);
  if (begins_with_record(first)) return record_contents(path);
  if (first.size() > 8 && first[8] == '{' && little_endian(first.substr(0, 8)) <= 100'000'000)
    return safetensors_contents(path);
  if (path.ends_with("saved_model.pb"))
    return saved_model_contents(path.size() > 14 ? path.substr(0, path.size() - 15) : ".");
  return graph_contents(path);  // says what else it may be
}

}  // namespace tandem::cli
