// Hash tables, through their ops.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/folder.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

Tensor strings(std::initializer_list<std::string> values) { return tensor<std::string>(values); }
Tensor longs(std::initializer_list<std::int64_t> values) { return tensor<std::int64_t>(values); }

Tensor table(const char* op, DType key, DType value) {
  return raw_op(op, {}, {{"key_dtype", key}, {"value_dtype", value}})[0];
}
std::vector<std::int64_t> find(const Tensor& t, const Tensor& keys, std::int64_t missing = -1) {
  return raw_op("LookupTableFindV2", {t, keys, scalar(missing)})[0].to_vector<std::int64_t>();
}
std::int64_t size(const Tensor& t) {
  return raw_op("LookupTableSizeV2", {t})[0].item<std::int64_t>();
}

TEST(LookupOps, AFixedTableIsFilledOnce) {
  const Tensor t = table("AnonymousHashTable", string, int64);
  EXPECT_THROW(find(t, strings({"a"})), FailedPreconditionError);
  raw_op("InitializeTableV2", {t, strings({"a", "b"}), longs({1, 2})});
  EXPECT_THAT(find(t, strings({"b", "c", "a"})), ElementsAre(2, -1, 1));
  EXPECT_EQ(size(t), 2);
  raw_op("InitializeTableV2", {t, strings({"b", "a"}), longs({2, 1})});
  EXPECT_THROW(raw_op("InitializeTableV2", {t, strings({"a"}), longs({7})}),
               FailedPreconditionError);
  EXPECT_THAT(find(t, strings({"a", "b"})), ElementsAre(1, 2)) << "a failure changes nothing";
  raw_op("InitializeTableV2", {t, strings({"x", "a"}), longs({7, 8})});
  EXPECT_THAT(find(t, strings({"a", "b", "x"})), ElementsAre(1, 2, -1)) << "as many: not compared";
  EXPECT_THROW(raw_op("InitializeTableV2", {t, strings({"a", "b", "b"}), longs({1, 2, 2})}),
               FailedPreconditionError);
  EXPECT_THROW(raw_op("LookupTableInsertV2", {t, strings({"x"}), longs({1})}), UnimplementedError);
  EXPECT_THROW(raw_op("LookupTableRemoveV2", {t, strings({"x"})}), UnimplementedError);
}

TEST(LookupOps, AFixedTableIsAlsoFilledByImport) {
  const Tensor t = table("AnonymousHashTable", string, int64);
  raw_op("LookupTableImportV2", {t, strings({"a", "b"}), longs({1, 2})});
  EXPECT_THAT(find(t, strings({"b", "c"})), ElementsAre(2, -1));
  EXPECT_THROW(raw_op("LookupTableImportV2", {t, strings({"a"}), longs({7})}),
               FailedPreconditionError);
}

TEST(LookupOps, AFixedTableIsNotEmpty) {
  const Tensor t = table("AnonymousHashTable", string, int64);
  EXPECT_THROW(raw_op("InitializeTableV2", {t, strings({}), longs({})}), InvalidArgumentError);
}

TEST(LookupOps, DefaultsByKey) {
  const Tensor keys = longs({1, 5, 6}), defaults = longs({7, 8, 9});
  const auto find_with = [&](const Tensor& t) {
    return raw_op("LookupTableFindV2", {t, keys, defaults})[0].to_vector<std::int64_t>();
  };
  const Tensor fixed = table("AnonymousHashTable", int64, int64);
  raw_op("InitializeTableV2", {fixed, longs({1}), longs({10})});
  EXPECT_THAT(find_with(fixed), ElementsAre(10, 7, 7)) << "the first for all";
  const Tensor changing = table("AnonymousMutableHashTable", int64, int64);
  raw_op("LookupTableInsertV2", {changing, longs({1}), longs({10})});
  EXPECT_THAT(find_with(changing), ElementsAre(10, 8, 9));
}

TEST(LookupOps, OneKeyCannotHaveTwoValues) {
  const Tensor t = table("AnonymousHashTable", int64, int64);
  EXPECT_THROW(raw_op("InitializeTableV2", {t, longs({1, 1}), longs({2, 3})}),
               FailedPreconditionError);
  EXPECT_EQ(size(t), 0);
  raw_op("InitializeTableV2", {t, longs({1, 1}), longs({2, 2})});
  EXPECT_EQ(size(t), 1);
}

