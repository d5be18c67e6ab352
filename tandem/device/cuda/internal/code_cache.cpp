#include "tandem/device/cuda/internal/code_cache.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tandem/core/internal/cache_folder.h"

namespace tandem::cuda {
namespace {

constexpr char kFormat[16] = "tandem-code-1";

struct Header {
  char format[16];
  TextHash source;
  std::uint64_t bytes;
  TextHash code;
};

std::uint64_t hash(std::string_view text, std::uint64_t value) {
  for (const char c : text) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;  // FNV-1a
  }
  return value;
}

std::string_view text_of(const std::vector<std::byte>& code) {
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

}  // namespace

TextHash TextHash::of(std::string_view text) {
  return {hash(text, 0xcbf29ce484222325u), hash(text, 0x9ae16a3b2f90404fu)};
}

std::string TextHash::digits() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(second));
  return text;
}

CodeCache CodeCache::standard() {
  const std::string folder = internal::cache_folder();
  return CodeCache(folder.empty() ? folder : folder + "/cuda-kernels");
}

std::string CodeCache::path(const TextHash& source) const {
  return folder_ + '/' + source.digits() + ".bin";
}

std::optional<std::vector<std::byte>> CodeCache::find(const TextHash& source) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(path(source), std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(file.tellg());
  Header header = {};
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.format, kFormat, sizeof(kFormat)) != 0 || !(header.source == source) ||
      header.bytes != size - sizeof(header)) {
    return std::nullopt;
  }
  std::vector<std::byte> code(static_cast<std::size_t>(header.bytes));
  if (!file.read(reinterpret_cast<char*>(code.data()), static_cast<std::streamsize>(code.size())) ||
      !(TextHash::of(text_of(code)) == header.code)) {
    return std::nullopt;
  }
  return code;
}

void CodeCache::put(const TextHash& source, const std::vector<std::byte>& code) const {
  if (folder_.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  static std::atomic<unsigned> number{0};
  const std::string target = path(source);
  const std::string temporary =
      target + '.' + std::to_string(getpid()) + '.' + std::to_string(number++) + ".tmp";
  Header header = {};
  std::memcpy(header.format, kFormat, sizeof(kFormat));
  header.source = source;
  header.bytes = code.size();
  header.code = TextHash::of(text_of(code));
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.write(reinterpret_cast<const char*>(code.data()),
               static_cast<std::streamsize>(code.size()));
    file.close();
    if (!file) {
      std::filesystem::remove(temporary, failed);
      return;
    }
  }
  std::filesystem::rename(temporary, target, failed);
  if (failed) std::filesystem::remove(temporary, failed);
}

}  // namespace tandem::cuda
