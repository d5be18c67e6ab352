#include <atomic>
#include <limits>
#include <tuple>

#include <gmock/gmock.h>

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

TEST(Batch, JoinsRowsOfTensorsInMemory) {
  const auto ds = from_tensor_slices({Tensor{{1, 2}, {3, 4}, {5, 6}}, Tensor{7, 8, 9}}).batch(2);
  EXPECT_EQ(text(ds), "[[1 2]  [3 4]]; [7 8] | [[5 6]]; [9]");
  EXPECT_EQ(ds.cardinality(), 2);
  EXPECT_EQ(to_string(ds.element_spec()), "(int32[?,2], int32[?])");
}

TEST(Batch, JoinsElementsOfOtherSources) {
  EXPECT_EQ(text(range(5).batch(2)), "[0 1] | [2 3] | [4]");
  EXPECT_EQ(text(range(5).batch(2, {.drop_remainder = true})), "[0 1] | [2 3]");
  EXPECT_EQ(text(range(5).batch(100)), "[0 1 2 3 4]");
  EXPECT_EQ(text(range(4).batch(2).batch(2)), "[[0 1]  [2 3]]");
  EXPECT_EQ(text(from_tensors(Tensor{"a", "b"}).repeat(2).batch(2)), "[[b'a' b'b']  [b'a' b'b']]");
}

TEST(Batch, DropsTheRemainderOfRows) {
  const auto ds = from_tensor_slices(Tensor{1, 2, 3}).batch(2, {.drop_remainder = true});
  EXPECT_EQ(text(ds), "[1 2]");
  EXPECT_EQ(ds.cardinality(), 1);
  EXPECT_EQ(to_string(ds.element_spec()), "(int32[2])");
}

TEST(Batch, SizesBeyondTheElementsCostNothing) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(text(range(3).batch(huge)), "[0 1 2]");
  EXPECT_EQ(text(from_tensor_slices(Tensor{1, 2, 3}).batch(huge)), "[1 2 3]");
}

TEST(Batch, GrowsWhenElementsAreLarge) {
  // 9 rows of 8 MiB: more than what is allocated at once.
  const auto rows = range(9).map([](const Tensor& x) {
    Array row(uint8, {8 << 20});
    std::fill_n(row.data<std::uint8_t>(), row.num_elements(),
                static_cast<std::uint8_t>(x.item<std::int64_t>()));
    return Tensor(row);
  });
  const Array batch = rows.batch(100).iterator().next().at(0).array();
  ASSERT_EQ(batch.shape(), (Shape{9, 8 << 20}));
  for (std::int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(batch.data<std::uint8_t>()[i * (8 << 20)], i);
    EXPECT_EQ(batch.data<std::uint8_t>()[(i + 1) * (8 << 20) - 1], i);
  }
}

TEST(Batch, RefusesUnlikeElementsByName) {
  const auto uneven = range(3).map([](const Tensor& x) {
    return Tensor(Array::zeros(float32, {x.item<std::int64_t>() == 2 ? 3 : 2}));
  });
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { uneven.batch(3).iterator().next(); }),
              HasSubstr("Cannot batch tensors with different shapes in component 0. First element "
                        "had shape [2] and element 2 had shape [3]."));
  const auto mixed = range(2).map(
      [](const Tensor& x) { return x.item<std::int64_t>() == 0 ? Tensor(1) : Tensor(1.0f); });
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { mixed.batch(2).iterator().next(); }),
              HasSubstr("different dtypes in component 0. First element had int32"));
}

TEST(Batch, RefusesSizesBelowOne) {
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(3).batch(0); }),
              HasSubstr("Batch size must be greater than zero"));
  EXPECT_THROW(range(3).batch(-1), InvalidArgumentError);
}