TEST(LookupOps, AMutableTableChanges) {
  const Tensor t = table("AnonymousMutableHashTable", int64, int64);
  raw_op("LookupTableInsertV2", {t, longs({1, 2, 3}), longs({10, 20, 30})});
  raw_op("LookupTableInsertV2", {t, longs({2}), longs({21})});
  raw_op("LookupTableRemoveV2", {t, longs({3, 9})});
  EXPECT_THAT(find(t, longs({1, 2, 3})), ElementsAre(10, 21, -1));
  const auto all = raw_op("LookupTableExportV2", {t}, {{"Tkeys", int64}, {"Tvalues", int64}});
  EXPECT_THAT(all[0].to_vector<std::int64_t>(), UnorderedElementsAre(1, 2));
  EXPECT_THAT(all[1].to_vector<std::int64_t>(), UnorderedElementsAre(10, 21));
  raw_op("LookupTableImportV2", {t, longs({5}), longs({50})});
  EXPECT_THAT(find(t, longs({1, 5})), ElementsAre(-1, 50));
}

TEST(LookupOps, KeysKeepTheirShape) {
  const Tensor t = table("AnonymousMutableHashTable", int64, float32);
  raw_op("LookupTableInsertV2", {t, longs({1, 2}), Tensor{0.5, 1.5}});
  const Tensor keys = Tensor::from(std::vector<std::int64_t>{1, 2, 3, 1}, {2, 2});
  const Tensor found = raw_op("LookupTableFindV2", {t, keys, Tensor(-1.0)})[0];
  EXPECT_EQ(found.shape(), Shape({2, 2}));
  EXPECT_THAT(found.to_vector<float>(), ElementsAre(0.5, 1.5, -1, 0.5));
  const Tensor each = raw_op("LookupTableFindV2", {t, longs({7, 8}), Tensor{7.0, 8.0}})[0];
  EXPECT_THAT(each.to_vector<float>(), ElementsAre(7, 8)) << "a default for each key";
}

TEST(LookupOps, ValuesMayBeVectors) {
  const Tensor t = raw_op(
      "AnonymousMutableHashTableOfTensors", {},
      {{"key_dtype", string}, {"value_dtype", float32}, {"value_shape", PartialShape({2})}})[0];
  raw_op("LookupTableInsertV2", {t, strings({"a"}), Tensor{{1.0, 2.0}}});
  const Tensor found = raw_op("LookupTableFindV2", {t, strings({"b", "a"}), Tensor{-1.0, -2.0}})[0];
  EXPECT_EQ(found.shape(), Shape({2, 2}));
  EXPECT_THAT(found.to_vector<float>(), ElementsAre(-1, -2, 1, 2));
  EXPECT_THROW(raw_op("LookupTableInsertV2", {t, strings({"a"}), Tensor{1.0}}),
               InvalidArgumentError);
}

TEST(LookupOps, DenseTablesRefuseTheirMarks) {
  const Tensor t = raw_op("AnonymousMutableDenseHashTable", {longs({0, 0}), longs({-1, -1})},
                          {{"key_dtype", int64}, {"value_dtype", int64}})[0];
  const Tensor keys = Tensor::from(std::vector<std::int64_t>{1, 2, 3, 4}, {2, 2});
  raw_op("LookupTableInsertV2", {t, keys, longs({12, 34})});
  EXPECT_THAT(find(t, keys), ElementsAre(12, 34));
  const Tensor empty = Tensor::from(std::vector<std::int64_t>{0, 0}, {1, 2});
  EXPECT_THROW(find(t, empty), InvalidArgumentError);
  EXPECT_THROW(raw_op("LookupTableInsertV2", {t, empty, longs({1})}), InvalidArgumentError);
  EXPECT_THROW(find(t, longs({1, 2, 3})), InvalidArgumentError) << "keys are pairs";
  EXPECT_THROW(raw_op("AnonymousMutableDenseHashTable", {longs({1}), longs({1})},
                      {{"key_dtype", int64}, {"value_dtype", int64}}),
               InvalidArgumentError);
}

