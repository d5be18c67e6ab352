// _SplitAndFind: the numbers of a text's words, read once.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/state/lookup_table.h"
#include "tandem/kernels/cpu/state/resource_op.h"
#include "tandem/kernels/cpu/string/expression.h"
#include "tandem/kernels/cpu/string/map_strings.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// What becomes of each byte of a text.
class Bytes {
 public:
  Bytes(bool lower, const std::string& removed) : lower_(lower) {
    const ByteClass* none = nullptr;
    if (!removed.empty()) {
      const Expression& expression = compiled(removed);
      if (expression.bytes) {
        none = &*expression.bytes;
      } else {
        automaton_ = expression.automaton.get();
      }
    }
    for (std::size_t i = 0; i < becomes_.size(); ++i) {
      const char letter = lowered(static_cast<char>(i));
      const auto byte = static_cast<unsigned char>(letter);
      becomes_[i] = none && (*none)[byte] ? kRemoved : is_space(letter) ? kSpace : kLetter + byte;
    }
  }

  // Calls word(key) for each word of `text`; the keys stay good until the next text.
  template <class F>
  void each_word(std::string_view text, F&& word) {
    std::string changed;
    if (automaton_) {
      changed = text;
      for (char& letter : changed) letter = lowered(letter);
      RE2::GlobalReplace(&changed, *automaton_, "");
      text = changed;
    }
    // Whose end can be read further than the last word.
    const std::size_t room = text.size() + StringIndex::Key::kHead;
    if (words_.size() < room) words_.resize(room);
    char *begin = words_.data(), *end = begin;
    const auto done = [&] {
      word(StringIndex::Key::readable({begin, static_cast<std::size_t>(end - begin)}));
      begin = end;
    };
    const std::uint16_t* const becomes = becomes_.data();
    for (const char byte : text) {
      const std::uint16_t letter = becomes[static_cast<unsigned char>(byte)];
      if (letter == kSpace) {
        if (end != begin) done();
        continue;
      }
      *end = static_cast<char>(letter);
      end += letter >> 8;
    }
    if (end != begin) done();
  }

 private:
  // What is no letter; letters have kLetter added to them.
  static constexpr std::uint16_t kRemoved = 0, kSpace = 1, kLetter = 1 << 8;
  char lowered(char letter) const {
    return lower_ && letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
  }

  const bool lower_;
  const RE2* automaton_ = nullptr;  // of what is removed, where that is more than bytes
  std::array<std::uint16_t, 256> becomes_;
  std::string words_;  // of a text, side by side
};

// Outputs 0 and 2, for words that end in `ends` of each row.
void set_places(KernelContext& c, const std::vector<std::size_t>& ends) {
  const auto count = static_cast<std::int64_t>(ends.empty() ? 0 : ends.back());
  std::int64_t* place = c.allocate_output(0, Shape{count, 2}).data<std::int64_t>();
  std::size_t begin = 0, longest = 0;
  for (std::size_t row = 0; row < ends.size(); begin = ends[row++]) {
    longest = std::max(longest, ends[row] - begin);
    for (std::size_t i = begin; i < ends[row]; ++i) {
      *place++ = static_cast<std::int64_t>(row);
      *place++ = static_cast<std::int64_t>(i - begin);
    }
  }
  std::int64_t* shape = c.allocate_output(2, Shape{2}).data<std::int64_t>();
  shape[0] = std::ssize(ends);
  shape[1] = static_cast<std::int64_t>(longest);
}

void split_and_find(KernelContext& c) {
  const Ref<LookupTable> table = resource_of<LookupTable>(c, "table");
  const Array &in = c.input(1), &unknown = c.input(2);
  if (in.rank() != 1) {
    throw InvalidArgumentError(cat("input must be a vector, got shape: ", in.shape()));
  }
  Bytes bytes(c.attr<bool>("lower"), c.attr<std::string>("removed"));
  std::vector<std::size_t> ends;
  ends.reserve(static_cast<std::size_t>(in.num_elements()));
  const auto fixed = table->fixed_strings();
  const bool plain = fixed && table->kind().value == c.output_dtype(1) &&
                     table->kind().value_shape.rank() == 0 && unknown.rank() == 0 &&
                     unknown.dtype() == c.output_dtype(1);
  if (!plain) {  // the table knows what is wrong, or how it is done
    std::vector<std::string> words;
    for (const std::string& text : in.values<std::string>()) {
      bytes.each_word(text, [&](const StringIndex::Key& key) { words.emplace_back(key.text()); });
      ends.push_back(words.size());
    }
    Array keys(DType::kString, Shape{std::ssize(words)});
    std::move(words.begin(), words.end(), keys.data<std::string>());
    c.set_output(1, table->find(keys, unknown));
    return set_places(c, ends);
  }
  with_element(c.output_dtype(1), [&]<class T>() {
    const T* const known = static_cast<const T*>(fixed->values.raw_data());
    const T& otherwise = *static_cast<const T*>(unknown.raw_data());
    std::vector<T> found;
    std::size_t count = 0;
    // Words wait for what is fetched of the index while others are read.
    constexpr std::size_t kWaiting = 16;
    StringIndex::Key waiting[kWaiting];
    std::size_t first = 0, last = 0;
    const auto find_first = [&] {
      const std::int64_t row = fixed->index.find(waiting[first++ % kWaiting]);
      found[count++] = row == StringIndex::kMissing ? otherwise : known[row];
    };
    for (const std::string& text : in.values<std::string>()) {
      if (found.size() < count + text.size()) found.resize(2 * found.size() + text.size());
      bytes.each_word(text, [&](const StringIndex::Key& key) {
        fixed->index.prefetch(key);
        waiting[last++ % kWaiting] = key;
        if (last - first == kWaiting) find_first();
      });
      while (first != last) find_first();
      ends.push_back(count);
    }
    Array& out = c.allocate_output(1, Shape{static_cast<std::int64_t>(count)});
    copy_elements(static_cast<T*>(out.raw_data()), found.data(), out.num_elements());
  });
  set_places(c, ends);
}

const KernelRegistration kSplitAndFind{{.op = "_SplitAndFind", .run = split_and_find}};

}  // namespace
}  // namespace tandem::cpu
