#include "tandem/data/sharding.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/file_datasets.h"
#include "tandem/fs/file_system.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

// Five files of three lines: "00", "01", "02", "10", …
class AutoShard : public ::testing::Test {
 protected:
  AutoShard() {
    for (int k = 0; k < 5; ++k) {
      const std::string digit = std::to_string(k);
      files_.push_back(folder_.file("f" + digit + ".txt"));
      fs::write_file(files_.back(), digit + "0\n" + digit + "1\n" + digit + "2\n");
    }
  }
  Dataset names() const { return from_tensor_slices(Tensor(Array::vector(files_))); }
  static Dataset read(const Tensor& name) { return TextLineDataset(name.item<std::string>()); }
  static Dataset with(const Dataset& ds, AutoShardPolicy policy) {
    return ds.with_options({.auto_shard_policy = policy});
  }
  // The lines that both of two workers get: what tf.data gave.
  static void expect(const Dataset& ds, const std::string& first, const std::string& second) {
    EXPECT_EQ(lines(auto_shard(ds, 2, 0)), first);
    EXPECT_EQ(lines(auto_shard(ds, 2, 1)), second);
  }
  static std::string lines(const Dataset& ds) {
    std::string all;
    for (const Element& element : ds) {
      if (!all.empty()) all += " ";
      for (const std::string& line : element[0].to_vector<std::string>()) {
        all += (all.empty() || all.back() == ' ' ? "" : ",") + line;
      }
    }
    return all;
  }

  const Folder folder_;
  std::vector<std::string> files_;
};

constexpr const char* kEven = "00 01 02 20 21 22 40 41 42";
constexpr const char* kOdd = "10 11 12 30 31 32";

TEST_F(AutoShard, ByFiles) {
  expect(TextLineDataset(files_), kEven, kOdd);
  expect(with(TextLineDataset(files_), AutoShardPolicy::kFile), kEven, kOdd);
  expect(TextLineDataset(names()), kEven, kOdd);
  expect(names().interleave(read, {.cycle_length = 2}), "00 20 01 21 02 22 40 41 42",
         "10 30 11 31 12 32");
  expect(names().interleave(read, {.cycle_length = 1, .num_parallel_calls = 2}), kEven, kOdd);
  expect(names().flat_map(read).prefetch(1), kEven, kOdd);
  expect(TextLineDataset(files_).batch(2).prefetch(1), "00,01 02,20 21,22 40,41 42",
         "10,11 12,30 31,32");
  expect(TextLineDataset(files_).concatenate(TextLineDataset({files_[0], files_[1]})),
         std::string(kEven) + " 00 01 02", std::string(kOdd) + " 10 11 12");
  const auto numbered = range(5).interleave(
      [this](const Tensor& i) {
        return TextLineDataset(files_[static_cast<std::size_t>(i.item<std::int64_t>())]);
      },
      {.cycle_length = 1});
  expect(numbered, kEven, kOdd);
  EXPECT_EQ(lines(auto_shard(TextLineDataset(files_, {.num_parallel_reads = 2}), 2, 1)),
            "10 30 11 31 12 32");
}

TEST_F(AutoShard, AShuffleOfNamesShufflesTheWorkersOwn) {
  const Dataset ds = list_files(folder_.file("*.txt")).interleave(read, {.cycle_length = 1});
  std::vector<std::string> all;
  for (const std::int64_t worker : {0, 1}) {
    for (const Element& element : auto_shard(ds, 2, worker)) {
      all.push_back(element[0].item<std::string>());
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), 15u);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

TEST_F(AutoShard, ByData) {
  expect(with(TextLineDataset(files_), AutoShardPolicy::kData), "00 02 11 20 22 31 40 42",
         "01 10 12 21 30 32 41");
  expect(with(TextLineDataset(files_).batch(4), AutoShardPolicy::kData), "00,01,02,10 22,30,31,32",
         "11,12,20,21 40,41,42");
  expect(zip({TextLineDataset(files_), range(100)}), "00 02 11 20 22 31 40 42",
         "01 10 12 21 30 32 41");
  EXPECT_EQ(text(auto_shard(range(10).batch(3), 2, 1)), "[3 4 5] | [9]");
  EXPECT_EQ(numbers(auto_shard(range(10), 3, 1)), (Numbers{1, 4, 7}));
}

TEST_F(AutoShard, OffAndErrors) {
  const Dataset off = with(TextLineDataset(files_), AutoShardPolicy::kOff);
  EXPECT_EQ(lines(auto_shard(off, 2, 1)), lines(off));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>(
                  [&] { auto_shard(with(range(4).batch(2), AutoShardPolicy::kFile), 2, 0); }),
              HasSubstr("Found an unshardable source dataset: Range"));
  const Dataset few = auto_shard(TextLineDataset(files_[0]), 2, 0);
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { lines(few); }),
              HasSubstr("the dataset only has 1 file(s), which is not enough for the required 2"));
  EXPECT_THROW(auto_shard(range(3), 0, 0), InvalidArgumentError);
  EXPECT_THROW(auto_shard(range(3), 2, 2), InvalidArgumentError);
  EXPECT_THROW(auto_shard(range(3), 2, -1), InvalidArgumentError);
}

TEST_F(AutoShard, IsSavedAndRestored) {
  expect_resumes([&] { return auto_shard(TextLineDataset(files_), 2, 1); });
  expect_resumes([&] {
    return auto_shard(names().shuffle(3, {.seed = 1}).interleave(read, {.cycle_length = 2}), 2, 0);
  });
}

TEST(DistributeBatch, TakesBatchesApartAsTfDataDoes) {
  const auto parts = [](std::int64_t count, std::int64_t batch, std::int64_t replicas) {
    std::string all;
    for (const Element& e : distribute_batch(range(count).batch(batch), replicas)) {
      all += e[0].to_string();
    }
    return all;
  };
  EXPECT_EQ(parts(8, 4, 3), "[0 1][2 3][][4 5][6 7][]");
  EXPECT_EQ(parts(10, 4, 2), "[0 1][2 3][4 5][6 7][8][9]");
  EXPECT_EQ(parts(10, 4, 4), "[0][1][2][3][4][5][6][7][8][9][][]");
  EXPECT_EQ(parts(7, 7, 3), "[0 1 2][3 4 5][6]");
  EXPECT_EQ(parts(5, 8, 3), "[0 1][2 3][4]");
  EXPECT_EQ(parts(3, 1, 2), "[0][][1][][2][]");
  const Dataset even = distribute_batch(range(10).batch(4, {.drop_remainder = true}), 2);
  EXPECT_EQ(to_string(even.element_spec()), "(int64[2])");
  EXPECT_EQ(even.cardinality(), 4);
  expect_resumes([] { return distribute_batch(range(10).batch(4), 3); });
  EXPECT_THROW(text(distribute_batch(range(3), 2)), InvalidArgumentError);
  EXPECT_THROW(distribute_batch(range(3), 0), InvalidArgumentError);
}

TEST(DistributeBatch, SizesForWorkers) {
  EXPECT_EQ(batch_sizes_for_worker(7, 2, 2, 0), (Numbers{2, 2, 2, 1}));
  EXPECT_EQ(batch_sizes_for_worker(7, 2, 2, 1), (Numbers{2, 1, 2, 2}));
  EXPECT_EQ(batch_sizes_for_worker(10, 3, 2, 2), (Numbers{1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(batch_sizes_for_worker(3, 4, 1, 1), (Numbers{1, 1, 0, 1}));
  EXPECT_THROW(batch_sizes_for_worker(7, 2, 2, 2), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::data
