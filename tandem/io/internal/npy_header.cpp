#include "tandem/io/internal/npy_header.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/core/error.h"

namespace tandem::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeName {
  std::string_view kind_and_size;
  DType dtype;
};
constexpr TypeName kTypes[] = {
    {"b1", DType::kBool},      {"i1", DType::kInt8},        {"i2", DType::kInt16},
    {"i4", DType::kInt32},     {"i8", DType::kInt64},       {"u1", DType::kUint8},
    {"u2", DType::kUint16},    {"u4", DType::kUint32},      {"u8", DType::kUint64},
    {"f2", DType::kHalf},      {"f4", DType::kFloat},       {"f8", DType::kDouble},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128}, {"V2", DType::kBFloat16},
    {"i1", DType::kQint8},     {"u1", DType::kQuint8},      {"i4", DType::kQint32},
    {"i2", DType::kQint16},    {"u2", DType::kQuint16},
};

// Reads the header's text, which is a Python dict of three entries.
class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        descr = true;
        read_descr(header);
      } else if (key == "fortran_order") {
        order = true;
        header.fortran_order = boolean();
      } else if (key == "shape") {
        shape = true;
        header.shape = tuple();
      } else {
        damaged(cat("its header has an unknown entry '", key, "'"));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) damaged("something follows its header");
    if (!descr || !order || !shape)
      damaged(cat("its header lacks '",
                  !descr   ? "descr"
                  : !order ? "fortran_order"
                           : "shape",
                  "'"));
    return header;
  }

 private:
  [[noreturn]] void damaged(const std::string& why) const {
    throw DataLossError(cat(name_, " is damaged: ", why, "."));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) damaged(cat("its header should have '", c, "' at position ", at_));
  }
  std::string_view quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') damaged(cat("its header is no dict at position ", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) damaged("its header is cut off");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::string_view(word).size();
        return value;
      }
    }
    damaged("its header says neither True nor False for fortran_order");
  }
  Shape tuple() {
    expect('(');
    std::vector<std::int64_t> dims;
    while (!take(')')) {
      skip_space();
      std::int64_t size = 0;
      const char* end = text_.data() + text_.size();
      const auto [next, error] = std::from_chars(text_.data() + at_, end, size);
      if (error != std::errc() || size < 0) damaged("its header holds no valid shape");
      at_ = static_cast<std::size_t>(next - text_.data());
      take('L');  // as Python 2 wrote it
      dims.push_back(size);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    try {
      return Shape(dims);
    } catch (const InvalidArgumentError& error) {
      std::string why = error.what();
      if (why.ends_with('.')) why.pop_back();
      damaged(why);
    }
  }

  void read_descr(NpyHeader& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      throw UnimplementedError(
          cat(name_, " holds records of several fields; save one array a ", "file."));
    }
    const std::string_view descr = quoted();
    std::string_view type = descr;
    if (!type.empty() && std::string_view("<>|=").find(type.front()) != std::string_view::npos) {
      header.big_endian = type.front() == '>';
      type.remove_prefix(1);
    }
    if (type.starts_with('O')) {
      throw UnimplementedError(
          cat(name_, " holds pickled Python objects, which are not read: they ",
              "could run any code. Save numbers, or strings as dtype 'S' or 'U'."));
    }
    if (type.starts_with('S') || type.starts_with('U')) {
      constexpr std::size_t kUtf32Bytes = 4;
      const std::string_view digits = type.substr(1);
      const auto [next, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), header.element_bytes);
      header.utf32 = type.starts_with('U');
      if (error != std::errc() || next != digits.data() + digits.size() ||
          (header.utf32 && header.element_bytes > SIZE_MAX / kUtf32Bytes))
        damaged(cat("'", descr, "' is no element type"));
      if (header.utf32) header.element_bytes *= kUtf32Bytes;
      header.dtype = DType::kString;
      return;
    }
    for (const TypeName& known : kTypes) {
      if (known.kind_and_size == type) {
        header.dtype = known.dtype;
        header.element_bytes = dtype_size(known.dtype);
        return;
      }
    }
    throw UnimplementedError(cat(name_, " has elements of type '", descr, "', which is not ",
                                 "supported. Convert it in NumPy with astype."));
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("PK\x03\x04")) {
    throw DataLossError(cat(name, " is no array but an archive of them (.npz): load_npz reads it. ",
                            "Where one array is wanted, save it alone with numpy.save."));
  }
  if (!bytes.starts_with(kMagic)) {
    throw DataLossError(cat(name, " is no NumPy file: it does not begin with \\x93NUMPY."));
  }
  const auto byte = [&](std::size_t i) -> std::size_t {
    if (i >= bytes.size()) throw DataLossError(cat(name, " is damaged: its header is cut off."));
    return static_cast<unsigned char>(bytes[i]);
  };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) {
    throw UnimplementedError(
        cat(name, " is a NumPy file of version ", version, "; 1 to 3 are supported."));
  }
  std::size_t length = byte(8) | byte(9) << 8;
  std::size_t begin = 10;
  if (version > 1) {
    length |= byte(10) << 16 | byte(11) << 24;
    begin = 12;
  }
  if (length > bytes.size() - begin)
    throw DataLossError(cat(name, " is damaged: its header is cut off."));
  NpyHeader header = Parser(bytes.substr(begin, length), name).parse();
  header.data_offset = begin + length;
  return header;
}

std::string make_npy_header(DType dtype, std::size_t element_bytes, const Shape& shape) {
  std::string type;
  if (dtype == DType::kString) {
    type = cat("|S", element_bytes);
  } else {
    for (const TypeName& known : kTypes) {
      if (known.dtype != dtype) continue;
      type = cat(element_bytes == 1 ? '|' : '<', known.kind_and_size);
      break;
    }
    if (type.empty())
      throw UnimplementedError(cat("NumPy files hold no elements of type ", dtype, "."));
  }
  std::string text = cat("{'descr': '", type, "', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < shape.rank(); ++i) text += cat(shape[i], i + 1 == shape.rank() ? "" : ", ");
  text += shape.rank() == 1 ? ",), }" : "), }";
  const bool is_long = text.size() + 64 > 65535;
  const std::size_t begin = is_long ? 12 : 10;
  text.append((64 - (begin + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header += static_cast<char>(is_long ? 2 : 1);
  header += '\0';
  for (std::size_t i = 0; i < begin - 8; ++i)
    header += static_cast<char>((text.size() >> (8 * i)) & 0xff);
  return header + text;
}

}  // namespace tandem::io