TEST(Unbatch, TakesBatchesApart) {
  const auto ds = range(5).batch(2).unbatch();
  EXPECT_EQ(numbers(ds), upto(5));
  EXPECT_EQ(to_string(ds.element_spec()), "(int64[])");
  EXPECT_EQ(range(6).batch(2, {.drop_remainder = true}).unbatch().cardinality(), 6);
  EXPECT_EQ(ds.cardinality(), kUnknown);
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(5).unbatch(); }),
              HasSubstr("Cannot unbatch an input with scalar components"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] {
                from_tensors({Tensor{1, 2}, Tensor{1, 2, 3}}).unbatch().iterator().next();
              }),
              HasSubstr("Encountered both 2 and 3"));
}

TEST(Repeat, IteratesAndRound) {
  EXPECT_EQ(numbers(range(2).repeat(3)), (std::vector<std::int64_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(numbers(range(2).repeat(), 5), (std::vector<std::int64_t>{0, 1, 0, 1, 0}));
  EXPECT_EQ(numbers(range(2).repeat(0)), upto(0));
  EXPECT_EQ(numbers(range(0).repeat()), upto(0)) << "an empty input ends at once";
  EXPECT_EQ(text(from_tensor_slices(Tensor{1, 2, 3}).repeat(2).batch(4)), "[1 2 3 1] | [2 3]");
  EXPECT_THROW(range(2).repeat(-2), InvalidArgumentError);
}

TEST(TakeSkipShard, ChooseByNumber) {
  for (const Dataset& ds : {range(7), from_tensor_slices(Tensor::from(upto(7)))}) {
    EXPECT_EQ(numbers(ds.take(3)), upto(3));
    EXPECT_EQ(numbers(ds.take(0)), upto(0));
    EXPECT_EQ(numbers(ds.take(-1)), upto(7));
    EXPECT_EQ(numbers(ds.take(99)), upto(7));
    EXPECT_EQ(numbers(ds.skip(5)), (std::vector<std::int64_t>{5, 6}));
    EXPECT_EQ(numbers(ds.skip(99)), upto(0));
    EXPECT_EQ(numbers(ds.skip(-1)), upto(0));
    EXPECT_EQ(numbers(ds.shard(3, 1)), (std::vector<std::int64_t>{1, 4}));
    EXPECT_EQ(text(ds.skip(1).take(4).batch(3)), "[1 2 3] | [4]");
    EXPECT_EQ(text(ds.shard(3, 0).batch(10)), "[0 3 6]");
  }
  EXPECT_THROW(range(3).take(-2), InvalidArgumentError);
  EXPECT_THROW(range(3).skip(-2), InvalidArgumentError);
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(3).shard(0, 0); }),
              HasSubstr("Number of shards must be greater than zero (currently num_shards = 0)"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(3).shard(2, 2); }),
              HasSubstr("Index must be between 0 and 1 (currently index = 2)"));
}

TEST(Cardinality, IsReportedWithoutIterating) {
  const Dataset r = range(5);
  const Dataset f = r.filter([](const Tensor&) { return true; });
  EXPECT_EQ(r.repeat().cardinality(), kInfinite);
  EXPECT_EQ(f.cardinality(), kUnknown);
  EXPECT_EQ(r.batch(2).cardinality(), 3);
  EXPECT_EQ(r.batch(2, {.drop_remainder = true}).cardinality(), 2);
  EXPECT_EQ(r.skip(-1).cardinality(), 0);
  EXPECT_EQ(r.repeat().take(3).cardinality(), 3);
  EXPECT_EQ(range(0).repeat().cardinality(), 0);
  EXPECT_EQ(r.repeat().skip(3).cardinality(), kInfinite);
  EXPECT_EQ(r.repeat().batch(2).cardinality(), kInfinite);
  EXPECT_EQ(r.shard(2, 1).cardinality(), 2);
  EXPECT_EQ(zip({r, r.repeat()}).cardinality(), 5);
  EXPECT_EQ(r.concatenate(r.repeat()).cardinality(), kInfinite);
  EXPECT_EQ(r.concatenate(f).cardinality(), kUnknown);
  EXPECT_EQ(r.shuffle(2).cache().prefetch(1).enumerate().cardinality(), 5);
  EXPECT_EQ(f.repeat().cardinality(), kInfinite);
  EXPECT_EQ(f.take(3).cardinality(), kUnknown);
}

