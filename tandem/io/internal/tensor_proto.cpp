#include "tandem/io/internal/tensor_proto.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tandem/core/error.h"

namespace tandem::io {

using proto::TensorProto;

std::optional<DType> dtype_of_number(int number) {
  const int base = number > 100 ? number - 100 : number;
  if (base <= 0 || base >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(number);
}

std::string dtype_number_name(int number) {
  for (const proto::EnumValue& value : proto::enum_names(proto::DataType{})) {
    if (value.number == number) return value.name;
  }
  return cat("DataType ", number);
}

PartialShape decode_shape(const proto::TensorShapeProto& proto) {
  if (proto.unknown_rank) return PartialShape::unknown();
  if (proto.dim.size() > static_cast<std::size_t>(Shape::kMaxRank)) {
    throw InvalidArgumentError(cat("A shape has ", proto.dim.size(), " dimensions; at most ",
                                   Shape::kMaxRank, " are possible."));
  }
  std::vector<std::int64_t> dims;
  bool known = true;
  for (const auto& dim : proto.dim) {
    if (dim.size < -1)
      throw InvalidArgumentError(cat("A shape has a dimension of size ", dim.size, "."));
    known = known && dim.size >= 0;
    dims.push_back(dim.size);
  }
  if (known) static_cast<void>(Shape(dims));  // the product must fit
  return PartialShape(std::move(dims));
}

void encode_shape(const PartialShape& shape, proto::TensorShapeProto& proto) {
  if (!shape.has_rank()) proto.unknown_rank = true;
  for (const std::int64_t size : shape.dims()) proto.dim.emplace_back().size = size;
}

namespace {

// What one value may stand for: constants in the wild are filled out to hundreds of megabytes at
// most.
constexpr std::int64_t kLargestImplied = std::int64_t{1} << 30;
// By how much the last of several values may make a constant longer than what the message holds.
constexpr std::int64_t kMaxRepeated = 1024;

// A list of numbers as protobuf hands it out, for elements of type T.
template <class T, class List>
std::vector<T> numbers(const List& list) {
  std::vector<T> values;
  values.reserve(list.size());
  for (const auto v : list) values.push_back(static_cast<T>(v));
  return values;
}
template <class T, class List>
std::vector<T> complexes(const List& list) {
  std::vector<T> values;
  for (std::size_t i = 0; i + 1 < list.size(); i += 2) values.emplace_back(list[i], list[i + 1]);
  return values;
}
template <class T>
std::vector<T> bit_patterns(const std::vector<std::int32_t>& list) {
  std::vector<T> values;
  for (const std::int32_t v : list) {
    T element;
    element.bits = static_cast<std::uint16_t>(v);
    values.push_back(element);
  }
  return values;
}

template <class T>
Array make(DType dtype, const std::vector<T>& values) {
  Array array(dtype, Shape{static_cast<std::int64_t>(values.size())});
  auto* out = static_cast<T*>(array.raw_data());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = values[i];
  return array;
}

// The elements that the lists hold, in a vector.
Array listed_values(const TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::kFloat: return make(dtype, numbers<float>(proto.float_val));
    case DType::kDouble: return make(dtype, numbers<double>(proto.double_val));
    case DType::kInt32:
    case DType::kQint32: return make(dtype, numbers<std::int32_t>(proto.int_val));
    case DType::kUint8:
    case DType::kQuint8:
    case DType::kUint4:
    case DType::kUint2: return make(dtype, numbers<std::uint8_t>(proto.int_val));
    case DType::kInt8:
    case DType::kQint8:
    case DType::kInt4:
    case DType::kInt2: return make(dtype, numbers<std::int8_t>(proto.int_val));
    case DType::kInt16:
    case DType::kQint16: return make(dtype, numbers<std::int16_t>(proto.int_val));
    case DType::kUint16:
    case DType::kQuint16: return make(dtype, numbers<std::uint16_t>(proto.int_val));
    case DType::kInt64: return make(dtype, numbers<std::int64_t>(proto.int64_val));
    case DType::kUint32: return make(dtype, numbers<std::uint32_t>(proto.uint32_val));
    case DType::kUint64: return make(dtype, numbers<std::uint64_t>(proto.uint64_val));
    case DType::kBool: return make(dtype, numbers<bool>(proto.bool_val));
    case DType::kHalf: return make(dtype, bit_patterns<Half>(proto.half_val));
    case DType::kBFloat16: return make(dtype, bit_patterns<BFloat16>(proto.half_val));
    case DType::kComplex64: return make(dtype, complexes<std::complex<float>>(proto.scomplex_val));
    case DType::kComplex128:
      return make(dtype, complexes<std::complex<double>>(proto.dcomplex_val));
    case DType::kString: {
      Array array(dtype, Shape{static_cast<std::int64_t>(proto.string_val.size())});
      std::copy(proto.string_val.begin(), proto.string_val.end(), array.data<std::string>());
      return array;
    }
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E4M3B11FNUZ:
    case DType::kFloat8E5M2FNUZ: {
      Array array(dtype, Shape{static_cast<std::int64_t>(proto.float8_val.size())});
      std::memcpy(array.raw_data(), proto.float8_val.data(), proto.float8_val.size());
      return array;
    }
    default: break;
  }
  throw UnimplementedError(cat("A constant of dtype ", dtype, " can't be read."));
}

// An integer of two or four bits has a byte of its own, whose low bits count.
void wrap_small_integers(Array& array) {
  const auto each = [&]<class T>(T, int bits) {
    const int unused = 8 - bits;
    T* values = static_cast<T*>(array.raw_data());
    for (std::int64_t i = 0; i < array.num_elements(); ++i)
      values[i] = static_cast<T>(static_cast<T>(values[i] << unused) >> unused);
  };
  switch (array.dtype()) {
    case DType::kInt4: return each(std::int8_t{}, 4);
    case DType::kUint4: return each(std::uint8_t{}, 4);
    case DType::kInt2: return each(std::int8_t{}, 2);
    case DType::kUint2: return each(std::uint8_t{}, 2);
    default: return;
  }
}

// Strings in tensor_content: all lengths as varints, then all bytes.
Array packed_strings(std::string_view content, const Shape& shape) {
  const auto fail = [] {
    throw InvalidArgumentError("A string tensor's tensor_content is damaged or cut off.");
  };
  const auto count = static_cast<std::size_t>(shape.num_elements());
  if (count > content.size()) fail();
  std::vector<std::uint64_t> sizes;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t size = 0;
    for (int shift = 0;; shift += 7) {
      if (at == content.size() || shift > 56) fail();
      const auto byte = static_cast<unsigned char>(content[at++]);
      size |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    sizes.push_back(size);
  }
  Array array(DType::kString, shape);
  for (std::size_t i = 0; i < count; ++i) {
    if (sizes[i] > content.size() - at) fail();
    array.data<std::string>()[i] = content.substr(at, sizes[i]);
    at += sizes[i];
  }
  if (at != content.size()) fail();
  return array;
}

void copy_elements(const Array& from, std::int64_t count, Array& to) {
  if (from.dtype() == DType::kString) {
    std::copy_n(from.data<std::string>(), count, to.data<std::string>());
  } else if (count > 0) {
    std::memcpy(to.raw_data(), from.raw_data(),
                static_cast<std::size_t>(count) * dtype_size(from.dtype()));
  }
}

// Element `from` of the array again in [begin, end).
void repeat_element(Array& array, std::int64_t from, std::int64_t begin) {
  const std::int64_t end = array.num_elements();
  if (array.dtype() == DType::kString) {
    auto* s = array.data<std::string>();
    std::fill(s + begin, s + end, s[from]);
    return;
  }
  const std::size_t size = dtype_size(array.dtype());
  auto* bytes = static_cast<std::byte*>(array.raw_data());
  for (std::int64_t i = begin; i < end; ++i)
    std::memcpy(bytes + static_cast<std::size_t>(i) * size,
                bytes + static_cast<std::size_t>(from) * size, size);
}

}  // namespace

DecodedTensor decode_tensor(const TensorProto& proto, std::size_t max_filled) {
  const std::optional<DType> dtype = dtype_of_number(proto.dtype);
  if (!dtype || is_ref(*dtype))
    throw InvalidArgumentError(
        cat("A tensor can't have dtype ", dtype_number_name(proto.dtype), "."));
  if (*dtype == DType::kResource || *dtype == DType::kVariant)
    throw UnimplementedError(cat("A constant of dtype ", *dtype, " can't be read."));
  const PartialShape partial = decode_shape(*proto.tensor_shape);
  if (!partial.is_fully_known())
    throw InvalidArgumentError(cat("A tensor can't have shape ", partial, "."));
  const Shape shape = partial.to_shape();
  const auto size = static_cast<std::int64_t>(dtype_size(*dtype));
  const std::int64_t bytes = checked_multiply(shape.num_elements(), size);

  if (const std::string& content = proto.tensor_content; !content.empty()) {
    if (*dtype == DType::kString) return {packed_strings(content, shape), {}};
    if (static_cast<std::int64_t>(content.size()) != bytes) {
      throw InvalidArgumentError(cat("A tensor announces ", *dtype, shape, ", that is ", bytes,
                                     " bytes, but holds ", content.size(), "."));
    }
    Array array(*dtype, shape);
    std::memcpy(array.raw_data(), content.data(), content.size());
    wrap_small_integers(array);
    if (*dtype == DType::kBool) {  // other bytes than 0 and 1 are no bool
      auto* b = static_cast<unsigned char*>(array.raw_data());
      for (std::size_t i = 0; i < content.size(); ++i) b[i] = b[i] != 0;
    }
    return {std::move(array), {}};
  }

  Array listed = listed_values(proto, *dtype);
  wrap_small_integers(listed);
  const std::int64_t given = listed.num_elements();
  const std::int64_t count = shape.num_elements();
  const std::int64_t held = checked_multiply(std::max<std::int64_t>(given, 1), size);
  const auto small = static_cast<std::int64_t>(max_filled);
  if (count > given && bytes > small && bytes > held) {
    if (given == 0 || bytes > kLargestImplied || (given > 1 && bytes / kMaxRepeated > held)) {
      throw InvalidArgumentError(cat("A tensor announces ", *dtype, shape, ", that is ", bytes,
                                     " bytes, but holds ", given, " elements."));
    }
    if (given == 1) return {listed.reshape(Shape{}), shape};
  }
  Array array(*dtype, shape);
  copy_elements(listed, std::min(given, count), array);
  if (given == 0) return {Array::zeros(*dtype, shape), {}};
  if (count > given) repeat_element(array, given - 1, given);
  return {std::move(array), {}};
}

void encode_tensor(const Array& value, TensorProto& proto) {
  if (value.dtype() == DType::kResource || value.dtype() == DType::kVariant)
    throw UnimplementedError(cat("A constant of dtype ", value.dtype(), " can't be written."));
  proto.dtype = static_cast<proto::DataType>(static_cast<int>(value.dtype()));
  encode_shape(value.shape(), proto.tensor_shape.make());
  if (value.dtype() == DType::kString) {
    for (const std::string& s : value.values<std::string>()) proto.string_val.push_back(s);
  } else {
    proto.tensor_content.assign(static_cast<const char*>(value.raw_data()), value.num_bytes());
  }
}

namespace {

// The reverse of listed_values, for one element.
void list_value(const Array& value, TensorProto& proto) {
  const void* data = value.raw_data();
  const auto as = [&]<class T>(T) { return *static_cast<const T*>(data); };
  switch (value.dtype()) {
    case DType::kFloat: return proto.float_val.push_back(as(float{}));
    case DType::kDouble: return proto.double_val.push_back(as(double{}));
    case DType::kInt32:
    case DType::kQint32: return proto.int_val.push_back(as(std::int32_t{}));
    case DType::kUint8:
    case DType::kQuint8:
    case DType::kUint4:
    case DType::kUint2: return proto.int_val.push_back(as(std::uint8_t{}));
    case DType::kInt8:
    case DType::kQint8:
    case DType::kInt4:
    case DType::kInt2: return proto.int_val.push_back(as(std::int8_t{}));
    case DType::kInt16:
    case DType::kQint16: return proto.int_val.push_back(as(std::int16_t{}));
    case DType::kUint16:
    case DType::kQuint16: return proto.int_val.push_back(as(std::uint16_t{}));
    case DType::kInt64: return proto.int64_val.push_back(as(std::int64_t{}));
    case DType::kUint32: return proto.uint32_val.push_back(as(std::uint32_t{}));
    case DType::kUint64: return proto.uint64_val.push_back(as(std::uint64_t{}));
    case DType::kBool: return proto.bool_val.push_back(as(bool{}));
    case DType::kHalf:
    case DType::kBFloat16: return proto.half_val.push_back(as(std::uint16_t{}));
    case DType::kComplex64:
      for (const float part : as(std::array<float, 2>{})) proto.scomplex_val.push_back(part);
      return;
    case DType::kComplex128:
      for (const double part : as(std::array<double, 2>{})) proto.dcomplex_val.push_back(part);
      return;
    case DType::kString: return proto.string_val.push_back(as(std::string{}));
    default: break;
  }
  if (dtype_size(value.dtype()) != 1)
    throw UnimplementedError(cat("A constant of dtype ", value.dtype(), " can't be written."));
  proto.float8_val.assign(static_cast<const char*>(data), 1);
}

}  // namespace

void encode_repeated(const Array& value, const Shape& shape, TensorProto& proto) {
  proto.dtype = static_cast<proto::DataType>(static_cast<int>(value.dtype()));
  encode_shape(shape, proto.tensor_shape.make());
  list_value(value, proto);
}

}  // namespace tandem::io
