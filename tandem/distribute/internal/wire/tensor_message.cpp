#include "tandem/distribute/internal/wire/tensor_message.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/tensor_bytes.h"

namespace tandem::distribute {

bool is_plain_number(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kHalf:
    case DType::kBFloat16:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kComplex64:
    case DType::kComplex128: return true;
    default: return false;
  }
}

namespace {

// Field numbers of TensorProto and TensorShapeProto, and the forms of fields.
constexpr int kDTypeField = 1, kShapeField = 2, kContentField = 4;
constexpr int kDimField = 2, kSizeField = 1;
constexpr unsigned kVarint = 0, kLengthDelimited = 2;
// Below this a copy costs less than what it takes to share.
constexpr std::size_t kMinShared = 4096;

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_tag(std::string& out, int field, unsigned form) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | form);
}
void put_text(std::string& out, int field, std::string_view text) {
  put_tag(out, field, kLengthDelimited);
  put_varint(out, text.size());
  out += text;
}

// A TensorProto: all but its content, which follows.
struct Parts {
  std::string head;
  std::string_view content;
  std::shared_ptr<const void> owner;
  std::size_t size() const { return head.size() + content.size(); }
};

std::shared_ptr<const std::string> string_content(const Array& value) {
  auto content = std::make_shared<std::string>();
  const auto strings = value.values<std::string>();
  for (const std::string& s : strings) put_varint(*content, s.size());
  for (const std::string& s : strings) *content += s;
  return content;
}

Parts parts_of(const Array& value) {
  if (value.dtype() == DType::kResource || value.dtype() == DType::kVariant) {
    throw UnimplementedError(cat("A value of dtype ", value.dtype(),
                                 " stays in the task that made it; fetch what it refers to."));
  }
  Parts parts;
  put_tag(parts.head, kDTypeField, kVarint);
  put_varint(parts.head, static_cast<std::uint64_t>(value.dtype()));
  std::string shape;
  for (int axis = 0; axis < value.rank(); ++axis) {
    std::string dim;
    put_tag(dim, kSizeField, kVarint);
    put_varint(dim, static_cast<std::uint64_t>(value.dim(axis)));
    put_text(shape, kDimField, dim);
  }
  put_text(parts.head, kShapeField, shape);
  if (value.num_elements() == 0) return parts;
  if (value.dtype() == DType::kString) {
    auto content = string_content(value);
    parts.content = *content;
    parts.owner = std::move(content);
  } else {
    auto kept = std::make_shared<const Array>(value);
    parts.content = {static_cast<const char*>(kept->raw_data()), kept->num_bytes()};
    parts.owner = std::move(kept);
  }
  put_tag(parts.head, kContentField, kLengthDelimited);
  put_varint(parts.head, parts.content.size());
  return parts;
}

void append(Bytes& message, std::string prefix, Parts parts) {
  prefix += parts.head;
  if (parts.content.size() < kMinShared) {
    prefix += parts.content;
    message.append(std::move(prefix));
    return;
  }
  message.append(std::move(prefix));
  message.append(parts.content, std::move(parts.owner));
}

// Reads a message's fields one after the other; stops where the bytes are no message.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field_ = tag >> 3;
    form_ = static_cast<unsigned>(tag & 7);
    if (form_ == kVarint) {
      number_ = varint();
    } else if (form_ == kLengthDelimited) {
      const std::uint64_t size = varint();
      if (size > rest_.size()) return fail();
      text_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
    } else {
      return fail();
    }
    return !failed_;
  }
  bool failed() const { return failed_; }
  bool is(int field, unsigned form) const {
    return field_ == static_cast<std::uint64_t>(field) && form_ == form;
  }
  std::uint64_t number() const { return number_; }
  std::string_view text() const { return text_; }

 private:
  bool fail() {
    failed_ = true;
    return false;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view rest_;
  std::string_view text_;
  std::uint64_t field_ = 0, number_ = 0;
  unsigned form_ = 0;
  bool failed_ = false;
};

std::optional<Shape> read_shape(std::string_view bytes) {
  std::vector<std::int64_t> dims;
  Fields shape(bytes);
  while (shape.next()) {
    if (!shape.is(kDimField, kLengthDelimited)) return std::nullopt;
    std::int64_t size = 0;
    Fields dim(shape.text());
    while (dim.next()) {
      if (dim.is(kSizeField, kVarint)) size = static_cast<std::int64_t>(dim.number());
    }
    if (dim.failed() || size < 0 || dims.size() == static_cast<std::size_t>(Shape::kMaxRank))
      return std::nullopt;
    dims.push_back(size);
  }
  if (shape.failed()) return std::nullopt;
  return Shape(dims);
}

// The form in which nearly all tensors come: dtype, shape and content.
std::optional<Array> read_plain(std::string_view bytes, const std::shared_ptr<const void>& owner) {
  DType dtype = DType::kInvalid;
  std::string_view shape_bytes, content;
  Fields fields(bytes);
  while (fields.next()) {
    if (fields.is(kDTypeField, kVarint)) {
      if (fields.number() >= static_cast<std::uint64_t>(kDTypeCount)) return std::nullopt;
      dtype = static_cast<DType>(fields.number());
    } else if (fields.is(kShapeField, kLengthDelimited)) {
      shape_bytes = fields.text();
    } else if (fields.is(kContentField, kLengthDelimited)) {
      content = fields.text();
    } else {
      return std::nullopt;
    }
  }
  if (fields.failed() || !is_plain_number(dtype) || content.empty()) return std::nullopt;
  const std::optional<Shape> shape = read_shape(shape_bytes);
  if (!shape) return std::nullopt;
  const std::size_t size = dtype_size(dtype);
  if (content.size() % size != 0 ||
      static_cast<std::uint64_t>(shape->num_elements()) != content.size() / size)
    return std::nullopt;
  // Complex numbers align like their parts, so this is never too little.
  const bool aligned = reinterpret_cast<std::uintptr_t>(content.data()) % size == 0;
  if (content.size() >= kMinShared && aligned && owner) {
    return Array::wrap(const_cast<char*>(content.data()), dtype, *shape, [owner] {});
  }
  Array array(dtype, *shape);
  content.copy(static_cast<char*>(array.raw_data()), content.size());
  return array;
}

}  // namespace

Array read_tensor(std::string_view bytes, const std::shared_ptr<const void>& owner) {
  if (std::optional<Array> plain = read_plain(bytes, owner)) return *std::move(plain);
  return io::read_tensor_bytes(bytes);
}

Bytes write_tensor(const Array& value) {
  Bytes message;
  append(message, {}, parts_of(value));
  return message;
}

void append_tensor_field(Bytes& message, int field, const Array& value) {
  Parts parts = parts_of(value);
  std::string prefix;
  put_tag(prefix, field, kLengthDelimited);
  put_varint(prefix, parts.size());
  append(message, std::move(prefix), std::move(parts));
}

void append_bytes_field(Bytes& message, int field, Bytes value) {
  std::string prefix;
  put_tag(prefix, field, kLengthDelimited);
  put_varint(prefix, value.size());
  message.append(std::move(prefix));
  message.append(std::move(value));
}

void append_named_tensor_field(Bytes& message, int field, std::string_view name,
                               const Array& value) {
  Parts parts = parts_of(value);
  std::string inner;
  put_text(inner, 1, name);
  put_tag(inner, 2, kLengthDelimited);
  put_varint(inner, parts.size());
  std::string prefix;
  put_tag(prefix, field, kLengthDelimited);
  put_varint(prefix, inner.size() + parts.size());
  append(message, prefix + inner, std::move(parts));
}

}  // namespace tandem::distribute
