#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/idx.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::int64_t value(const Tensor& x) { return x.item<std::int64_t>(); }

TEST(FileCache, GivesItsElementsToLaterIterations) {
  const Folder folder;
  const std::string path = folder.file("cache");
  std::atomic<int> made{0};
  const auto ds = range(5)
                      .map([&](Tensor x) {
                        ++made;
                        return std::pair(x, Tensor("n" + std::to_string(value(x))));
                      })
                      .cache(path);
  const std::string all = text(ds);
  EXPECT_EQ(made, 5);
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(text(ds), all);
  EXPECT_EQ(text(range(0).map([](Tensor x) { return x; }).cache(path)), all);
  EXPECT_EQ(made, 5);
}

TEST(FileCache, KeepsNothingOfABrokenOffIteration) {
  const Folder folder;
  const auto ds = range(5).cache(folder.file("cache"));
  {
    auto it = ds.iterator();
    numbers(it, 3);
  }
  EXPECT_EQ(folder.files(), 0u);
  EXPECT_EQ(numbers(ds), upto(5));
  EXPECT_EQ(folder.files(), 1u);
  const auto failing = range(5)
                           .map([](Tensor x) {
                             if (value(x) == 2) throw OutOfRangeError("two");
                             return x;
                           })
                           .cache(folder.file("failing"))
                           .ignore_errors();
  EXPECT_EQ(numbers(failing), (std::vector<std::int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(folder.files(), 1u);
}

TEST(FileCache, LetsTwoIterationsWrite) {
  const Folder folder;
  const auto ds = range(100).cache(folder.file("cache"));
  auto a = ds.iterator(), b = ds.iterator();
  EXPECT_EQ(numbers(a, 50), upto(50));
  EXPECT_EQ(numbers(b), upto(100));
  EXPECT_EQ(numbers(a).size(), 50u);
  EXPECT_EQ(folder.files(), 1u);
  std::vector<std::thread> threads;
  const auto other = range(200).cache(folder.file("other"));
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(numbers(other), upto(200)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers(other), upto(200));
  EXPECT_EQ(folder.files(), 2u);
}

TEST(FileCache, ReportsDamage) {
  const Folder folder;
  const std::string path = folder.file("cache");
  const auto ds = range(3).cache(path);
  numbers(ds);
  const std::string good = fs::read_file(path);
  constexpr std::size_t kBegin = 8;  // by which a cache is known
  for (std::size_t size = 0; size < good.size(); size += 5) {
    fs::write_file(path, good.substr(0, size));
    if (size < kBegin) {
      EXPECT_THROW(numbers(ds), InvalidArgumentError) << size;
    } else {
      EXPECT_THROW(numbers(ds), DataLossError) << size;
    }
    EXPECT_LE(numbers(ds.ignore_errors()).size(), 3u);  // comes to an end
  }
  for (std::size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    fs::write_file(path, bad);
    const std::string message = i < kBegin
                                    ? message_of_thrown<InvalidArgumentError>([&] { numbers(ds); })
                                    : message_of_thrown<DataLossError>([&] { numbers(ds); });
    EXPECT_THAT(message, HasSubstr(path)) << i;
  }
  fs::write_file(path, good);
  EXPECT_EQ(numbers(ds), upto(3));
}

TEST(FileCache, ReportsWhereItCannotWrite) {
  const Folder folder;
  const std::string file = folder.file("file");
  fs::write_file(file, "x");
  EXPECT_THAT(message_of_thrown<FailedPreconditionError>(
                  [&] { range(3).cache(file + "/cache").iterator(); }),
              AllOf(HasSubstr(file + "/cache"), HasSubstr("in cache")));
  const std::string long_name = folder.file(std::string(250, 'x'));  // too long while unfinished
  auto it = range(3).cache(long_name).iterator();
  EXPECT_THAT(message_of_thrown<Error>([&] { it.next(); }),
              AllOf(HasSubstr("in cache, element 0, which it writes to " + long_name),
                    HasSubstr("the name of another file")));
  EXPECT_EQ(numbers(it).size(), 3u);  // it goes on without a file
  EXPECT_THAT(
      message_of_thrown<FailedPreconditionError>(
          [&] { numbers(range(3).cache(folder.file("."))); }),
      AllOf(HasSubstr("is a directory, and a cache is one file"), Not(HasSubstr("damaged"))));
}

TEST(FileCache, MakesTheFoldersItLiesIn) {
  const Folder folder;
  const std::string path = folder.file("a/b/cache");
  EXPECT_EQ(numbers(range(3).cache(path)), upto(3));
  EXPECT_TRUE(fs::exists(path));
}

TEST(FileCache, IsNotReadByAnotherPipeline) {
  const Folder folder;
  const std::string path = folder.file("cache");
  EXPECT_EQ(text(range(5).batch(2).cache(path)), "[0 1] | [2 3] | [4]");
  const auto refuses = [&](const Dataset& ds, const std::string& spec) {
    auto it = ds.cache(path).iterator();
    EXPECT_THAT(
        message_of_thrown<InvalidArgumentError>([&] { it.next(); }),
        AllOf(HasSubstr(path + " holds elements (int64[2]), but this dataset's are " + spec),
              HasSubstr("another file name, or remove the file")));
    Element none;
    EXPECT_FALSE(it.next(none));
  };
  refuses(from_tensor_slices(Tensor{1.0f, 2.0f}), "(float[])");
  refuses(range(5), "(int64[])");
  refuses(zip({range(5).batch(2), range(5)}), "(int64[?], int64[])");
  refuses(range(5).batch(3, {.drop_remainder = true}), "(int64[3])");
  refuses(range(20).map([](Tensor x) { return std::pair(x, x); }).batch(2), "(int64[?], int64[?])");
  EXPECT_EQ(text(range(9).batch(7).cache(path)), "[0 1] | [2 3] | [4]");
}

TEST(FileCache, ResumesInTheMiddle) {
  const Folder folder;
  const auto ds = range(6).cache(folder.file("cache"));
  for (int pass = 0; pass < 2; ++pass) {  // writing, then reading
    auto it = ds.iterator();
    EXPECT_EQ(numbers(it, 2), upto(2));
    const std::string saved = it.save();
    it = range(0).iterator();
    auto restored = ds.iterator();
    restored.restore(saved);
    EXPECT_EQ(numbers(restored), (std::vector<std::int64_t>{2, 3, 4, 5}));
    EXPECT_EQ(folder.files(), static_cast<std::size_t>(pass));
    EXPECT_EQ(numbers(ds), upto(6));
  }
}

std::string idx(const std::string& header, const std::string& values) {
  return std::string(2, '\0') + header + values;
}

TEST(Idx, ReadsArrays) {
  const Folder folder;
  const std::string path = folder.file("a");
  const std::string bytes =
      idx(std::string("\x08\x02\0\0\0\x02\0\0\0\x03", 10), "\x01\x02\x03\x04\x05\xff");
  for (const std::string& content : {bytes, fs::gzip(bytes)}) {
    fs::write_file(path, content);
    const Tensor t = read_idx(path);
    EXPECT_EQ(t.dtype(), DType::kUint8);
    EXPECT_EQ(t.to_string(), "[[  1   2   3]\n [  4   5 255]]");
  }
  fs::write_file(folder.file("b"), idx(std::string("\x0c\x01\0\0\0\x02", 6),
                                       std::string("\0\0\1\2\xff\xff\xff\xfe", 8)));
  const auto ds = from_idx({path, folder.file("b")});
  EXPECT_EQ(text(ds), "[1 2 3]; 258 | [  4   5 255]; -2");
  fs::write_file(folder.file("c"),
                 idx(std::string("\x0d\x01\0\0\0\x01", 6), "\x3f\xc0" + std::string(2, '\0')));
  EXPECT_EQ(read_idx(folder.file("c")).at<float>({0}), 1.5f);
}

TEST(Idx, ReportsDamage) {
  const Folder folder;
  const std::string path = folder.file("a");
  const std::string bytes =
      idx(std::string("\x0b\x02\0\0\0\x02\0\0\0\x01", 10), "\x01\x02\x03\x04");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    fs::write_file(path, bytes.substr(0, size));
    EXPECT_THAT(message_of_thrown<DataLossError>([&] { read_idx(path); }), HasSubstr(path));
  }
  fs::write_file(path, bytes + "x");
  EXPECT_THROW(read_idx(path), DataLossError);
  fs::write_file(path, idx(std::string("\x0e\x03", 2) + std::string(12, '\xff'), ""));
  EXPECT_THROW(read_idx(path), DataLossError);  // announces 2^96 values
  fs::write_file(path, idx(std::string("\x07\x01\0\0\0\x01", 6), "x"));
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { read_idx(path); }), HasSubstr("0x07"));
  EXPECT_THROW(read_idx(folder.file("missing")), NotFoundError);
}

