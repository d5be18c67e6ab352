// td::lookup: tables as programs use them.

#include "tandem/ops/lookup.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::lookup {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

Tensor longs(std::initializer_list<std::int64_t> values) { return tensor<std::int64_t>(values); }
std::vector<std::int64_t> numbers(const Tensor& t) { return t.to_vector<std::int64_t>(); }

KeyValueTensorInitializer salt_and_pepper() {
  return {.keys = Tensor{"salt", "pepper"}, .values = longs({0, 1})};
}

template <class E, class F>
std::string message(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error of this kind";
}

class LookupFile : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(path_) << "salt\t3\npepper\t4\nthyme\t7\n"; }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + "tandem_lookup_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt";
};

TEST(Lookup, AStaticTableFindsValuesAndDefaults) {
  const StaticHashTable table(salt_and_pepper(), -1);
  EXPECT_EQ(table.value_dtype(), DType::kInt64) << "and -1 is of it";
  const Tensor found =
      table.lookup(Tensor::from(std::vector<std::string>{"pepper", "ice", "salt", "salt"}, {2, 2}));
  EXPECT_EQ(found.shape(), Shape({2, 2}));
  EXPECT_THAT(numbers(found), ElementsAre(1, -1, 0, 0));
  EXPECT_EQ(table.lookup("salt").item<std::int64_t>(), 0);
  EXPECT_EQ(table.size().item<std::int64_t>(), 2);
  const auto [keys, values] = table.export_all();
  EXPECT_THAT(keys.to_vector<std::string>(), UnorderedElementsAre("salt", "pepper"));
  EXPECT_THAT(numbers(values), UnorderedElementsAre(0, 1));
  const StaticHashTable words(KeyValueTensorInitializer{longs({5}), Tensor{"five"}}, "?");
  EXPECT_THAT(words.lookup(longs({5, 6})).to_vector<std::string>(), ElementsAre("five", "?"));
}

TEST_F(LookupFile, LinesNumbersAndColumnsAreRead) {
  const StaticHashTable lines(TextFileInitializer{.filename = path_, .value_index_offset = 10}, -1);
  EXPECT_THAT(numbers(lines.lookup({"pepper\t4", "pepper"})), ElementsAre(11, -1));
  const StaticHashTable columns(
      TextFileInitializer{.filename = path_, .key_index = 0, .value_index = 1}, -1);
  EXPECT_THAT(numbers(columns.lookup({"thyme", "salt"})), ElementsAre(7, 3));
  EXPECT_THAT(numbers(columns[{"thyme", "salt"}]), ElementsAre(7, 3));
  const StaticHashTable words(TextFileInitializer{.filename = path_,
                                                  .key_dtype = DType::kInt64,
                                                  .key_index = kLineNumber,
                                                  .value_dtype = DType::kString,
                                                  .value_index = 0,
                                                  .vocab_size = 2},
                              "none");
  EXPECT_THAT(words.lookup(longs({1, 2})).to_vector<std::string>(), ElementsAre("pepper", "none"));
  EXPECT_THAT(message<InvalidArgumentError>([&] {
                StaticHashTable(TextFileInitializer{.filename = path_, .vocab_size = 9}, -1);
              }),
              HasSubstr(path_));
  EXPECT_THROW(StaticHashTable(TextFileInitializer{.filename = path_ + "x"}, -1), NotFoundError);
}

TEST(Lookup, VocabulariesHaveBucketsForTheRest) {
  // TensorFlow 2.21's numbers.
  const StaticVocabularyTable table(KeyValueTensorInitializer{Tensor{"a", "b"}, longs({0, 1})}, 3);
  EXPECT_THAT(numbers(table.lookup({"a", "b", "c", "d", "e", "emerson"})),
              ElementsAre(0, 1, 3, 4, 3, 3));
  EXPECT_EQ(table.size().item<std::int64_t>(), 5);
  const StaticVocabularyTable of_numbers(KeyValueTensorInitializer{longs({10, 20}), longs({0, 1})},
                                         5);
  EXPECT_THAT(numbers(of_numbers.lookup(longs({10, 20, 30, 40, -7}))), ElementsAre(0, 1, 5, 5, 4));
  const StaticVocabularyTable buckets(std::nullopt, 5);
  EXPECT_THAT(numbers(buckets.lookup({"a", "b"})), ElementsAre(4, 2));
}

