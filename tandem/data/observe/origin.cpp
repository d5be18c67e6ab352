#include "tandem/data/observe/origin.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "tandem/core/error.h"

namespace tandem::data {
namespace {

constexpr std::size_t kLongest = 1024;

const std::string& text_of(const Tensor& name) { return name.array().data<std::string>()[0]; }

// The bytes of the character that begins at `at`, or 0 if none of UTF-8 does.
std::size_t character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xc2 ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  if (size == 0 || size > text.size() - at) return 0;
  for (std::size_t i = at + 1; i < at + size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (size < 2) return size;
  const unsigned second = byte(at + 1);
  // Longer than need be, half of a pair of UTF-16, beyond the last character.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  // Control characters, too, are of no name.
  return first == 0xc2 && second < 0xa0 ? 0 : size;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Other strings are the contents of files, say.
bool printable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (is_control(text[at])) return false;
    const std::size_t size = character(text, at);
    if (size == 0) return false;
    at += size;
  }
  return !text.empty();
}

// The printable ones of names [begin, end).
std::string quoted(const Element& names, std::size_t begin, std::size_t end) {
  std::string list;
  for (std::size_t i = begin; i < end; ++i) {
    const std::string& text = text_of(names[i]);
    if (printable(text)) list += cat(list.empty() ? "\"" : ", \"", text, "\"");
  }
  return list;
}

// Names that functions took.
std::size_t taken(const Origin& origin) {
  if (!origin.names) return 0;
  return origin.names->size() - (origin.byte >= 0 ? 1 : 0);
}

// `from "photos/7.jpg"`, or nothing.
std::string from(const Origin& origin) {
  if (!origin.names) return "";
  const std::size_t names = taken(origin);
  std::string text = quoted(*origin.names, 0, names);
  const std::string file = quoted(*origin.names, names, origin.names->size());
  if (!file.empty()) {
    text += cat(text.empty() ? "" : ", from ", file, ", at byte ", origin.byte);
  }
  if (text.empty()) return "";
  return cat("from ", text, origin.and_more ? ", and what follows" : "");
}

}  // namespace

void note_names(const Element& element, Element& names) {
  names.clear();
  for (const Tensor& tensor : element) {
    if (!tensor.defined() || tensor.dtype() != DType::kString || tensor.rank() != 0) continue;
    // Whether the whole can be printed is asked only if it shall be.
    const std::string& text = text_of(tensor);
    if (!text.empty() && text.size() <= kLongest && !is_control(text[0])) names.push_back(tensor);
  }
}

Origin joined(const Element& names, Origin before) {
  if (names.empty() || taken(before) > 0) return before;
  Element all = names;
  if (before.names) all.insert(all.end(), before.names->begin(), before.names->end());
  before.names = std::make_shared<const Element>(std::move(all));
  return before;
}

Origin nested(Origin first, Origin second) {
  if (!second.names) return first;
  if (!first.names) return second;
  // There is room for one place only.
  Element names = *first.names;
  names.insert(names.end(), second.names->begin(), second.names->end());
  return {std::make_shared<const Element>(std::move(names)), -1, first.and_more || second.and_more};
}

Origin of_several(Origin first) {
  first.and_more = first.names != nullptr;
  return first;
}

std::string origin_text(const Element& names, const Origin& before) {
  const std::string own = quoted(names, 0, names.size());
  const std::string first = from(before);
  if (own.empty() && first.empty()) return "";
  if (own.empty()) return cat(" (", first, ")");
  if (first.empty()) return cat(" (from ", own, ")");
  return cat(" (made of ", own, ", ", first, ")");
}

std::string describe_mismatch(const Origin& unlike, const Origin& first) {
  const std::string that = from(unlike), other = from(first);
  if (that.empty() && other.empty()) return "";
  if (other.empty()) return cat(" (", that, ")");
  return cat(" (", that, that.empty() ? "" : "; ", "the first ", other, ")");
}

void visit(StateArchive& state, Origin& origin) {
  Element list = origin.names ? *origin.names : Element();
  if (origin.byte >= 0 || origin.and_more) {
    list.push_back(Tensor::from(std::vector<std::int64_t>{origin.byte, origin.and_more ? 1 : 0}));
  }
  state.value(list);
  if (!state.restoring()) return;
  origin = {};
  if (!list.empty() && list.back().dtype() == DType::kInt64) {
    const std::vector<std::int64_t> place = list.back().to_vector<std::int64_t>();
    state.require(place.size() == 2 && list.size() > 1, "an element's origin has no name");
    origin.byte = place[0];
    origin.and_more = place[1] != 0;
    list.pop_back();
  }
  for (const Tensor& name : list) {
    state.require(name.dtype() == DType::kString && name.rank() == 0,
                  "an element's origin is no name");
  }
  if (!list.empty()) origin.names = std::make_shared<const Element>(std::move(list));
}

void Origins::visit_state(StateArchive& state) {
  const std::int64_t count = state.length(all_.size());
  if (state.restoring()) all_.assign(static_cast<std::size_t>(count), {});
  for (Origin& origin : all_) visit(state, origin);
}

const Tensor& OriginTensors::add(const Origin& origin) {
  last_ = origin;
  // Names that functions took say more than the file that these were read from.
  const bool source = taken(origin) == 0;
  places_.push_back(source ? origin.byte : -1);
  known_ = known_ || places_.back() >= 0;
  return last_.names ? last_.names->front() : unnamed_;
}

Tensor OriginTensors::places() const { return known_ ? Tensor::from(places_) : no_places_; }

Origin OriginTensors::read(const Tensor& name, const Tensor& places, std::size_t number) {
  Origin origin;
  if (text_of(name).empty()) return origin;
  origin.names = std::make_shared<const Element>(Element{name});
  const Array list = places.array();
  if (list.rank() == 1 && number < static_cast<std::size_t>(list.dim(0))) {
    origin.byte = list.data<std::int64_t>()[number];
  }
  return origin;
}

}  // namespace tandem::data