// Dense tables are exported bucket by bucket, and TensorFlow reads them back so. (What it gave.)
TEST(LookupOps, DenseTablesExportBuckets) {
  const auto dense = [] {
    return raw_op("AnonymousMutableDenseHashTable",
                  {scalar(std::int64_t{0}), scalar(std::int64_t{-1})},
                  {{"key_dtype", int64}, {"value_dtype", int64}, {"initial_num_buckets", 8}})[0];
  };
  const auto exported = [](const Tensor& t) {
    return raw_op("LookupTableExportV2", {t}, {{"Tkeys", int64}, {"Tvalues", int64}});
  };
  const Tensor t = dense();
  raw_op("LookupTableInsertV2", {t, longs({1, 9, 17, 2, 25}), longs({1, 2, 3, 4, 5})});
  const auto all = exported(t);
  EXPECT_EQ(all[0].shape(), Shape({8, 1}));
  EXPECT_EQ(all[1].shape(), Shape({8, 1}));
  EXPECT_THAT(all[0].to_vector<std::int64_t>(), ElementsAre(0, 1, 9, 2, 17, 0, 0, 25));
  EXPECT_THAT(all[1].to_vector<std::int64_t>(), ElementsAre(0, 1, 2, 4, 3, 0, 0, 5));
  raw_op("LookupTableRemoveV2", {t, longs({9})});
  const auto fewer = exported(t);
  EXPECT_THAT(fewer[0].to_vector<std::int64_t>(), ElementsAre(0, 1, -1, 2, 17, 0, 0, 25));
  const Tensor copy = dense();
  raw_op("LookupTableInsertV2", {copy, longs({3}), longs({30})});
  raw_op("LookupTableImportV2", {copy, fewer[0], fewer[1]});
  EXPECT_EQ(size(copy), 4);
  EXPECT_THAT(find(copy, longs({1, 9, 17, 2, 25, 3})), ElementsAre(1, -1, 3, 4, 5, -1));
  raw_op("LookupTableRemoveV2", {copy, longs({17, 2})});
  EXPECT_THAT(exported(copy)[0].to_vector<std::int64_t>(), ElementsAre(0, 1, -1, -1, -1, 0, 0, 25));
  raw_op("LookupTableImportV2", {copy, longs({5, 6, 0}), longs({50, 60, 0})});
  EXPECT_THAT(find(copy, longs({1, 5, 6})), ElementsAre(-1, 50, 60)) << "rows do as well";
}

TEST(LookupOps, DenseTablesGrow) {
  const Tensor t =
      raw_op("AnonymousMutableDenseHashTable", {strings({"", ""}), strings({"-", ""})},
             {{"key_dtype", string}, {"value_dtype", int64}, {"initial_num_buckets", 4}})[0];
  std::vector<std::string> names;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < 50; ++i) {
    names.insert(names.end(), {std::to_string(i), "x"});
    numbers.push_back(i);
  }
  const Tensor keys = Tensor::from(names, {50, 2}), values = Tensor::from(numbers, {50});
  raw_op("LookupTableInsertV2", {t, keys, values});
  const auto all = raw_op("LookupTableExportV2", {t}, {{"Tkeys", string}, {"Tvalues", int64}});
  EXPECT_EQ(all[0].shape(), Shape({64, 2})) << "at most eight tenths are used";
  const Tensor copy =
      raw_op("AnonymousMutableDenseHashTable", {strings({"", ""}), strings({"-", ""})},
             {{"key_dtype", string}, {"value_dtype", int64}})[0];
  raw_op("LookupTableImportV2", {copy, all[0], all[1]});
  EXPECT_EQ(find(copy, keys), numbers);
}

// Memory is for what is in a table, however many buckets a graph announces.
TEST(LookupOps, DenseTablesMayAnnounceManyBuckets) {
  const Tensor t =
      raw_op("AnonymousMutableDenseHashTable", {scalar(std::int64_t{0}), scalar(std::int64_t{-1})},
             {{"key_dtype", int64},
              {"value_dtype", int64},
              {"initial_num_buckets", std::int64_t{1} << 50}})[0];
  raw_op("LookupTableInsertV2", {t, longs({7, 8}), longs({70, 80})});
  EXPECT_THAT(find(t, longs({7, 8, 9})), ElementsAre(70, 80, -1));
  EXPECT_THROW(raw_op("LookupTableExportV2", {t}, {{"Tkeys", int64}, {"Tvalues", int64}}),
               ResourceExhaustedError);
}