TEST(ListFiles, GivesSortedOrShuffledPaths) {
  const Folder folder;
  for (const char* name : {"b.txt", "a.txt", "c10.txt", "c2.txt", "x.dat"}) {
    fs::write_file(folder.file(name), "");
  }
  const auto names = [&](const Dataset& ds) {
    std::vector<std::string> all;
    for (const Element& e : ds) {
      all.push_back(std::filesystem::path(e[0].item<std::string>()).filename().string());
    }
    return all;
  };
  const std::vector<std::string> sorted{"a.txt", "b.txt", "c10.txt", "c2.txt"};
  const auto ds = list_files(folder.file("*.txt"), {.shuffle = false});
  EXPECT_EQ(names(ds), sorted);
  EXPECT_EQ(ds.cardinality(), 4);
  EXPECT_EQ(names(list_files({folder.file("c*"), folder.file("[ab].txt")}, {.shuffle = false})),
            sorted);
  const auto shuffled = list_files(folder.file("*.txt"), {.seed = 3});
  EXPECT_THAT(names(shuffled), ::testing::UnorderedElementsAreArray(sorted));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { list_files(folder.file("*.png")); }),
              HasSubstr("No files matched pattern: "));
}

TEST(Stages, NameThemselvesAndTheElementInErrors) {
  const auto fails = [](Tensor x) {
    if (value(x) == 3) throw OutOfRangeError("three");
    return x;
  };
  const auto message = [](const Dataset& ds) {
    return message_of_thrown<OutOfRangeError>([&] { numbers(ds); });
  };
  EXPECT_EQ(message(range(5).map(fails).prefetch(2)), "three\n\tin map, element 3");
  for (const std::int64_t calls : {0, 2}) {
    EXPECT_EQ(message(range(5).interleave([=](Tensor x) { return from_tensors(fails(x)); },
                                          {.num_parallel_calls = calls})),
              "three\n\tin interleave, element 3");
  }
  EXPECT_EQ(message(range(5).flat_map([=](Tensor x) { return from_tensors(fails(x)); })),
            "three\n\tin flat_map, element 3");
  EXPECT_EQ(message(range(5).scan({Tensor(0)},
                                  [=](Tensor s, Tensor x) { return std::pair(s, fails(x)); })),
            "three\n\tin scan, element 3");
  EXPECT_EQ(message(range(5).take_while([=](Tensor x) { return value(fails(x)) < 9; })),
            "three\n\tin take_while, element 3");
  EXPECT_EQ(message(range(5).group_by_window([=](Tensor x) { return value(fails(x)); },
                                             [](std::int64_t, Dataset d) { return d; }, 2)),
            "three\n\tin group_by_window, element 3");
  EXPECT_EQ(
      message(
          range(5)
              .map([](Tensor x) { return Tensor::from(std::vector<std::int64_t>{value(x)}); })
              .bucket_by_sequence_length([=](Tensor x) { return value(fails(x)); }, {9}, {10, 10})),
      "three\n\tin bucket_by_sequence_length, element 3");
}

