#include "tandem/data/state_archive.h"

#include <cstring>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/stages/element_list.h"
#include "tandem/fs/crc32c.h"

namespace tandem::data {
namespace {

constexpr std::string_view kMagic = "TANDEMIT";
constexpr std::size_t kHeader = 8 + 4 + 8 + 4;

void put_word(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

std::uint64_t word(std::string_view from) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  }
  return value;
}

}  // namespace

StateArchive::StateArchive(std::string_view bytes) : restoring_(true) {
  if (bytes.size() < kHeader || bytes.substr(0, 8) != kMagic) {
    throw DataLossError(cat("These ", bytes.size(),
                            " bytes are not the state of an iterator, or their beginning is "
                            "damaged."));
  }
  const std::uint64_t version = word(bytes.substr(8, 4));
  const std::string_view items = bytes.substr(kHeader);
  if (word(bytes.substr(12, 8)) != items.size()) {
    throw DataLossError(cat("The state of an iterator is cut off or has been added to: it has ",
                            items.size(), " bytes after its header, which announces ",
                            word(bytes.substr(12, 8)), "."));
  }
  if (word(bytes.substr(20, 4)) != fs::mask_crc32c(fs::crc32c(items))) {
    throw DataLossError("The state of an iterator is damaged: its checksum does not match.");
  }
  if (version != kVersion) {
    throw UnimplementedError(cat("The state of an iterator is of version ", version,
                                 "; this library reads version ", kVersion, "."));
  }
  items_ = items;
}

std::string StateArchive::bytes() const {
  std::string all(kMagic);
  put_word(all, kVersion, 4);
  put_word(all, items_.size(), 8);
  put_word(all, fs::mask_crc32c(fs::crc32c(items_)), 4);
  return all + items_;
}

void StateArchive::require(bool holds, std::string_view why) {
  if (holds) return;
  throw InvalidArgumentError(
      cat("The state does not fit this pipeline: ", why,
          ". An iterator is restored from what an iterator of the same dataset saved."));
}

void StateArchive::finish() const { require(at_ == items_.size(), "it goes on after its end"); }

void StateArchive::put(char kind, std::string_view value) {
  items_ += kind;
  items_ += value;
}

std::string_view StateArchive::take(std::size_t count) {
  require(count <= items_.size() - at_, "it ends too early");
  const std::string_view taken = std::string_view(items_).substr(at_, count);
  at_ += count;
  return taken;
}

void StateArchive::expect(char kind) {
  const std::string_view found = take(1);
  require(found[0] == kind, cat("an item of kind '", found, "' lies where '", kind, "' is due"));
}

std::uint64_t StateArchive::take_number() { return word(take(8)); }

void StateArchive::stage(std::string_view name) {
  if (!restoring_) {
    put('s', {});
    put_word(items_, name.size(), 8);
    items_ += name;
    return;
  }
  expect('s');
  const std::string_view found = take(take_number());
  require(found == name, cat("it was saved by the stage ", found, " where this one has ", name));
}

void StateArchive::value(std::int64_t& number) {
  if (restoring_) {
    expect('i');
    number = static_cast<std::int64_t>(take_number());
  } else {
    put('i', {});
    put_word(items_, static_cast<std::uint64_t>(number), 8);
  }
}

void StateArchive::value(bool& flag) {
  std::int64_t number = flag ? 1 : 0;
  value(number);
  flag = number != 0;
}

void StateArchive::value(std::string& text) {
  if (restoring_) {
    expect('t');
    text = take(take_number());
  } else {
    put('t', {});
    put_word(items_, text.size(), 8);
    items_ += text;
  }
}

std::int64_t StateArchive::length(std::size_t count) {
  auto number = static_cast<std::int64_t>(count);
  value(number);
  require(number >= 0 && (!restoring_ || static_cast<std::uint64_t>(number) <= items_.size() - at_),
          "a list is longer than the state");
  return number;
}

void StateArchive::value(std::exception_ptr& error) {
  std::int64_t code = error ? static_cast<std::int64_t>(code_of(error)) : 0;
  std::string message = error ? message_of(error) : std::string();
  if (!restoring_) {
    put('x', {});
    value(code);
    value(message);
    return;
  }
  expect('x');
  value(code);
  value(message);
  error = nullptr;
  if (code == 0) return;
  require(code > 0 && code <= static_cast<std::int64_t>(Code::kUnauthenticated),
          "an error has no known code");
  try {
    throw_error(static_cast<Code>(code), message);
  } catch (...) {
    error = std::current_exception();
  }
}

void StateArchive::value(std::vector<Tensor>& tensors) {
  if (restoring_) {
    expect('e');
    const std::int64_t count = length(0);
    tensors.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      const bool defined = take(1)[0] != 0;
      tensors.push_back(defined ? Tensor(read_array()) : Tensor());
    }
    return;
  }
  put('e', {});
  length(tensors.size());
  for (const Tensor& tensor : tensors) {
    items_ += tensor.defined() ? '\1' : '\0';
    if (tensor.defined()) write_array(tensor.array());
  }
}

void StateArchive::write_array(const Array& array) {
  put_word(items_, static_cast<std::uint64_t>(array.dtype()), 4);
  put_word(items_, static_cast<std::uint64_t>(array.rank()), 4);
  for (const std::int64_t dim : array.shape().dims()) {
    put_word(items_, static_cast<std::uint64_t>(dim), 8);
  }
  if (array.dtype() == DType::kString) {
    for (const std::string& text : array.values<std::string>()) {
      put_word(items_, text.size(), 8);
      items_ += text;
    }
  } else if (array.dtype() == DType::kVariant) {
    for (const Variant& variant : array.values<Variant>()) save_dataset(*this, variant);
  } else if (is_object(array.dtype())) {
    throw UnimplementedError(
        cat("A tensor of dtype ", array.dtype(), " in an iterator's buffers cannot be saved."));
  } else {
    items_.append(static_cast<const char*>(array.raw_data()), array.num_bytes());
  }
}

Array StateArchive::read_array() {
  const auto dtype = static_cast<DType>(word(take(4)));
  const std::uint64_t rank = word(take(4));
  require(rank <= Shape::kMaxRank, "a tensor has too many dimensions");
  std::vector<std::int64_t> dims;
  for (std::uint64_t i = 0; i < rank; ++i) {
    dims.push_back(static_cast<std::int64_t>(take_number()));
  }
  const Shape shape{std::span<const std::int64_t>(dims)};
  const auto count = static_cast<std::uint64_t>(shape.num_elements());
  if (dtype == DType::kString) {
    require(count <= (items_.size() - at_) / 8, "a tensor is larger than the state");
    Array array(dtype, shape);
    for (std::uint64_t i = 0; i < count; ++i) {
      array.data<std::string>()[i] = take(take_number());
    }
    return array;
  }
  if (dtype == DType::kVariant) {
    require(count <= items_.size() - at_, "a tensor is larger than the state");
    Array array(dtype, shape);
    for (std::uint64_t i = 0; i < count; ++i) {
      array.data<Variant>()[i] = restore_dataset(*this);
    }
    return array;
  }
  const std::size_t size = is_object(dtype) ? 0 : dtype_size(dtype);
  require(size > 0, "a tensor has a dtype that cannot be saved");
  require(count <= (items_.size() - at_) / size, "a tensor is larger than the state");
  Array array(dtype, shape);
  const std::string_view bytes = take(array.num_bytes());
  if (!bytes.empty()) std::memcpy(array.raw_data(), bytes.data(), bytes.size());
  return array;
}

}  // namespace tandem::data