TEST(Lookup, MutableTablesChange) {
  const MutableHashTable table(DType::kString, DType::kInt64, -1);
  table.insert({"a", "b"}, longs({1, 2}));
  table.insert({"b"}, longs({3}));
  table.remove({"a", "z"});
  EXPECT_THAT(numbers(table.lookup({"a", "b"})), ElementsAre(-1, 3));
  EXPECT_EQ(table.size().item<std::int64_t>(), 1);
  EXPECT_THAT(table.export_all().first.to_vector<std::string>(), ElementsAre("b"));
  const MutableHashTable vectors(DType::kString, DType::kFloat, Tensor{0.0, 0.0});
  vectors.insert({"a"}, Tensor{{1.0, 2.0}});
  EXPECT_THAT(vectors.lookup({"a", "q"}).to_vector<float>(), ElementsAre(1, 2, 0, 0));
}

TEST(Lookup, TracedFunctionsLookUpAtEachCall) {
  const MutableHashTable table(DType::kString, DType::kInt64, -1);
  auto ids = function([table](Tensor x) { return table.lookup(x) * std::int64_t{2}; });
  EXPECT_THAT(numbers(ids(Tensor{"a"})), ElementsAre(-2));
  table.insert({"a"}, longs({21}));
  EXPECT_THAT(numbers(ids(Tensor{"a"})), ElementsAre(42));
  auto count = function([table](Tensor x) {
    table.insert(x, zeros_like(table.lookup(x)));
    return table.size();
  });
  EXPECT_EQ(count(Tensor{"b", "c"}).item<std::int64_t>(), 3);
  EXPECT_EQ(count(Tensor{"d", "e"}).item<std::int64_t>(), 5);
  auto made_inside = function([](Tensor x) {
    const StaticHashTable inside(salt_and_pepper(), -1);
    const Tensor found = inside.lookup(x);
    EXPECT_EQ(found.partial_shape().rank(), 1);
    return found;
  });
  EXPECT_THAT(numbers(made_inside(Tensor{"pepper"})), ElementsAre(1));
  EXPECT_THAT(numbers(made_inside(Tensor{"ice"})), ElementsAre(-1));
}

TEST(Lookup, ErrorsSayWhatDoesNotFit) {
  const StaticHashTable table(salt_and_pepper(), -1);
  EXPECT_THAT(message<InvalidArgumentError>([&] {
                table.lookup(Tensor{1, 2});
              }),
              HasSubstr("Dtype of argument `keys` must be string, received: int32"));
  EXPECT_THAT(message<InvalidArgumentError>([&] { StaticHashTable(salt_and_pepper(), "none"); }),
              HasSubstr("values, int64, got string"));
  EXPECT_THROW(StaticHashTable(salt_and_pepper(), Tensor{1, 2}), InvalidArgumentError);
  const KeyValueTensorInitializer unequal{Tensor{"a", "b"}, longs({1})};
  EXPECT_THROW(StaticHashTable(unequal, -1), InvalidArgumentError);
  const KeyValueTensorInitializer twice{Tensor{"a", "a"}, longs({1, 2})};
  EXPECT_THROW(StaticHashTable(twice, -1), FailedPreconditionError);
  EXPECT_THROW(StaticHashTable(KeyValueTensorInitializer{}, -1), InvalidArgumentError);
  EXPECT_THAT(message<InvalidArgumentError>([] { StaticVocabularyTable(salt_and_pepper(), 0); }),
              HasSubstr("`num_oov_buckets` must be > 0; use StaticHashTable"));
  const KeyValueTensorInitializer words{Tensor{"a"}, Tensor{"b"}};
  EXPECT_THAT(message<InvalidArgumentError>([&] { StaticVocabularyTable(words, 3); }),
              HasSubstr("string"));
  const MutableHashTable open(DType::kString, DType::kInt64, -1);
  EXPECT_THROW(open.insert({"a"}, Tensor{1}), InvalidArgumentError);
  auto late = function([](Tensor x) {
    return StaticHashTable({KeyValueTensorInitializer{x, x}}, "").size();
  });
  EXPECT_THROW(late(Tensor{"a"}), FailedPreconditionError);
}

}  // namespace
}  // namespace tandem::lookup