TEST(Stages, GoOnAfterAnErrorInTheSameOrder) {
  for (const std::int64_t calls : {0, 1, 3}) {
    const auto count = std::make_shared<ErrorCount>();
    const auto ds = range(6)
                        .interleave(
                            [](Tensor x) {
                              if (value(x) == 1) throw InvalidArgumentError("no dataset");
                              return range(value(x) * 10, value(x) * 10 + 4).map([](Tensor y) {
                                if (value(y) % 10 == 2) throw InvalidArgumentError("no element");
                                return y;
                              });
                            },
                            {.cycle_length = 2, .num_parallel_calls = calls})
                        .ignore_errors({.count = count});
    EXPECT_EQ(numbers(ds),
              (std::vector<std::int64_t>{0, 20, 1, 21, 3, 23, 30, 40, 31, 41, 33, 43, 50, 51, 53}))
        << calls;
    EXPECT_EQ(count->count(), 6) << calls;
    EXPECT_THAT(count->messages().front(), HasSubstr("no dataset\n\tin interleave, element 1"));
  }
}

TEST(ParallelInterleave, GivesAllElementsInAnyOrderWhenAsked) {
  const auto ds = range(20)
                      .interleave([](Tensor x) { return range(value(x) * 10, value(x) * 10 + 10); },
                                  {.cycle_length = 4, .num_parallel_calls = 3})
                      .with_options({.deterministic = false});
  std::vector<std::int64_t> all = numbers(ds);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, upto(200));
}