TEST(Map, TakesCallablesOfAllForms) {
  const auto pairs = zip({range(3), range(10, 13)});
  EXPECT_EQ(text(range(3).map([](Tensor x) { return plus(x, 1); })), "1 | 2 | 3");
  EXPECT_EQ(text(pairs.map([](const Tensor& x, Tensor y) { return std::pair(y, x); })),
            "10; 0 | 11; 1 | 12; 2");
  EXPECT_EQ(text(pairs.map([](Tensor x, Tensor y) { return std::tuple(x, y, std::pair(x, y)); })),
            "0; 10; 0; 10 | 1; 11; 1; 11 | 2; 12; 2; 12");
  EXPECT_EQ(text(pairs.map([](auto x, auto) {
              return std::array<Tensor, 2>{x, x};
            })),
            "0; 0 | 1; 1 | 2; 2");
  EXPECT_EQ(text(pairs.map([](const Element& e) { return Element{e[1]}; })), "10 | 11 | 12");
}

TEST(Map, RefusesTheWrongNumberOfTensorsAtOnce) {
  const auto message = message_of_thrown<InvalidArgumentError>(
      [] { range(3).map([](Tensor x, Tensor) { return x; }); });
  EXPECT_THAT(message, HasSubstr("takes 2 tensors, but the elements have 1 component"));
  // Behind another map only an element shows it.
  const auto later =
      range(3).map([](Tensor x) { return x; }).map([](Tensor x, Tensor) { return x; });
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { later.iterator().next(); }),
              HasSubstr("takes 2 tensors"));
  EXPECT_THROW(range(3).map([](Tensor x) { return x; }, {.num_parallel_calls = -2}),
               InvalidArgumentError);
}

TEST(Map, ReportsItsSpecByTracingOrByAnElement) {
  const auto swapped = zip({range(3), from_tensor_slices(Tensor{{1.0, 2.0}, {3.0, 4.0}})})
                           .map([](Tensor x, Tensor y) { return std::pair(y, x); });
  EXPECT_EQ(to_string(swapped.element_spec()), "(float[2], int64[])");
  EXPECT_EQ(to_string(swapped.batch(2).element_spec()), "(float[?,2], int64[?])");
  const auto reads = range(3).map([](Tensor x) {
    return Tensor(Array::zeros(uint8, {x.item<std::int64_t>(), 2}));
  });
  EXPECT_EQ(to_string(reads.element_spec()), "(uint8[?,?])");
}

TEST(Map, NamesTheElementThatFailedAndGoesOn) {
  for (const std::int64_t calls : {0, 1, 3}) {
    const auto ds = range(6).map(
        [](const Tensor& x) {
          if (x.item<std::int64_t>() == 2) throw std::runtime_error("user text");
          if (x.item<std::int64_t>() == 4) throw NotFoundError("no such thing");
          return x;
        },
        {.num_parallel_calls = calls});
    auto it = ds.iterator();
    EXPECT_EQ(numbers(it, 2), upto(2));
    EXPECT_EQ(message_of_thrown<UnknownError>([&] { it.next(); }),
              "user text\n\tin map, element 2");
    EXPECT_EQ(numbers(it, 1), (std::vector<std::int64_t>{3}));
    EXPECT_EQ(message_of_thrown<NotFoundError>([&] { it.next(); }),
              "no such thing\n\tin map, element 4");
    EXPECT_EQ(numbers(it), (std::vector<std::int64_t>{5}));
  }
}

TEST(Map, AnythingMayBeThrown) {
  for (const std::int64_t calls : {0, 2}) {
    const auto ds =
        range(2).map([](const Tensor&) -> Tensor { throw 7; }, {.num_parallel_calls = calls});
    EXPECT_THAT(message_of_thrown<UnknownError>([&] { ds.iterator().next(); }),
                HasSubstr("in map, element 0"));
    EXPECT_THROW(range(2)
                     .map([](const Tensor&) -> Tensor { throw std::bad_alloc(); },
                          {.num_parallel_calls = calls})
                     .iterator()
                     .next(),
                 ResourceExhaustedError);
  }
}

