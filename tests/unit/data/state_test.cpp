#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

Dataset rows(int count) {
  std::vector<std::int64_t> values;
  for (int i = 0; i < count; ++i) values.push_back(10 * i);
  return from_tensor_slices(Tensor::from(values));
}

TEST(State, ResumesSources) {
  expect_resumes([] { return range(3, 20, 4); });
  expect_resumes([] { return from_tensors({Tensor(1), Tensor("ab")}); });
  expect_resumes([] { return rows(5); });
  expect_resumes([] {
    return from_generator(
        [] {
          return [i = 0](Element& out) mutable {
            out = {Tensor(i)};
            return i++ < 4;
          };
        },
        {{DType::kInt32, PartialShape::scalar()}});
  });
}

TEST(State, ResumesStages) {
  expect_resumes([] { return range(10).map([](Tensor x) { return plus(x, 1); }); });
  expect_resumes(
      [] { return rows(10).filter([](Tensor x) { return x.item<std::int64_t>() > 30; }); });
  expect_resumes([] { return range(10).skip(2).take(6).shard(2, 1); });
  expect_resumes([] { return rows(10).skip(2).take(6).shard(2, 1); });
  expect_resumes([] { return range(7).batch(3); });
  expect_resumes([] { return rows(7).batch(3); });
  expect_resumes([] { return range(7).batch(3).unbatch(); });
  expect_resumes([] { return zip({range(4), rows(5)}); });
  expect_resumes([] { return range(3).concatenate(range(10, 14)).enumerate(5); });
  expect_resumes([] { return range(3).repeat(3); });
  expect_resumes([] { return rows(3).repeat(3); });
}

TEST(State, ResumesShufflesAndWhatFollowsThem) {
  for (const bool reshuffle : {true, false}) {
    const ShuffleOptions options{.seed = 7, .reshuffle_each_iteration = reshuffle};
    expect_resumes([=] { return range(12).shuffle(5, options); });
    expect_resumes([=] { return rows(12).shuffle(5, options); });
    expect_resumes([=] { return range(5).shuffle(3, options).repeat(3).batch(2); });
    expect_resumes([=] { return rows(5).shuffle(3, options).repeat(3).batch(2).prefetch(2); });
    expect_resumes([=] { return rows(5).shuffle(100, options).shuffle(3, options); });
    expect_resumes([=] { return range(5).map([](Tensor x) { return x; }).shuffle(9, options); });
  }
  // Without a seed the state carries the one that was drawn.
  expect_resumes([] { return range(1).shuffle(3); });
  const Dataset a = range(50).shuffle(20), b = range(50).shuffle(20);
  auto first = a.iterator(), second = b.iterator();
  numbers(first, 10);
  second.restore(first.save());
  EXPECT_EQ(numbers(first), numbers(second));
  EXPECT_EQ(numbers(a), numbers(b));
}

TEST(State, ResumesCaches) {
  expect_resumes([] { return range(5).cache(); });
  expect_resumes([] { return range(5).cache().repeat(3); });
  expect_resumes([] { return rows(5).cache().repeat(3).batch(2); });
  expect_resumes([] { return range(5).shuffle(3, {.seed = 1}).cache().repeat(2); });
}

TEST(State, ResumesThreads) {
  expect_resumes([] { return range(20).prefetch(3); });
  expect_resumes([] { return range(20).prefetch(kAutotune).batch(3).prefetch(1); });
  for (const std::int64_t calls : {1, 2, 5}) {
    expect_resumes([=] {
      return range(20)
          .shuffle(8, {.seed = 3})
          .map([](Tensor x) { return plus(x, 2); }, {.num_parallel_calls = calls})
          .batch(4)
          .prefetch(2);
    });
  }
  // A state saved with one number of threads is restored with another.
  const auto make = [](std::int64_t calls) {
    return range(20).map([](Tensor x) { return x; }, {.num_parallel_calls = calls});
  };
  auto four = make(4).iterator(), two = make(2).iterator();
  numbers(four, 5);
  two.restore(four.save());
  EXPECT_EQ(numbers(two), numbers(four));
}

std::int64_t value(const Tensor& x) { return x.item<std::int64_t>(); }
Dataset tens(const Tensor& x) { return range(value(x) * 10, value(x) * 11); }
Tensor sequence(const Tensor& n) {
  return Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(value(n)), value(n)));
}

TEST(State, ResumesNestedDatasets) {
  expect_resumes([] { return range(5).flat_map([](Tensor x) { return tens(x); }); });
  for (const std::int64_t calls : {0, 1, 3}) {
    expect_resumes([=] {
      return range(6)
          .shuffle(4, {.seed = 5})
          .interleave([](Tensor x) { return tens(x).shuffle(3, {.seed = 2}); },
                      {.cycle_length = 3, .block_length = 2, .num_parallel_calls = calls});
    });
  }
  expect_resumes([] {
    return range(10).group_by_window([](Tensor x) { return value(x) % 3; },
                                     [](std::int64_t, Dataset d) { return d; }, 2);
  });
  expect_resumes([] {
    return range(7).window(3, {.shift = 2}).flat_map([](Tensor w) { return from_variant(w); });
  });
  expect_resumes([] {
    return range(7).window(3, {.shift = 1}).shuffle(3, {.seed = 1}).flat_map([](Tensor w) {
      return from_variant(w).batch(3);
    });
  });
  expect_resumes([] {
    return choose_from_datasets({range(3), range(10, 14)}, range(2).repeat(4), false);
  });
  for (const bool rerandomize : {true, false}) {
    expect_resumes([=] {
      return sample_from_datasets(
          {range(5), range(10, 14)},
          {.weights = {1, 2}, .seed = 3, .rerandomize_each_iteration = rerandomize});
    });
  }
}