TEST(ParallelInterleave, StopsItsThreadsWhenItIsDropped) {
  const std::size_t before = threads_at_rest();
  const auto ds = range(1000000)
                      .interleave([](Tensor x) { return from_tensors(x).repeat(); },
                                  {.cycle_length = 8, .num_parallel_calls = 4})
                      .prefetch(2);
  for (std::size_t taken : {0u, 1u, 50u}) {
    auto it = ds.iterator();
    EXPECT_EQ(numbers(it, taken).size(), taken);
  }
  {
    auto it = ds.iterator();
    numbers(it, 5);
    const std::string saved = it.save();
    auto other = ds.iterator();
    other.restore(saved);
    EXPECT_EQ(numbers(it, 100), numbers(other, 100));
  }
  EXPECT_EQ(threads_at_rest(), before);
}

TEST(ParallelInterleave, MakesElementsAtTheSameTime) {
  std::atomic<int> inside{0}, most{0};
  const auto ds = range(4).interleave(
      [&](Tensor) {
        return range(4).map([&](Tensor x) {
          const int now = ++inside;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(3));
          --inside;
          return x;
        });
      },
      {.cycle_length = 4, .num_parallel_calls = 4});
  EXPECT_EQ(numbers(ds).size(), 16u);
  EXPECT_GT(most, 1);
}

