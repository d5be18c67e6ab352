// Shuffles that are repeated.
#include <algorithm>
#include <limits>
#include <memory>

#include <gmock/gmock.h>

#include "tandem/data/fuse.h"
#include "tandem/data/pipeline_stats.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using List = std::vector<std::int64_t>;

Dataset rows(std::int64_t count) { return from_tensor_slices(Tensor::from(upto(count))); }

// What a source is asked for, over all its passes.
struct Source {
  std::vector<int> sizes;      // of the passes, the last one of all others
  std::int64_t fails_at = -1;  // before this element of all
  std::size_t fails_to_begin = std::numeric_limits<std::size_t>::max();
  std::size_t begun = 0;
  std::int64_t asked = 0;
  std::int64_t given = 0;
};

Dataset elements_of(const std::shared_ptr<Source>& source) {
  return from_generator(
      [source] {
        const std::size_t pass = source->begun++;
        if (pass == source->fails_to_begin) throw FailedPreconditionError("no pass");
        const int size = source->sizes[std::min(pass, source->sizes.size() - 1)];
        return [source, left = size](Element& out) mutable {
          ++source->asked;
          if (left == 0) return false;
          --left;
          if (source->given++ == source->fails_at) throw OutOfRangeError("this one fails");
          out.assign(1, Tensor(source->given));
          return true;
        };
      },
      {{int64, PartialShape::scalar()}});
}

TEST(ShuffleAndRepeat, RunAsOne) {
  EXPECT_EQ(stages(range(10).shuffle(4).repeat(2).batch(3)),
            "Batch\n  Shuffle+Repeat\n    Range\n");
  EXPECT_EQ(stages(unfused(range(10).shuffle(4).repeat())),
            "Options\n  Repeat\n    Shuffle\n      Range\n");
  EXPECT_EQ(stages(range(10).shuffle(4).skip(1).repeat()),
            "Repeat\n  Skip\n    Shuffle\n      Range\n");
}

TEST(ShuffleAndRepeat, GiveTheSameOrder) {
  for (const bool reshuffle : {true, false}) {
    const ShuffleOptions options{.seed = 7, .reshuffle_each_iteration = reshuffle};
    for (const std::int64_t size : {0, 1, 2, 5, 12}) {
      for (const std::int64_t buffer : {1, 2, 4, 5, 6, 11, 12, 13, 100}) {
        for (const bool by_row : {true, false}) {
          const auto make = [=] {
            return (by_row ? rows(size) : range(size)).shuffle(buffer, options);
          };
          SCOPED_TRACE(testing::Message() << size << " elements, buffer " << buffer);
          for (const std::int64_t count : {1, 2, 5}) {
            const Dataset fused = make().repeat(count), alone = unfused(make().repeat(count));
            EXPECT_EQ(numbers(fused), numbers(alone));
            EXPECT_EQ(numbers(fused), numbers(alone)) << "the iteration after";
            EXPECT_EQ(fused.cardinality(), alone.cardinality());
          }
          EXPECT_EQ(numbers(make().repeat().take(60)), numbers(unfused(make().repeat().take(60))));
          const Dataset twice = make().repeat(2).repeat(2);
          EXPECT_EQ(numbers(twice), numbers(unfused(make().repeat(2).repeat(2))));
          EXPECT_EQ(text(make().repeat(3).batch(4)), text(unfused(make().repeat(3).batch(4))));
        }
      }
    }
  }
}

