// Words that are only looked up become numbers in one op, which gives what the single ops give.

#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/ops/lookup.h"
#include "tandem/ops/string_functions.h"
#include "tandem/ops/string_ops.h"

#include "tests/unit/ops/fusion_util.h"

namespace tandem {
namespace {

using Tensors = std::vector<Tensor>;

constexpr const char* kFused = "_SplitAndFind";

lookup::StaticHashTable table() {
  return lookup::StaticHashTable(
      lookup::KeyValueTensorInitializer{
          Tensor(std::vector<std::string>{"a", "film", "and its makers' dull", "extraordinarily",
                                          "extraordinary", "it's", "its"}),
          Tensor(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7})},
      Tensor(std::int64_t{-1}));
}

Tensors texts() {
  return {
      Tensor(std::vector<std::string>{"", " A  film, \t extraordinarily\n", "it's extraordinary!",
                                      "its \xC3\x84 [film]", "... ,", "a"})};
}

// Texts of every length up to 200 bytes, of words of 1 to 12 of a few letters, with white space and
// punctuation of all kinds, and bytes beyond ASCII.
Tensors many_texts() {
  const std::string letters = "aAzZ'[`{@!-\xC3\x84\x7F\xFF";
  const std::string between = " \t\n\v\f\r";
  std::minstd_rand random(1);
  const auto below = [&](std::size_t n) { return random() % n; };
  std::vector<std::string> texts;
  for (std::size_t size = 0; size <= 200; ++size) {
    std::string text;
    while (text.size() < size) {
      for (std::size_t n = 1 + below(12); n > 0; --n) text += letters[below(letters.size())];
      for (std::size_t n = 1 + below(8) / 7; n > 0; --n) text += between[below(between.size())];
    }
    texts.push_back(text.substr(0, size));
  }
  return {Tensor(texts)};
}

void expect_fused(const std::function<Tensor(const Tensor&)>& standardized, int fused) {
  const lookup::StaticHashTable words = table();
  const auto body = [&](const Tensors& x) {
    const auto parts = strings::split(standardized(x[0]));
    return Tensors{parts.indices, words.lookup(parts.values), parts.shape};
  };
  const MutableFunction f = optimized_graph(body, texts());
  EXPECT_EQ(count_op(f, kFused), fused) << f.graph.to_string();
  EXPECT_EQ(count_op(f, "LookupTableFindV2"), 1 - fused);
  expect_as_eager(body, texts(), 0);
  expect_as_eager(body, many_texts(), 0);
}

// What the words are, by a table that knows each of them.
TEST(FuseLookup, CutsTextsOfAllLengthsIntoTheWordsOfTheSingleOps) {
  for (const char* removed : {"", "[!-/\\[\\]@`{]", "[^a-z ]", "[\\s]", "[a-z]"}) {
    const auto standardized = [&](const Tensor& x) {
      const Tensor small = strings::lower(x);
      return *removed ? strings::regex_replace(small, removed, "") : small;
    };
    const Tensors x = many_texts();
    std::set<std::string> distinct;
    for (std::string& word : strings::split(standardized(x[0])).values.to_vector<std::string>())
      distinct.insert(std::move(word));
    std::vector<std::int64_t> numbers(distinct.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    const lookup::StaticHashTable words(
        lookup::KeyValueTensorInitializer{
            Tensor(std::vector<std::string>(distinct.begin(), distinct.end())), Tensor(numbers)},
        Tensor(std::int64_t{-1}));
    const auto body = [&](const Tensors& given) {
      const auto parts = strings::split(standardized(given[0]));
      return Tensors{parts.indices, words.lookup(parts.values), parts.shape};
    };
    EXPECT_EQ(count_op(optimized_graph(body, x), kFused), 1);
    SCOPED_TRACE(removed);
    expect_as_eager(body, x, 0);
  }
}

TEST(FuseLookup, TakesInSplittingAndWhatStandsBefore) {
  expect_fused([](const Tensor& x) { return x; }, 1);
  expect_fused([](const Tensor& x) { return strings::lower(x); }, 1);
  expect_fused(
      [](const Tensor& x) { return strings::regex_replace(strings::lower(x), "[!-/\\[\\]]", ""); },
      1);
  expect_fused([](const Tensor& x) { return strings::regex_replace(x, "\\W+$|'", ""); }, 1);
  expect_fused([](const Tensor& x) { return strings::regex_replace(x, "[,.]", " "); }, 1);
}

TEST(FuseLookup, LeavesWordsThatOthersRead) {
  const lookup::StaticHashTable words = table();
  const auto body = [&](const Tensors& x) {
    const auto parts = strings::split(x[0]);
    return Tensors{words.lookup(parts.values), strings::length(parts.values)};
  };
  EXPECT_EQ(count_op(optimized_graph(body, texts()), kFused), 0);
}

TEST(RegexReplace, RemovesClassesOfCharacters) {
  const Tensor x = Tensor(std::vector<std::string>{"a-b]c^d\\e", "", "\xC3\x84!", "..."});
  const auto removed = [&](const char* pattern) {
    return strings::regex_replace(x, pattern, "").to_vector<std::string>();
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(removed("[-a\\]]"), (Strings{"bc^d\\e", "", "\xC3\x84!", "..."}));
  EXPECT_EQ(removed("[+--.\\\\]"), (Strings{"ab]c^de", "", "\xC3\x84!", ""}));
  EXPECT_EQ(removed("[^a-c]"), (Strings{"abc", "", "", ""}));
  EXPECT_EQ(removed("[\\W]"), (Strings{"abcde", "", "", ""}));
  EXPECT_EQ(removed("[[:punct:]]"), (Strings{"abcde", "", "\xC3\x84", ""}));
}

}  // namespace
}  // namespace tandem