TEST(Stages, StopWhenTheyAreDroppedWithoutAnElementToGive) {
  const std::size_t before = threads_at_rest();
  const auto never = [](Tensor x) {
    return from_tensors(x).repeat().filter([](Tensor) { return false; });
  };
  const auto endless = range(1).repeat();
  for (const Dataset& blocked :
       {range(9).interleave(never, {.cycle_length = 2}),
        range(9).interleave(never, {.cycle_length = 2, .num_parallel_calls = 2}),
        range(9).flat_map(never), endless.flat_map([](Tensor) { return range(0); }),
        endless.interleave([](Tensor) { return range(0); }, {.num_parallel_calls = 2}),
        choose_from_datasets({range(0), range(1)}, endless, false)
            .concatenate(never(Tensor(std::int64_t{0}))),
        endless.batch(1).rebatch(std::int64_t{1} << 40),
        endless.window(1, {.shift = std::int64_t{1} << 40})}) {
    const auto ds =
        from_tensors(Tensor(std::int64_t{7}))
            .enumerate()
            .map([](Tensor n, Tensor) { return n; })
            .take_while([](Tensor) { return true; })
            .flat_map([=](Tensor x) { return from_tensors(x).concatenate(range(1)); })
            .concatenate(range(1).flat_map([=](Tensor) {
              return blocked.map([](const Element&) { return Tensor(std::int64_t{0}); });
            }))
            .prefetch(4);
    auto ahead = ds.iterator();
    EXPECT_EQ(numbers(ahead, 1), upto(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(threads_at_rest(), before);
}

TEST(Sample, FollowsWeightsAndSeeds) {
  const auto make = [](std::int64_t seed) {
    return sample_from_datasets({from_tensors(Tensor(std::int64_t{0})).repeat(),
                                 from_tensors(Tensor(std::int64_t{1})).repeat()},
                                {.weights = {1, 3}, .seed = seed});
  };
  const auto drawn = numbers(make(7), 4000);
  EXPECT_EQ(numbers(make(7), 4000), drawn);
  EXPECT_NE(numbers(make(8), 4000), drawn);
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 1)), 3000, 150);
  auto all = numbers(sample_from_datasets({range(3), range(3, 9)}, {.seed = 1}));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, upto(9));
  EXPECT_LT(numbers(sample_from_datasets({range(3), range(3, 900)},
                                         {.seed = 1, .stop_on_empty_dataset = true}))
                .size(),
            100u);
  EXPECT_THROW(sample_from_datasets({range(3)}, {.weights = {-1}}), InvalidArgumentError);
  EXPECT_THROW(sample_from_datasets({range(3)}, {.weights = {1, 1}}), InvalidArgumentError);
}

TEST(Bucket, ReportsElementsBeyondTheLastBoundary) {
  const auto ds = range(1, 9).map([](Tensor n) {
    return Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(value(n)), 1));
  });
  auto it = ds.bucket_by_sequence_length([](Tensor e) { return e.dim(0); }, {3, 6}, {2, 3, 2},
                                         {.pad_to_bucket_boundary = true})
                .iterator();
  it.next();
  it.next();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { it.next(); }),
              HasSubstr("elements must have length < max(bucket_boundaries)"));
}

TEST(Batch, LosesAllOfABatchWithAnError) {
  const auto ds = range(7).map([](Tensor x) {
    if (value(x) == 3) throw OutOfRangeError("three");
    return x;
  });
  auto it = ds.batch(3).iterator();
  EXPECT_EQ(it.next()[0].to_string(), "[0 1 2]");
  EXPECT_THROW(it.next(), OutOfRangeError);
  EXPECT_EQ(it.next()[0].to_string(), "[6]");
}

TEST(PaddedBatch, ReportsElementsThatDoNotAgree) {
  const auto ranks = range(3).map([](Tensor x) {
    return Tensor(Array::zeros(DType::kFloat, value(x) == 1 ? Shape{2, 2} : Shape{2}));
  });
  EXPECT_THAT(
      message_of_thrown<InvalidArgumentError>([&] { ranks.padded_batch(3).iterator().next(); }),
      HasSubstr("must have the same rank as the padded shape for component 0: expected "
                "rank 1 but element 1"));
  const auto counts = range(2).map([](const Element& e) {
    return value(e[0]) == 0 ? e : Element{e[0], e[0]};
  });
  EXPECT_THAT(
      message_of_thrown<InvalidArgumentError>([&] { counts.padded_batch(2).iterator().next(); }),
      HasSubstr("different numbers of components"));
  const auto strings = from_tensors(Tensor{"a"}).concatenate(from_tensors(Tensor{"b", "c"}));
  EXPECT_EQ(text(strings.padded_batch(2, {.padding_values = {Tensor("-")}})),
            "[[b'a' b'-']  [b'b' b'c']]");
}

}  // namespace
}  // namespace tandem::data