TEST(Filter, KeepsWhatPasses) {
  const auto odd = [](const Tensor& x) { return x.item<std::int64_t>() % 2 == 1; };
  EXPECT_EQ(numbers(range(6).filter(odd)), (std::vector<std::int64_t>{1, 3, 5}));
  EXPECT_EQ(text(from_tensor_slices(Tensor::from(upto(6))).filter(odd).batch(2)), "[1 3] | [5]");
  EXPECT_EQ(numbers(range(4).filter(
                [](const Element& e) { return Tensor(e[0].item<std::int64_t>() > 1); })),
            (std::vector<std::int64_t>{2, 3}));
  const auto message = message_of_thrown<InvalidArgumentError>(
      [] { range(3).filter([](const Tensor& x) { return x; }).iterator().next(); });
  EXPECT_THAT(message, HasSubstr("must return a bool scalar tensor, but its result is int64"));
  EXPECT_THAT(message, HasSubstr("in filter, element 0"));
}

TEST(Zip, PutsComponentsSideBySide) {
  EXPECT_EQ(text(zip({range(3), range(5, 9).batch(2)})), "0; [5 6] | 1; [7 8]");
  EXPECT_EQ(to_string(zip({range(3), range(2).batch(2)}).element_spec()), "(int64[], int64[?])");
  EXPECT_THROW(zip({}), InvalidArgumentError);
  EXPECT_THROW(zip({range(3), Dataset()}), FailedPreconditionError);
}

TEST(Concatenate, GivesOneAfterTheOther) {
  EXPECT_EQ(numbers(range(2).concatenate(range(5, 7))), (std::vector<std::int64_t>{0, 1, 5, 6}));
  EXPECT_EQ(to_string(range(5)
                          .batch(2)
                          .concatenate(range(4).batch(2, {.drop_remainder = true}))
                          .element_spec()),
            "(int64[?])");
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] {
                const auto floats = range(2).map([](Tensor) { return Tensor(1.0f); });
                const auto both = range(2).concatenate(floats);
                auto it = both.iterator();
                EXPECT_EQ(numbers(it, 2), upto(2));
                EXPECT_THROW(both.element_spec(), InvalidArgumentError);
                it.next();
              }),
              HasSubstr("(int64[]) vs. (float[])"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>(
                  [] { range(2).concatenate(from_tensors(Tensor(1.0f))); }),
              HasSubstr("Incompatible dataset elements: (int64[]) vs. (float[])"));
}

TEST(Enumerate, PutsNumbersFirst) {
  EXPECT_EQ(text(from_tensor_slices(Tensor{7.5, 8.5}).enumerate(3)), "3; 7.5 | 4; 8.5");
  EXPECT_EQ(to_string(range(2).enumerate().element_spec()), "(int64[], int64[])");
}

