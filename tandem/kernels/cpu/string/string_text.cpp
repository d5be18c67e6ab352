// Strings as text: length, parts, letters, white space.

#include <algorithm>
#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/string/map_strings.h"
#include "tandem/kernels/cpu/string/unicode_case.h"

namespace tandem::cpu {
namespace {

bool counts_characters(const KernelContext& c) {
  const auto& unit = c.attr<std::string>("unit");
  if (unit != "BYTE" && unit != "UTF8_CHAR") {
    throw InvalidArgumentError(cat("unit must be BYTE or UTF8_CHAR, not '", unit, "'."));
  }
  return unit == "UTF8_CHAR";
}

void length(KernelContext& c) {
  if (!counts_characters(c)) {
    return map_strings<std::int32_t>(
        c, 2, [](const std::string& s) { return static_cast<std::int32_t>(s.size()); });
  }
  map_strings<std::int32_t>(c, 20, [](const std::string& s) {
    const auto inner = std::count_if(s.begin(), s.end(), continues_character);
    return static_cast<std::int32_t>(static_cast<std::ptrdiff_t>(s.size()) - inner);
  });
}

// ---- Substr ----

struct Part {
  std::size_t begin, count;
};

// False if `pos` lies outside of the string.
bool find_bytes(std::string_view s, std::int64_t pos, std::int64_t len, Part& part) {
  const auto size = static_cast<std::int64_t>(s.size());
  if (pos > size || pos < -size) return false;
  const std::int64_t begin = pos < 0 ? size + pos : pos;
  const std::int64_t rest = size - begin;
  part = {static_cast<std::size_t>(begin),
          static_cast<std::size_t>(len < 0 || len > rest ? rest : len)};
  return true;
}

// Moves `at` to the end of the character that begins there.
std::size_t next_character(std::string_view s, std::size_t at) {
  ++at;
  while (at < s.size() && continues_character(s[at])) ++at;
  return at;
}

bool find_characters(std::string_view s, std::int64_t pos, std::int64_t len, Part& part) {
  std::size_t begin = 0;
  if (pos >= 0) {
    for (std::int64_t i = 0; i < pos; ++i) {
      if (begin >= s.size()) return false;
      begin = next_character(s, begin);
    }
  } else {
    if (len < 0) return false;  // as TensorFlow has it
    begin = s.size();
    for (std::int64_t i = 0; i > pos; --i) {
      if (begin == 0) return false;
      --begin;
      while (begin > 0 && continues_character(s[begin])) --begin;
    }
  }
  std::size_t end = begin;
  for (std::int64_t i = 0; i < len && end < s.size(); ++i) end = next_character(s, end);
  part = {begin, end - begin};
  return true;
}

// The place in an array of shape `own` of the element that is broadcast to `index` of `whole`.
std::int64_t broadcast_place(const Shape& whole, const Shape& own, std::int64_t index) {
  std::int64_t place = 0, step = 1;
  for (int back = 1; back <= whole.rank(); ++back) {
    const std::int64_t size = whole[whole.rank() - back];
    const std::int64_t at = index % size;
    index /= size;
    if (back > own.rank()) break;
    const std::int64_t own_size = own[own.rank() - back];
    if (own_size != 1) place += at * step;
    step *= own_size;
  }
  return place;
}

template <class T>
void substr_of(KernelContext& c) {
  const bool characters = counts_characters(c);
  const Array &in = c.input(0), &pos = c.input(1), &len = c.input(2);
  if (!(pos.shape() == len.shape())) {
    throw InvalidArgumentError(
        cat("pos and len should have the same shape, got: ", pos.shape(), " vs. ", len.shape()));
  }
  const Shape shape = broadcast(in.shape(), pos.shape());
  Array& out = c.allocate_output(0, shape);
  const std::string* from = in.data<std::string>();
  std::string* to = out.data<std::string>();
  const T *p = pos.data<T>(), *n = len.data<T>();
  const bool one_place = pos.num_elements() == 1, plain = in.shape() == shape;
  const bool aligned = pos.shape() == shape;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    const std::int64_t k = one_place ? 0 : aligned ? i : broadcast_place(shape, pos.shape(), i);
    const std::string& s = from[plain ? i : broadcast_place(shape, in.shape(), i)];
    Part part{};
    const bool found =
        characters ? find_characters(s, p[k], n[k], part) : find_bytes(s, p[k], n[k], part);
    if (!found) {
      throw InvalidArgumentError(
          cat("pos ", p[k], " out of range for string b'", s, "' at index ", i));
    }
    to[i].assign(s, part.begin, part.count);
  }
}

void substr(KernelContext& c) {
  if (c.input(1).dtype() == DType::kInt32) return substr_of<std::int32_t>(c);
  substr_of<std::int64_t>(c);
}

// ---- Letters ----

template <bool kUp>
void change_case(KernelContext& c) {
  const auto& encoding = c.attr<std::string>("encoding");
  if (!encoding.empty() && encoding != "utf-8") {
    throw InvalidArgumentError(
        cat("only utf-8 or '' (no encoding) is supported, received ", encoding));
  }
  if (!encoding.empty()) {
    return map_strings<std::string>(
        c, 300, [](const std::string& s) { return kUp ? utf8_upper(s) : utf8_lower(s); });
  }
  map_strings<std::string>(c, 40, [](const std::string& s) {
    std::string changed = s;
    for (char& letter : changed) {
      const char first = kUp ? 'a' : 'A';
      if (letter >= first && letter <= first + 25) letter = static_cast<char>(letter ^ 0x20);
    }
    return changed;
  });
}

void strip(KernelContext& c) {
  map_strings<std::string>(c, 30, [](const std::string& s) {
    std::string_view rest = s;
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
    while (!rest.empty() && is_space(rest.back())) rest.remove_suffix(1);
    return std::string(rest);
  });
}

const KernelRegistration kLength{{.op = "StringLength", .run = length}};
const KernelRegistration kSubstr{{.op = "Substr", .run = substr}};
const KernelRegistration kLower{{.op = "StringLower", .run = change_case<false>}};
const KernelRegistration kUpper{{.op = "StringUpper", .run = change_case<true>}};
const KernelRegistration kStrip{{.op = "StringStrip", .run = strip}};

}  // namespace
}  // namespace tandem::cpu