TEST(ShuffleAndRepeat, TakeTheNumbersOfPassesBroken) {
  const auto run = [](bool fusion) {
    const Dataset ds = range(10)
                           .shuffle(3, {.seed = 5})
                           .shuffle(6, {.seed = 3})
                           .repeat()
                           .with_options({.fusion = fusion});
    List all = numbers(ds, 8);  // broken off while the next pass may have begun
    for (const std::int64_t n : numbers(ds.take(10))) all.push_back(n);
    for (const std::int64_t n : numbers(ds, 35)) all.push_back(n);
    return all;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(ShuffleAndRepeat, ReadOtherPassesFromACache) {
  for (const Dataset& source : {range(9), rows(9)}) {
    const auto make = [&] { return source.cache().shuffle(4, {.seed = 2}).repeat(4); };
    EXPECT_EQ(numbers(make()), numbers(unfused(make())));
  }
}

TEST(ShuffleAndRepeat, ServePassesOfOtherSizes) {
  const std::vector<std::vector<int>> all = {
      {3, 9, 0}, {9, 3, 12, 1, 0}, {0, 5}, {1, 1, 7, 0}, {2, 13, 13, 4, 0}};
  for (const auto& sizes : all) {
    for (const std::int64_t buffer : {1, 2, 3, 5, 8, 50}) {
      for (const std::int64_t fails_at : {-1, 0, 2, 4, 10, 12}) {
        for (const std::size_t fails_to_begin : {1, 2, 100}) {
          const auto make = [&] {
            const auto source = std::make_shared<Source>();
            source->sizes = sizes;
            source->fails_at = fails_at;
            source->fails_to_begin = fails_to_begin;
            return elements_of(source).shuffle(buffer, {.seed = 1}).repeat(6);
          };
          EXPECT_EQ(events(make()), events(unfused(make())))
              << testing::PrintToString(sizes) << ", buffer " << buffer << ", " << fails_at;
        }
      }
    }
  }
}

TEST(ShuffleAndRepeat, HoldNoMoreThanTheBuffer) {
  for (const int size : {4, 7, 20}) {
    const auto source = std::make_shared<Source>();
    source->sizes = {size};
    Iterator it = elements_of(source).shuffle(7, {.seed = 1}).repeat().iterator();
    for (std::int64_t taken = 0; taken < 5 * size; ++taken) {
      it.next();
      EXPECT_LE(source->given - taken, 7);
    }
  }
}

TEST(ShuffleAndRepeat, FillTheBufferWhileThePassBeforeEnds) {
  const auto most_asked = [](bool fusion) {
    const auto source = std::make_shared<Source>();
    source->sizes = {100};
    const Dataset ds = elements_of(source).shuffle(40, {.seed = 1}).repeat();
    Iterator it = ds.with_options({.fusion = fusion}).iterator();
    std::int64_t most = 0;
    for (int taken = 0; taken < 300; ++taken) {
      const std::int64_t before = source->asked;
      it.next();
      if (taken > 0) most = std::max(most, source->asked - before);
    }
    return most;
  };
  EXPECT_LE(most_asked(true), 3);
  EXPECT_GE(most_asked(false), 40);
}

Dataset fails(std::int64_t at) {
  return range(6).map([at](Tensor x) {
    if (x.item<std::int64_t>() == at) throw OutOfRangeError("this one fails");
    return x;
  });
}

TEST(ShuffleAndRepeat, ErrorsAreThoseOfTheirPass) {
  for (const std::int64_t at : {0, 3, 5}) {
    for (const std::int64_t buffer : {1, 3, 4, 50}) {
      const Dataset ds =
          fails(at).shuffle(buffer, {.seed = 1, .reshuffle_each_iteration = false}).repeat(3);
      const std::vector<std::string> all = events(ds);
      EXPECT_EQ(std::count(all.begin(), all.end(),
                           "error: this one fails\n\tin map, element " + std::to_string(at)),
                3);
      expect_fuses(ds);
      EXPECT_EQ(events(ds.ignore_errors()), events(unfused(ds).ignore_errors()));
      EXPECT_EQ(events(ds.batch(4)), events(unfused(ds.batch(4))));
    }
  }
  // Every element fails.
  const Dataset none = range(3)
                           .map([](Tensor x) {
                             if (x.rank() == 0) throw OutOfRangeError("fails");
                             return x;
                           })
                           .shuffle(2, {.seed = 1})
                           .repeat();
  EXPECT_EQ(events(none), events(unfused(none)));
}

TEST(ShuffleAndRepeat, ErrorsOfRowsAreThoseOfTheirPass) {
  for (const std::int64_t at : {0, 2, 5}) {
    const Dataset ds = rows(6)
                           .filter([at](Tensor x) {
                             if (x.item<std::int64_t>() == at) throw OutOfRangeError("fails");
                             return true;
                           })
                           .shuffle(4, {.seed = 1, .reshuffle_each_iteration = false})
                           .repeat(3);
    EXPECT_THAT(events(ds), Contains(HasSubstr("in filter, element")));
    expect_fuses(ds);
  }
}

TEST(ShuffleAndRepeat, GoOnWhereTheyWereSaved) {
  for (const bool reshuffle : {true, false}) {
    const ShuffleOptions options{.seed = 7, .reshuffle_each_iteration = reshuffle};
    for (const std::int64_t buffer : {1, 3, 5, 6, 40}) {
      expect_resumes([=] { return range(5).shuffle(buffer, options).repeat(3); });
      expect_resumes([=] { return rows(5).shuffle(buffer, options).repeat(3); });
    }
    expect_resumes([=] { return range(5).shuffle(3, options).shuffle(4, options).repeat(3); });
    expect_resumes([=] { return range(5).shuffle(3, options).repeat(2).repeat(2).prefetch(2); });
    expect_resumes([=] { return rows(5).cache().shuffle(3, options).repeat(3).batch(2); });
    expect_resumes([=] { return range(5).cache().shuffle(3, options).repeat(3); });
    expect_resumes([=] { return range(5).shuffle(9, options).repeat().take(23); });
  }
}

TEST(ShuffleAndRepeat, RefuseStatesOfOthers) {
  Iterator it = rows(50).shuffle(20).repeat(2).iterator();
  numbers(it, 40);
  const std::string saved = it.save();
  Iterator few = rows(5).shuffle(20).repeat(2).iterator();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { few.restore(saved); }),
              HasSubstr("rows that do not exist"));
  Iterator small = rows(50).shuffle(10).repeat(2).iterator();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { small.restore(saved); }),
              HasSubstr("holds more than fit"));
  Iterator alone = unfused(rows(50).shuffle(20).repeat(2)).iterator();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { alone.restore(saved); }),
              HasSubstr("it was saved by the stage Shuffle+Repeat where this one has Repeat"));
}

TEST(ShuffleAndRepeat, AreObserved) {
  Iterator it = rows(20).shuffle(8, {.seed = 1}).repeat(3).iterator({.observe = true});
  events(it);
  const PipelineStats stats = it.stats();
  ASSERT_EQ(stats.stages.size(), 2u);
  EXPECT_EQ(stats.stages[0].name, "Shuffle+Repeat");
  EXPECT_EQ(stats.stages[0].elements, 60);
  EXPECT_EQ(stats.stages[1].elements, 60);
}

}  // namespace
}  // namespace tandem::data
