#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/mapped_file.h"
#include "tandem/io/internal/checked_json.h"
#include "tandem/io/internal/safetensors_header.h"
#include "tandem/io/safetensors.h"

namespace tandem::io {
namespace {

constexpr std::string_view kIndexEnding = ".index.json";

// A shard lies beside its index: what leads elsewhere is an attack.
void check_shard_name(const std::string& index, const std::string& shard) {
  if (shard.empty() || shard == "." || shard == ".." ||
      shard.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    throw InvalidArgumentError(
        cat(index, ": the file '", shard, "' is no name of a file in the folder of the index."));
  }
}

}  // namespace

struct SafetensorsReader::State {
  struct File {
    std::string name;
    std::shared_ptr<const fs::MappedFile> mapped;  // null: memory of the caller
    std::string_view bytes;
  };
  struct Place {
    const File* file;
    SafetensorsHeader::Entry entry;
  };

  std::string name;
  std::vector<std::unique_ptr<const File>> files;
  std::map<std::string, Place> places;
  std::map<std::string, std::string> metadata;

  SafetensorsHeader add_file(File file) {
    SafetensorsHeader header = read_safetensors_header(file.bytes, file.name);
    files.push_back(std::make_unique<const File>(std::move(file)));
    return header;
  }
  SafetensorsHeader map_file(const std::string& path) {
    auto mapped = std::make_shared<const fs::MappedFile>(path);
    const std::string_view bytes = mapped->bytes();
    return add_file({path, std::move(mapped), bytes});
  }

  void add_all(SafetensorsHeader header) {
    metadata = std::move(header.metadata);
    for (auto& [tensor, entry] : header.entries)
      places.emplace(tensor, Place{files.back().get(), std::move(entry)});
  }

  void open_index(const std::string& path) {
    const nlohmann::ordered_json index = parse_checked_json(fs::read_file(path), path);
    const auto map = index.is_object() ? index.find("weight_map") : index.end();
    if (map == index.end() || !map->is_object())
      throw DataLossError(cat(path, " is damaged: it has no object 'weight_map'."));
    if (const auto found = index.find("metadata"); found != index.end() && found->is_object()) {
      for (const auto& item : found->items()) {
        metadata[item.key()] =
            item.value().is_string() ? item.value().get<std::string>() : item.value().dump();
      }
    }
    std::map<std::string, std::vector<std::string>> tensors_of;
    for (const auto& item : map->items()) {
      if (!item.value().is_string())
        throw DataLossError(cat(path, " is damaged: '", item.key(), "' names no file."));
      const auto shard = item.value().get<std::string>();
      check_shard_name(path, shard);
      tensors_of[shard].push_back(item.key());
    }
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const auto& [shard, tensors] : tensors_of) {
      SafetensorsHeader header = map_file((folder / shard).string());
      for (const std::string& tensor : tensors) {
        const auto entry = header.entries.find(tensor);
        if (entry == header.entries.end()) {
          throw DataLossError(cat(files.back()->name, " lacks the tensor '", tensor, "' that ",
                                  path, " says it has."));
        }
        places.emplace(tensor, Place{files.back().get(), std::move(entry->second)});
      }
    }
  }

  const Place& place(const std::string& tensor) const {
    const auto found = places.find(tensor);
    if (found == places.end())
      throw NotFoundError(cat("There is no tensor '", tensor, "' in ", name, "."));
    return found->second;
  }
};

SafetensorsReader::SafetensorsReader(const String& path) : state_(std::make_unique<State>()) {
  state_->name = path;
  if (path.ends_with(kIndexEnding)) {
    state_->open_index(path);
  } else {
    state_->add_all(state_->map_file(path));
  }
}

SafetensorsReader::SafetensorsReader(std::string_view bytes, const String& name)
    : state_(std::make_unique<State>()) {
  state_->name = name;
  state_->add_all(state_->add_file({name, nullptr, bytes}));
}

SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&&) noexcept = default;

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : state_->places) names.push_back(name);
  return names;
}

bool SafetensorsReader::contains(const std::string& name) const {
  return state_->places.count(name) > 0;
}

const std::string& SafetensorsReader::type(const std::string& name) const {
  return state_->place(name).entry.type;
}

DType SafetensorsReader::dtype(const std::string& name) const {
  const State::Place& place = state_->place(name);
  if (!place.entry.dtype) {
    throw UnimplementedError(cat(place.file->name, ": tensor '", name, "' has elements of type ",
                                 place.entry.type, ", which Tandem has no dtype for."));
  }
  return *place.entry.dtype;
}

Shape SafetensorsReader::shape(const std::string& name) const {
  return Shape(state_->place(name).entry.shape);
}

std::uint64_t SafetensorsReader::num_bytes(const std::string& name) const {
  const SafetensorsHeader::Entry& entry = state_->place(name).entry;
  return entry.end - entry.begin;
}

Array SafetensorsReader::read(const std::string& name) const {
  const DType type = dtype(name);
  const State::Place& place = state_->place(name);
  const std::string_view bytes =
      place.file->bytes.substr(place.entry.begin, place.entry.end - place.entry.begin);
  // Any other byte than 0 and 1 is no value of C++'s bool.
  if (type == DType::kBool &&
      std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; }))
    throw DataLossError(cat(place.file->name, " is damaged: tensor '", name,
                            "' holds bytes that are neither true nor false."));
  const std::size_t alignment = type == DType::kComplex64 ? sizeof(float) : dtype_size(type);
  if (bytes.empty() || reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment != 0) {
    Array copy(type, Shape(place.entry.shape));
    if (!bytes.empty()) std::memcpy(copy.raw_data(), bytes.data(), bytes.size());
    return copy;
  }
  // Wrapped memory is never written to: others may look at it.
  return Array::wrap(const_cast<char*>(bytes.data()), type, Shape(place.entry.shape),
                     [mapped = place.file->mapped] {});
}

const std::map<std::string, std::string>& SafetensorsReader::metadata() const {
  return state_->metadata;
}

std::map<std::string, Tensor> load_safetensors(const String& path) {
  const SafetensorsReader reader(path);
  std::map<std::string, Tensor> tensors;
  for (const std::string& name : reader.names()) tensors.emplace(name, Tensor(reader.read(name)));
  return tensors;
}

}  // namespace tandem::io
