// _SplitAndFind: the numbers of a text's words, read once.

#include <algorithm>
#include <bit>
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
#include "tandem/kernels/cpu/string/text_blocks.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// Cuts texts into words.
class Words {
 public:
  Words(bool lower, const std::string& removed)
      : Words(lower, removed.empty() ? nullptr : &compiled(removed)) {}

  // Calls word(key) for each word of `text`; the keys stay good until the next text.
  template <class F>
  void each_word(std::string_view text, F&& word) {
    std::string changed;
    if (automaton_) {
      changed = text;
      for (char& letter : changed) {
        if (bytes_.lower && letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter | 32);
      }
      RE2::GlobalReplace(&changed, *automaton_, "");
      text = changed;
    }
    const std::size_t blocks = (text.size() + kTextBlock - 1) / kTextBlock;
    // One block more: what follows the last word can be read, and a space ends it.
    const std::size_t room = (blocks + 1) * kTextBlock;
    if (letters_.size() < room) letters_.resize(room);
    if (masks_.size() < blocks + 1) masks_.resize(blocks + 1);
    change_text(bytes_, text.data(), text.size(), letters_.data(), masks_.data());
    masks_[blocks] = {.spaces = 1};

    // The word so far, and behind it what has no removed byte in it and is to be moved there.
    char *begin = letters_.data(), *end = begin, *piece = begin;
    for (std::size_t block = 0; block <= blocks; ++block) {
      const BlockMasks masks = masks_[block];
      for (std::uint64_t rest = masks.spaces | masks.removed; rest != 0; rest &= rest - 1) {
        char* const at = letters_.data() + block * kTextBlock + std::countr_zero(rest);
        end = piece == end ? at : std::copy(piece, at, end);
        piece = at + 1;
        if (masks.removed & rest & -rest) continue;
        if (end != begin) {
          word(StringIndex::Key::readable({begin, static_cast<std::size_t>(end - begin)}));
        }
        begin = end = piece;
      }
    }
  }

 private:
  Words(bool lower, const Expression* removed)
      : bytes_(lower, removed ? removed->bytes : std::nullopt),
        automaton_(removed && !removed->bytes ? removed->automaton.get() : nullptr) {}

  const TextBytes bytes_;
  const RE2* const automaton_;  // of what is removed, where that is more than bytes
  std::vector<char> letters_;   // of a text
  std::vector<BlockMasks> masks_;
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
  Words words(c.attr<bool>("lower"), c.attr<std::string>("removed"));
  std::vector<std::size_t> ends;
  ends.reserve(static_cast<std::size_t>(in.num_elements()));
  const auto fixed = table->fixed_strings();
  const bool plain = fixed && table->kind().value == c.output_dtype(1) &&
                     table->kind().value_shape.rank() == 0 && unknown.rank() == 0 &&
                     unknown.dtype() == c.output_dtype(1);
  if (!plain) {  // the table knows what is wrong, or how it is done
    std::vector<std::string> found;
    for (const std::string& text : in.values<std::string>()) {
      words.each_word(text, [&](const StringIndex::Key& key) { found.emplace_back(key.text()); });
      ends.push_back(found.size());
    }
    Array keys(DType::kString, Shape{std::ssize(found)});
    std::move(found.begin(), found.end(), keys.data<std::string>());
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
      words.each_word(text, [&](const StringIndex::Key& key) {
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
