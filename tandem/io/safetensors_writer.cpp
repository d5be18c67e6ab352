#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <tuple>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/internal/checked_json.h"
#include "tandem/io/internal/safetensors_header.h"
#include "tandem/io/safetensors.h"

namespace tandem::io {
namespace {

using Json = nlohmann::ordered_json;

struct Named {
  std::string name;
  Array array;
};

std::string text_of(const Json& json, const std::string& path) {
  try {
    return json.dump();
  } catch (const Json::exception&) {
    throw InvalidArgumentError(
        cat("save_safetensors: ", path, ": a tensor's name, or the metadata, is no UTF-8."));
  }
}

// The order of the real package: large elements first, so that all are aligned.
void sort_for_file(std::vector<Named>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const Named& a, const Named& b) {
    const auto key = [](const Named& t) {
      return std::make_tuple(-static_cast<std::int64_t>(dtype_size(t.array.dtype())),
                             std::string_view(t.name));
    };
    return key(a) < key(b);
  });
}

void write_file(const std::string& path, std::vector<Named> tensors,
                const std::map<std::string, std::string>& metadata) {
  sort_for_file(tensors);
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const Named& tensor : tensors) {
    const std::uint64_t end = at + tensor.array.num_bytes();
    header[tensor.name] = {{"dtype", safetensors_type(tensor.array.dtype())},
                           {"shape", tensor.array.shape().to_vector()},
                           {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = text_of(header, path);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  fs::AtomicFile file(path);
  file.append(length);
  file.append(text);
  for (const Named& tensor : tensors)
    file.append({static_cast<const char*>(tensor.array.raw_data()), tensor.array.num_bytes()});
  file.finish();
}

std::vector<std::vector<Named>> split(std::vector<Named> tensors, std::uint64_t max_bytes) {
  std::vector<std::vector<Named>> files(1);
  std::uint64_t size = 0;
  for (Named& tensor : tensors) {
    const std::uint64_t bytes = tensor.array.num_bytes();
    if (max_bytes > 0 && !files.back().empty() && size + bytes > max_bytes) {
      files.emplace_back();
      size = 0;
    }
    size += bytes;
    files.back().push_back(std::move(tensor));
  }
  return files;
}

std::string number(std::size_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "%05zu", value);
  return text;
}

}  // namespace

std::string save_safetensors(const String& path, const std::map<std::string, Tensor>& tensors,
                             const SaveSafetensorsOptions& options) {
  constexpr std::string_view kEnding = ".safetensors";
  std::vector<Named> named;
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") {
      throw InvalidArgumentError(
          "save_safetensors: the format keeps the name __metadata__ for itself.");
    }
    const Array array = tensor.array();
    if (safetensors_type(array.dtype()).empty()) {
      throw InvalidArgumentError(cat("save_safetensors: tensor '", name, "' is ", array.dtype(),
                                     ", for which the format has no name."));
    }
    total += array.num_bytes();
    named.push_back({name, array});
  }
  std::vector<std::vector<Named>> files = split(std::move(named), options.max_file_bytes);
  if (files.size() == 1) {
    write_file(path, std::move(files[0]), options.metadata);
    return path;
  }
  const std::string stem =
      path.ends_with(kEnding) ? path.substr(0, path.size() - kEnding.size()) : std::string(path);
  Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", Json::object()}};
  std::map<std::string, std::string> file_of;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string file =
        cat(stem, "-", number(i + 1), "-of-", number(files.size()), std::string(kEnding));
    for (const Named& tensor : files[i])
      file_of[tensor.name] = std::filesystem::path(file).filename().string();
    write_file(file, std::move(files[i]), options.metadata);
  }
  index["weight_map"] = file_of;
  std::string index_path = cat(stem, kEnding, ".index.json");
  fs::write_file(index_path, text_of(index, index_path) + "\n");
  return index_path;
}

}  // namespace tandem::io
