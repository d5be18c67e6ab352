#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/fs/file_system.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;
namespace stdfs = std::filesystem;

// Range(count) with a function that counts its calls.
Dataset counted(std::int64_t count, const std::shared_ptr<std::atomic<int>>& calls) {
  return from_generator(
      [count, calls] {
        return [count, calls, i = std::int64_t{0}](Element& out) mutable {
          if (i == count) return false;
          ++*calls;
          out = {Tensor(i), Tensor("n" + std::to_string(i++))};
          return true;
        };
      },
      {{DType::kInt64, PartialShape::scalar()}, {DType::kString, PartialShape::scalar()}});
}

// The only shard files below a folder, sorted.
std::vector<std::string> shards(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& entry : stdfs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".shard") all.push_back(entry.path().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

using Stage = std::function<Dataset(const Dataset&)>;

TEST(Snapshot, IsWrittenOnceAndReadInOrder) {
  for (const std::string compression : {"AUTO", "GZIP", "ZLIB"}) {
    for (const std::int64_t count : {0, 1, 3, 4, 11}) {
      const Folder folder;
      const auto calls = std::make_shared<std::atomic<int>>(0);
      const auto make = [&] {
        return counted(count, calls)
            .snapshot(folder.file("snap"), {.compression = compression, .num_shards = 4});
      };
      const std::string all = text(counted(count, calls));
      *calls = 0;
      EXPECT_EQ(text(make()), all);
      EXPECT_EQ(*calls, count);
      EXPECT_EQ(text(make()), all) << count;  // as another process would
      EXPECT_EQ(*calls, count);
      EXPECT_EQ(shards(folder.file("snap")).size(),
                static_cast<std::size_t>(std::min<std::int64_t>(count, 4)));
    }
  }
}

TEST(Snapshot, RepeatReadsIt) {
  const Folder folder;
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset ds = counted(5, calls).snapshot(folder.file("snap")).repeat(3);
  EXPECT_EQ(numbers(ds).size(), 15u);
  EXPECT_EQ(*calls, 5);
}

TEST(Snapshot, AnotherPipelineHasItsOwn) {
  const Folder folder;
  const std::string path = folder.file("snap");
  EXPECT_EQ(numbers(range(5).snapshot(path)), upto(5));
  EXPECT_EQ(numbers(range(6).snapshot(path)), upto(6));
  EXPECT_EQ(text(range(6).batch(2).snapshot(path)), "[0 1] | [2 3] | [4 5]");
  EXPECT_EQ(text(range(6).batch(3).snapshot(path)), "[0 1 2] | [3 4 5]");
  const auto of = [&](std::vector<std::int64_t> rows) {
    return numbers(from_tensor_slices(Tensor::from(rows)).snapshot(path));
  };
  EXPECT_EQ(of({1, 2}), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(of({1, 3}), (std::vector<std::int64_t>{1, 3}));
  // What a function does cannot be seen; its version can.
  const auto mapped = [&](std::int64_t by, const std::string& version) {
    return numbers(
        range(2).map([by](Tensor x) { return plus(x, by); }).snapshot(path, {.version = version}));
  };
  EXPECT_EQ(mapped(10, ""), (std::vector<std::int64_t>{10, 11}));
  EXPECT_EQ(mapped(20, ""), (std::vector<std::int64_t>{10, 11}));
  EXPECT_EQ(mapped(20, "2"), (std::vector<std::int64_t>{20, 21}));
}

TEST(Snapshot, ShardAndReaderFunctions) {
  const Folder folder;
  const SnapshotOptions options{
      .shard_func = [](const Tensor& x) { return x.item<std::int64_t>() % 2 + 5; },
      .reader_func = [](const Dataset& all) { return all.flat_map(from_variant); }};
  const Dataset ds = range(6).snapshot(folder.file("snap"), options);
  EXPECT_EQ(numbers(ds), upto(6));
  EXPECT_EQ(numbers(ds), (std::vector<std::int64_t>{0, 2, 4, 1, 3, 5}));
  const auto files = shards(folder.file("snap"));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_THAT(files[0], HasSubstr("00000005.shard"));
  const Dataset wrong =
      range(3).snapshot(folder.file("other"), {.shard_func = [](const Tensor&) { return -1; }});
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { numbers(wrong); }),
              HasSubstr("in snapshot, element 0"));
}