TEST(State, ResumesBatchesOfOtherKinds) {
  const auto lengths = [] {
    return range(1, 8).shuffle(4, {.seed = 4}).map([](Tensor n) { return sequence(n); });
  };
  expect_resumes([=] { return lengths().padded_batch(2); });
  expect_resumes([=] {
    return lengths().bucket_by_sequence_length([](Tensor e) { return e.dim(0); }, {3, 6},
                                               {2, 2, 2});
  });
  expect_resumes([] { return range(11).batch(4).rebatch(3); });
  expect_resumes([] { return range(11).batch(2).rebatch(std::vector<std::int64_t>{3, 1}); });
  expect_resumes([] { return range(8).take_while([](Tensor x) { return value(x) < 5; }); });
  expect_resumes([] {
    return range(6).scan({Tensor(std::int64_t{1})}, [](Tensor s, Tensor x) {
      return std::pair(Tensor(value(s) * 2 + value(x)), s);
    });
  });
  expect_resumes([] {
    return range(8)
        .map([](Tensor x) {
          if (value(x) % 3 == 1) throw InvalidArgumentError("one");
          return x;
        })
        .ignore_errors()
        .with_options({.deterministic = true})
        .prefetch(2);
  });
}

TEST(State, KeepsErrorsThatWereMadeAhead) {
  const auto make = [] {
    return range(4)
        .map([](Tensor x) {
          if (x.item<std::int64_t>() == 2) throw OutOfRangeError("two is too many");
          return x;
        })
        .prefetch(4);
  };
  auto it = make().iterator();
  EXPECT_EQ(numbers(it, 1), upto(1));
  const std::string saved = it.save();
  auto restored = make().iterator();
  restored.restore(saved);
  EXPECT_EQ(numbers(restored, 1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(message_of_thrown<OutOfRangeError>([&] { restored.next(); }),
            "two is too many\n\tin map, element 2");
  EXPECT_EQ(numbers(restored), (std::vector<std::int64_t>{3}));
}

TEST(State, ReportsDamage) {
  auto it = range(100).shuffle(10).batch(3).iterator();
  it.next();
  const std::string saved = it.save();
  for (std::size_t size = 0; size < saved.size(); size += 7) {
    EXPECT_THROW(it.restore(saved.substr(0, size)), DataLossError) << size;
  }
  EXPECT_THROW(it.restore(saved + "x"), DataLossError);
  for (std::size_t i = 0; i < saved.size(); i += 3) {
    if (i >= 8 && i < 12) continue;  // the version
    std::string damaged = saved;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_THROW(it.restore(damaged), DataLossError) << i;
  }
  std::string newer = saved;
  newer[8] = 3;
  EXPECT_THAT(message_of_thrown<UnimplementedError>([&] { it.restore(newer); }),
              HasSubstr("version 3"));
  it.restore(saved);
}

TEST(State, ReportsAnotherPipeline) {
  auto it = range(10).batch(3).iterator();
  it.next();
  const std::string saved = it.save();
  auto other = range(10).take(3).iterator();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { other.restore(saved); }),
              HasSubstr("it was saved by the stage Batch of 3 where this one has Take"));
  EXPECT_EQ(numbers(other), upto(3));  // it is as it was
  // Nor does the dataset take over the other one's seeds.
  const ShuffleOptions one{.seed = 1, .reshuffle_each_iteration = false};
  const ShuffleOptions two{.seed = 2, .reshuffle_each_iteration = false};
  auto direct = range(50).shuffle(20, one).iterator();
  const auto mapped = range(50).map([](Tensor x) { return x; }).shuffle(20, two);
  const auto order = numbers(mapped);
  auto mapped_it = mapped.iterator();
  EXPECT_THROW(mapped_it.restore(direct.save()), InvalidArgumentError);
  EXPECT_EQ(numbers(mapped_it), order);
  EXPECT_EQ(numbers(mapped), order);
  auto sized = range(10).batch(4).iterator();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { sized.restore(saved); }),
              HasSubstr("saved by the stage Batch of 3 where this one has Batch of 4"));
  for (const Dataset& unlike :
       {range(2).batch(3), range(20).batch(3), range(1, 11).batch(3), range(0, 30, 3).batch(3)}) {
    auto shorter = unlike.iterator();
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { shorter.restore(saved); }),
                HasSubstr("its place is outside the range"));
  }
  auto more = range(10).batch(3).batch(2).iterator();
  EXPECT_THROW(more.restore(saved), InvalidArgumentError);
  auto many = rows(50).shuffle(20).iterator();
  many.next();
  auto few = rows(5).shuffle(20).iterator();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { few.restore(many.save()); }),
              HasSubstr("rows that do not exist"));
}

}  // namespace
}  // namespace tandem::data