TEST(LookupOps, NamesAreShared) {
  const AttrMap attrs = {{"key_dtype", int64}, {"value_dtype", int64}, {"shared_name", "numbers"}};
  const Tensor one = raw_op("MutableHashTableV2", {}, attrs)[0];
  raw_op("LookupTableInsertV2", {one, longs({1}), longs({5})});
  EXPECT_THAT(find(raw_op("MutableHashTableV2", {}, attrs)[0], longs({1})), ElementsAre(5));
  EXPECT_THROW(raw_op("MutableHashTableV2", {},
                      {{"key_dtype", string}, {"value_dtype", int64}, {"shared_name", "numbers"}}),
               InvalidArgumentError);
}

TEST(LookupOps, WrongTypesAreRefused) {
  const Tensor t = table("AnonymousMutableHashTable", int64, int64);
  EXPECT_THROW(raw_op("LookupTableFindV2", {t, strings({"a"}), scalar(std::int64_t{0})}),
               InvalidArgumentError);
  EXPECT_THROW(raw_op("LookupTableFindV2", {t, longs({1}), Tensor(1.0)}), InvalidArgumentError);
  EXPECT_THROW(raw_op("LookupTableInsertV2", {t, longs({1, 2}), longs({1})}), InvalidArgumentError);
  EXPECT_THROW(raw_op("LookupTableFindV2", {t, longs({1}), longs({1, 2})}), InvalidArgumentError);
}

TEST(LookupOps, ReadATextFile) {
  const Folder folder;
  const std::string path = folder.file("words.txt");
  std::ofstream(path) << "head\nsalt 3\npepper 4\n";
  const auto fill = [&](const Tensor& t, int key, int value, AttrMap attrs = {}) {
    attrs.set("key_index", key);
    attrs.set("value_index", value);
    raw_op("InitializeTableFromTextFileV2", {t, Tensor(path)}, attrs);
  };
  const Tensor lines = table("AnonymousHashTable", string, int64);
  fill(lines, -2, -1);
  EXPECT_THAT(find(lines, strings({"head", "pepper 4"})), ElementsAre(0, 2));
  const Tensor columns = table("AnonymousHashTable", string, int64);
  EXPECT_THROW(fill(columns, 0, 1, {{"delimiter", " "}}), InvalidArgumentError)
      << "the first line has one column";
  std::ofstream(path) << "salt 3\npepper 4\n";
  fill(columns, 0, 1, {{"delimiter", " "}, {"offset", 1}});
  EXPECT_THAT(find(columns, strings({"salt", "pepper", "head"})), ElementsAre(3, 4, -1));
  std::ofstream(path) << "salt, 3 \npepper,+4\n";
  const Tensor spaced = table("AnonymousHashTable", string, int64);
  fill(spaced, 0, 1, {{"delimiter", ","}});
  EXPECT_THAT(find(spaced, strings({"salt", "pepper"})), ElementsAre(3, 4));
  std::ofstream(path) << "";
  EXPECT_THROW(fill(table("AnonymousHashTable", string, int64), -2, -1), OutOfRangeError);
  std::ofstream(path) << "salt 3\npepper 4\n";
  const Tensor numbers = table("AnonymousHashTable", string, int64);
  fill(numbers, 0, -1, {{"delimiter", " "}, {"offset", 5}});
  EXPECT_THAT(find(numbers, strings({"salt", "pepper"})), ElementsAre(5, 6));
  EXPECT_THROW(fill(table("AnonymousHashTable", string, int64), -2, -1, {{"vocab_size", 4}}),
               InvalidArgumentError);
  std::ofstream(path) << "salt\n\npepper\n";
  EXPECT_THROW(fill(table("AnonymousHashTable", string, int64), -2, -1), InvalidArgumentError)
      << "an empty line";
  std::filesystem::remove(path);
  EXPECT_THROW(fill(table("AnonymousHashTable", string, int64), -2, -1), NotFoundError);
}

}  // namespace
}  // namespace tandem
