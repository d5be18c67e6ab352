#include "tandem/io/internal/safetensors_header.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/checked_json.h"

// The format: https://github.com/huggingface/safetensors#format. A length of 8 bytes (little
// endian), so many bytes of JSON, then the elements of all tensors without gaps.

namespace tandem::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct ElementType {
  std::string_view name;
  std::uint64_t bits;
  DType dtype;  // kInvalid: Tandem has none
};
constexpr std::array kTypes{ElementType{"BOOL", 8, DType::kBool},
                            ElementType{"F4", 4, DType::kInvalid},
                            ElementType{"F6_E2M3", 6, DType::kInvalid},
                            ElementType{"F6_E3M2", 6, DType::kInvalid},
                            ElementType{"U8", 8, DType::kUint8},
                            ElementType{"I8", 8, DType::kInt8},
                            ElementType{"F8_E5M2", 8, DType::kFloat8E5M2},
                            ElementType{"F8_E4M3", 8, DType::kFloat8E4M3FN},
                            ElementType{"F8_E5M2FNUZ", 8, DType::kFloat8E5M2FNUZ},
                            ElementType{"F8_E4M3FNUZ", 8, DType::kFloat8E4M3FNUZ},
                            ElementType{"F8_E8M0", 8, DType::kInvalid},
                            ElementType{"I16", 16, DType::kInt16},
                            ElementType{"U16", 16, DType::kUint16},
                            ElementType{"F16", 16, DType::kHalf},
                            ElementType{"BF16", 16, DType::kBFloat16},
                            ElementType{"I32", 32, DType::kInt32},
                            ElementType{"U32", 32, DType::kUint32},
                            ElementType{"F32", 32, DType::kFloat},
                            ElementType{"C64", 64, DType::kComplex64},
                            ElementType{"F64", 64, DType::kDouble},
                            ElementType{"I64", 64, DType::kInt64},
                            ElementType{"U64", 64, DType::kUint64}};

class HeaderReader {
 public:
  HeaderReader(std::string_view file, const std::string& name) : file_(file), name_(name) {}

  SafetensorsHeader read() {
    const std::string_view text = header_text();
    data_begin_ = kLengthBytes + text.size();
    if (text.empty() || text.front() != '{') damaged("its header does not begin with '{'");
    const Json json = parse_checked_json(text, cat(name_, ": the header"));
    if (!json.is_object()) damaged("its header is no JSON object");
    SafetensorsHeader header;
    for (const auto& item : json.items()) {
      if (item.key() == "__metadata__") {
        read_metadata(item.value(), header);
      } else {
        header.entries[item.key()] = read_entry(item.key(), item.value());
      }
    }
    check_gaps(header);
    return header;
  }

 private:
  [[noreturn]] void damaged(const std::string& why) const {
    throw DataLossError(cat(name_, " is damaged: ", why, "."));
  }

  std::string_view header_text() const {
    if (file_.size() < kLengthBytes) damaged("it is too short for a safetensors file");
    std::uint64_t length = 0;
    for (std::size_t i = kLengthBytes; i-- > 0;)
      length = length << 8 | static_cast<unsigned char>(file_[i]);
    if (length > kMaxHeaderBytes) {
      damaged(
          cat("its header claims to have ", length, " bytes; the format allows ", kMaxHeaderBytes));
    }
    if (length > file_.size() - kLengthBytes) {
      damaged(cat("its header claims to have ", length, " bytes, but the file has ", file_.size()));
    }
    return file_.substr(kLengthBytes, length);
  }

  void read_metadata(const Json& json, SafetensorsHeader& header) const {
    if (!json.is_object()) damaged("__metadata__ is no JSON object");
    for (const auto& item : json.items()) {
      if (!item.value().is_string()) damaged(cat("'", item.key(), "' in __metadata__ is no text"));
      header.metadata[item.key()] = item.value().get<std::string>();
    }
  }

  SafetensorsHeader::Entry read_entry(const std::string& tensor, const Json& json) const {
    const auto wrong = [&](const std::string& why) { damaged(cat("tensor '", tensor, "' ", why)); };
    if (!json.is_object() || json.size() != 3 || !json.contains("dtype") ||
        !json.contains("shape") || !json.contains("data_offsets"))
      wrong("does not have exactly dtype, shape and data_offsets");
    SafetensorsHeader::Entry entry;
    if (!json["dtype"].is_string()) wrong("has a dtype that is no text");
    entry.type = json["dtype"].get<std::string>();
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const ElementType& t) { return t.name == entry.type; });
    if (type == kTypes.end()) wrong(cat("has the unknown dtype '", entry.type, "'"));
    if (type->dtype != DType::kInvalid) entry.dtype = type->dtype;

    std::uint64_t bits = type->bits;
    if (!json["shape"].is_array()) wrong("has a shape that is no list");
    if (json["shape"].size() > Shape::kMaxRank) wrong("has too many dimensions");
    for (const Json& size : json["shape"]) {
      if (!size.is_number_unsigned()) wrong("has a size that is no whole number from 0 on");
      const auto value = size.get<std::uint64_t>();
      if (__builtin_mul_overflow(bits, value, &bits) || value > INT64_MAX)
        wrong("has a shape with too many elements");
      entry.shape.push_back(static_cast<std::int64_t>(value));
    }
    if (bits % 8 != 0) wrong("does not fill its last byte");

    const Json& offsets = json["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      wrong("does not have two data_offsets from 0 on");
    const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    if (end < begin || end > file_.size() - data_begin_) {
      wrong(cat("lies at [", begin, ", ", end, "), but there are ", file_.size() - data_begin_,
                " bytes of data"));
    }
    if (end - begin != bits / 8) {
      wrong(cat("takes ", end - begin, " bytes, but its shape and dtype make ", bits / 8));
    }
    entry.begin = data_begin_ + begin;
    entry.end = data_begin_ + end;
    return entry;
  }

  void check_gaps(const SafetensorsHeader& header) const {
    std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, const std::string*>> places;
    for (const auto& [tensor, entry] : header.entries)
      places.push_back({{entry.begin, entry.end}, &tensor});
    std::sort(places.begin(), places.end());
    std::uint64_t at = data_begin_;
    for (const auto& [place, tensor] : places) {
      if (place.first != at) {
        damaged(cat("tensor '", *tensor, "' ",
                    place.first < at ? "overlaps another" : "has unused bytes before it"));
      }
      at = place.second;
    }
    if (at != file_.size()) {
      damaged(cat(file_.size() - at, " bytes at its end belong to no tensor"));
    }
  }

  std::string_view file_;
  const std::string& name_;
  std::uint64_t data_begin_ = 0;
};

}  // namespace

SafetensorsHeader read_safetensors_header(std::string_view file, const std::string& name) {
  return HeaderReader(file, name).read();
}

std::string safetensors_type(DType dtype) {
  for (const ElementType& type : kTypes) {
    if (dtype != DType::kInvalid && type.dtype == dtype) return std::string(type.name);
  }
  return {};
}

}  // namespace tandem::io