TEST(Cache, CallsItsInputOnce) {
  std::atomic<int> calls{0};
  const auto ds = range(3)
                      .map([&](Tensor x) {
                        ++calls;
                        return x;
                      })
                      .cache();
  EXPECT_EQ(numbers(ds, 2), upto(2));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(numbers(ds), upto(3)) << "an incomplete pass keeps nothing";
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(numbers(ds.repeat(2)), (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(calls, 5);
}

TEST(Cache, KeepsNoPassWithAnError) {
  std::atomic<bool> fails{true};
  const auto ds = range(3)
                      .map([&](Tensor x) {
                        if (fails && x.item<std::int64_t>() == 1) throw AbortedError("not now");
                        return x;
                      })
                      .cache();
  auto it = ds.iterator();
  EXPECT_EQ(numbers(it, 1), upto(1));
  EXPECT_THROW(it.next(), AbortedError);
  EXPECT_EQ(numbers(it), (std::vector<std::int64_t>{2}));
  fails = false;
  EXPECT_EQ(numbers(ds), upto(3));
}

TEST(Cache, KeepsTheOrderOfRows) {
  const auto rows = from_tensor_slices(Tensor::from(upto(50))).shuffle(50).cache();
  const auto first = numbers(rows);
  EXPECT_NE(first, upto(50));
  EXPECT_EQ(numbers(rows), first);
  EXPECT_EQ(rows.batch(50).iterator().next().at(0).to_vector<std::int64_t>(), first);
}

TEST(Iterators, EndOnceAndForAll) {
  auto it = range(1).iterator();
  Element element;
  EXPECT_TRUE(it.next(element));
  EXPECT_FALSE(it.next(element));
  EXPECT_TRUE(element.empty());
  EXPECT_FALSE(it.next(element));
  EXPECT_THAT(message_of_thrown<OutOfRangeError>([&] { it.next(); }), HasSubstr("End of sequence"));
}

TEST(Iterators, WorkInLoops) {
  std::int64_t sum = 0;
  for (const auto& element : range(4)) sum += element[0].item<std::int64_t>();
  for (const auto& [x, y] : zip({range(3), range(10, 13)}).tuples<2>()) {
    sum += 100 * x.item<std::int64_t>() + y.item<std::int64_t>();
  }
  EXPECT_EQ(sum, 6 + 300 + 33);
  EXPECT_THROW(
      {
        for (const auto& [x, y] : range(3).tuples<2>()) sum += x.rank() + y.rank();
      },
      InvalidArgumentError);
}

TEST(Iterators, RefuseUndefinedDatasets) {
  EXPECT_THROW(Dataset().iterator(), FailedPreconditionError);
  EXPECT_THROW(Dataset().batch(2), FailedPreconditionError);
  EXPECT_THROW(Dataset().take(-1), FailedPreconditionError);
  EXPECT_THROW(Dataset().cardinality(), FailedPreconditionError);
  auto it = range(2).iterator();
  const auto moved = std::move(it);
  Element element;
  EXPECT_THROW(it.next(element), FailedPreconditionError);  // NOLINT: what is left is the subject
}

TEST(Places, AreReachedAtOnceWhereTheyAreKnown) {
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  EXPECT_EQ(numbers(range(kMany).skip(kMany - 2)),
            (std::vector<std::int64_t>{kMany - 2, kMany - 1}));
  EXPECT_EQ(numbers(range(kMany).skip(kMany / 2).take(kMany / 4).skip(kMany / 4 - 1)),
            (std::vector<std::int64_t>{kMany / 2 + kMany / 4 - 1}));
  EXPECT_EQ(numbers(range(kMany).skip(kMany)), upto(0));
  EXPECT_EQ(numbers(range(kMany).take(5).skip(kMany)), upto(0));
  EXPECT_EQ(numbers(range(kMany).shard(kMany / 2, 7)),
            (std::vector<std::int64_t>{7, kMany / 2 + 7}));
  EXPECT_EQ(numbers(range(INT64_MAX, INT64_MIN, -3).skip(kMany * 3).take(1)),
            (std::vector<std::int64_t>{INT64_MAX - kMany * 7 - kMany * 2}));
  const Dataset rows = from_tensor_slices(Tensor::from(upto(20)));
  EXPECT_EQ(numbers(rows.skip(18)), (std::vector<std::int64_t>{18, 19}));
  EXPECT_EQ(numbers(rows.skip(2).skip(3).take(2)), (std::vector<std::int64_t>{5, 6}));
  EXPECT_EQ(numbers(rows.shard(8, 3)), (std::vector<std::int64_t>{3, 11, 19}));
  EXPECT_EQ(numbers(rows.shard(8, 4)), (std::vector<std::int64_t>{4, 12}));
  expect_resumes([&] { return rows.skip(3).shard(4, 1); });
  expect_resumes([] { return range(40).shard(4, 1).skip(2); });
  expect_resumes([] { return range(40).skip(30).take(5); });
}

}  // namespace
}  // namespace tandem::data