TEST(Snapshot, BrokenOffOrFailingLeavesNothing) {
  const Folder folder;
  const std::string path = folder.file("snap");
  const Dataset ds = range(100).snapshot(path);
  {
    auto it = ds.iterator();
    numbers(it, 40);
    EXPECT_TRUE(stdfs::exists(path));
  }
  EXPECT_TRUE(stdfs::is_empty(path));
  const Dataset failing = range(5).map([](Tensor x) {
    if (x.item<std::int64_t>() == 3) throw InvalidArgumentError("three");
    return x;
  });
  EXPECT_THROW(numbers(failing.snapshot(path)), InvalidArgumentError);
  EXPECT_EQ(numbers(failing.snapshot(path).ignore_errors()),
            (std::vector<std::int64_t>{0, 1, 2, 4}));
  EXPECT_TRUE(stdfs::is_empty(path));
  // What a crash leaves over is not read.
  fs::file_system_of(path).make_directories(path + "/0123456789abcdef.1.0.tmp");
  EXPECT_EQ(numbers(ds), upto(100));
}

TEST(Snapshot, TheFirstOfTwoWritersWins) {
  const Folder folder;
  const Dataset ds = range(50).snapshot(folder.file("snap"));
  auto a = ds.iterator(), b = ds.iterator();
  numbers(b, 3);
  EXPECT_EQ(numbers(a), upto(50));
  EXPECT_EQ(numbers(b).size(), 47u);
  EXPECT_EQ(numbers(ds), upto(50));
  std::vector<std::thread> threads;
  const Dataset other = range(200).snapshot(folder.file("snap"));
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { right += numbers(other) == upto(200) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
  EXPECT_EQ(std::distance(stdfs::directory_iterator(folder.file("snap")), {}), 2);
}

TEST(Snapshot, DamageIsFound) {
  const Folder folder;
  const Dataset ds = range(8).snapshot(folder.file("snap"), {.num_shards = 2});
  numbers(ds);
  const auto files = shards(folder.file("snap"));
  const std::string bytes = fs::read_file(files[1]);
  std::string changed = bytes;
  changed[bytes.size() / 2] ^= 1;
  fs::write_file(files[1], changed);
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { numbers(ds); }), HasSubstr(files[1]));
  fs::write_file(files[1], bytes.substr(0, bytes.size() / 4));  // whole elements are missing
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { numbers(ds); }), HasSubstr("4 were written"));
  fs::write_file(files[1], bytes);
  EXPECT_EQ(numbers(ds), upto(8));
  const std::string metadata = stdfs::path(files[0]).parent_path().string() + "/snapshot.metadata";
  fs::write_file(metadata, fs::read_file(metadata).substr(0, 30));
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { numbers(ds); }), HasSubstr(metadata));
  stdfs::remove(files[0]);
}

TEST(Snapshot, IterationsAreSavedAndRestored) {
  const Folder folder;
  const std::string path = folder.file("snap");
  const auto make = [&] { return range(10).snapshot(path, {.num_shards = 3}); };
  auto writing = make().iterator();
  numbers(writing, 4);
  const std::string state = writing.save();
  auto restored = make().iterator();
  restored.restore(state);
  EXPECT_EQ(numbers(restored), numbers(writing));
  EXPECT_EQ(numbers(make()), upto(10));
  expect_resumes([&] { return make().shuffle(4).repeat(2); });
}

TEST(Snapshot, IterationsOfAReaderFunctionAreSavedAndRestored) {
  const Folder folder;
  const Stage readers[] = {
      [](const Dataset& all) { return all.shuffle(8).flat_map(from_variant); },
      [](const Dataset& all) {
        return all.shuffle(8).interleave(from_variant, {.cycle_length = 2}).shuffle(3);
      },
      [](const Dataset& all) { return all.flat_map(from_variant).shuffle(3, {.seed = 1}); },
  };
  for (const Stage& reader : readers) {
    const auto make = [&] {
      return range(7).snapshot(folder.file("snap"), {.num_shards = 3, .reader_func = reader});
    };
    numbers(make());
    expect_resumes([&] { return make().repeat(3); });
    expect_resumes([&] { return make().concatenate(range(2)).repeat(3); });
  }
}

TEST(Snapshot, SaysWhereItCannotLie) {
  const Folder folder;
  const std::string file = folder.file("file");
  fs::write_file(file, "x");
  EXPECT_THAT(
      message_of_thrown<FailedPreconditionError>([&] { range(3).snapshot(file).iterator(); }),
      HasSubstr("in snapshot, which keeps its files in " + file));
}

TEST(Snapshot, RefusesWrongOptions) {
  EXPECT_THROW(range(3).snapshot(""), InvalidArgumentError);
  EXPECT_THROW(range(3).snapshot("x", {.compression = "SNAPPY"}), InvalidArgumentError);
  EXPECT_THROW(range(3).snapshot("x", {.num_shards = 0}), InvalidArgumentError);
  EXPECT_THAT(message_of_thrown<Error>([] { numbers(range(3).snapshot("/proc/nowhere/x")); }),
              HasSubstr("/proc/nowhere"));
}

}  // namespace
}  // namespace tandem::data
