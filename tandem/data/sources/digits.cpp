#include "tandem/data/digits.h"

#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"

namespace tandem::data {
namespace {

constexpr std::int64_t kSide = 8;
constexpr std::int64_t kPixels = kSide * kSide;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

class LineReader {
 public:
  LineReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  bool at_end() const { return text_.empty(); }

  // The next number of the line, which `end` must follow.
  int number(int limit, char end) {
    int value = 0;
    const auto [at, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0 || value > limit) fail();
    text_.remove_prefix(static_cast<std::size_t>(at - text_.data()));
    if (end == '\n') {
      if (text_.starts_with('\r')) text_.remove_prefix(1);
      if (text_.empty()) return value;
    }
    if (!text_.starts_with(end)) fail();
    text_.remove_prefix(1);
    if (end == '\n') ++line_;
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    throw DataLossError(cat(path_, ", line ", line_, ": expected ", kPixels,
                            " pixels from 0 to 16 and a label from 0 to 9, separated by commas."));
  }

  const std::string& path_;
  std::string_view text_;
  int line_ = 1;
};

std::string bytes_of_file(const std::string& path) {
  try {
    return fs::read_file(path);
  } catch (const NotFoundError& error) {
    if (path.starts_with('/') || path.find("://") != std::string::npos) throw;
    std::error_code ignored;
    throw NotFoundError(
        cat(error.what(), "\n  The path is sought from the folder where the program ",
            "was started, ", std::filesystem::current_path(ignored).string(),
            ". Tandem's examples are started from the folder of its sources, which ",
            "has examples/data."));
  }
}

}  // namespace

Dataset digits(const String& path, std::int64_t seed) {
  const std::string text = fs::gunzip(bytes_of_file(path), kMaxBytes, path);
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
  for (LineReader line(path, text); !line.at_end();) {
    for (std::int64_t i = 0; i < kPixels; ++i) {
      pixels.push_back(static_cast<float>(line.number(16, ',')) / 16.0f);
    }
    labels.push_back(line.number(9, '\n'));
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  const Tensor images = Tensor::from(pixels, {count, kSide, kSide, 1});
  const auto all = from_tensor_slices({images, Tensor::from(labels)});
  return all.split(1.0, seed).first;
}

}  // namespace tandem::data
