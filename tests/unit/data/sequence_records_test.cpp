// Records of SequenceExamples through map functions.

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/file_datasets.h"
#include "tandem/io/example.h"
#include "tandem/ops/sequence_example_ops.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMany = 24;

// Sequence i has i % 3 steps: the numbers from i on.
std::string sequence(std::int64_t i) {
  io::SequenceExample s;
  s.context["id"] = std::vector<std::int64_t>{i};
  auto& steps = s.feature_lists["n"];
  for (std::int64_t k = 0; k < i % 3; ++k) steps.emplace_back(std::vector<std::int64_t>{i + k});
  return s.serialize();
}

TFRecordDataset records(const Folder& folder, const std::string& last = {}) {
  TFRecordWriter writer(folder.file("sequences"));
  for (std::int64_t i = 0; i < kMany; ++i) writer.write(sequence(i));
  if (!last.empty()) writer.write(last);
  writer.close();
  return TFRecordDataset(folder.file("sequences"));
}

std::vector<Tensor> parsed(const Tensor& serialized) {
  const auto [context, lists, lengths] = io::parse_sequence_example(
      serialized, {{"id", io::FixedLenFeature{{}, DType::kInt64}}},
      {{"n", io::FixedLenSequenceFeature{{}, DType::kInt64}}, {"r", io::RaggedFeature{}}});
  return {context["id"], lists["n"], lengths.at("n"), lists.ragged.at("r").outer_splits};
}

std::vector<Tensor> parsed_single(const Tensor& serialized) {
  const auto found = io::parse_single_sequence_example(
      serialized, {{"id", io::FixedLenFeature{{}, DType::kInt64}}},
      {{"n", io::FixedLenSequenceFeature{{}, DType::kInt64}}});
  return {found.context["id"], found.feature_lists["n"]};
}

TEST(SequenceRecords, AreParsedByBatch) {
  const Folder folder;
  const Dataset batches = records(folder).batch(3, {.drop_remainder = true});
  const Dataset traced = batches.map(parsed, {.traced = true});
  EXPECT_EQ(to_string(traced.element_spec()), "(int64[3], int64[3,?], int64[3], int32[4])");
  EXPECT_EQ(text(traced.take(2)),
            "[0 1 2]; [[0 0]  [1 0]  [2 3]]; [0 1 2]; [0 0 0 0] | "
            "[3 4 5]; [[0 0]  [4 0]  [5 6]]; [0 1 2]; [0 0 0 0]");
  EXPECT_EQ(text(traced), text(batches.map(parsed, {.traced = false})));
  EXPECT_EQ(text(traced), text(batches.map(parsed, {.num_parallel_calls = 4, .traced = true})));
}

TEST(SequenceRecords, AreParsedOneByOneAndPadded) {
  const Folder folder;
  const Dataset traced = records(folder).map(parsed_single, {.traced = true});
  EXPECT_EQ(to_string(traced.element_spec()), "(int64[], int64[?])");
  EXPECT_EQ(text(traced.take(4)), "0; [] | 1; [1] | 2; [2 3] | 3; []");
  EXPECT_EQ(text(traced.padded_batch(3).take(1)), "[0 1 2]; [[0 0]  [1 0]  [2 3]]");
  EXPECT_EQ(text(traced), text(records(folder).map(parsed_single, {.traced = false})));
}

TEST(SequenceRecords, BadOnesAreErrorsThatNameTheFeature) {
  const Folder folder;
  io::SequenceExample other;
  other.context["id"] = std::vector<std::int64_t>{1};
  other.feature_lists["n"] = {std::vector<float>{1}};
  const Dataset dataset = records(folder, other.serialize());
  for (const bool traced : {true, false}) {
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>(
                    [&] { text(dataset.batch(5).map(parsed, {.traced = traced})); }),
                HasSubstr("Feature list: n, Index: 4.  Data types don't match. Expected type: "
                          "int64, Actual type: float"));
  }
}

}  // namespace
}  // namespace tandem::data
