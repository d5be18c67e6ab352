// Every stage behind a shuffle, repeated: what is restored goes on in the later epochs too.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/data/sharding.h"
#include "tandem/fs/file_system.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"

#include "tests/unit/data/data_util.h"
#include "tests/unit/data/draws_util.h"

namespace tandem::data {
namespace {

using RepeatedState = OwnRuntime;
using Stage = std::function<Dataset(const Dataset&)>;
using Stages = std::vector<std::pair<std::string, Stage>>;

std::int64_t value(const Tensor& x) { return x.item<std::int64_t>(); }
Tensor next_one(Tensor x) { return x + std::int64_t{1}; }
Tensor noisy(Tensor x) { return cast(x, float32) + random::uniform({}); }
bool below_six(const Tensor& x) { return value(x) < 6; }
Dataset two(const Tensor& x) { return range(value(x), value(x) + 2).shuffle(2); }
Dataset tens() { return range(10, 17).shuffle(6, {.seed = 2}); }
Tensor copies(const Tensor& n) {
  return Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(value(n)) + 1, value(n)));
}

// Each stage on range(8), shuffled, three times: as it runs and as it was written, with a seed and
// without.
void expect_all_resume(const Stages& stages) {
  for (const auto& [name, stage] : stages) {
    SCOPED_TRACE(name);
    expect_resumes([&stage = stage] { return stage(range(8).shuffle(5, {.seed = 1})).repeat(3); });
    expect_resumes(
        [&stage = stage] { return unfused(stage(range(8).shuffle(5, {.seed = 1})).repeat(3)); });
    expect_resumes([&stage = stage] { return stage(range(8).shuffle(5)).repeat(3); });
  }
}

TEST_F(RepeatedState, OfStagesThatGiveElementsOneByOne) {
  std::int64_t one = 1;  // held: such a function is called
  const auto called = [one](const Tensor& x) { return plus(x, one); };
  expect_all_resume({
      {"take", [](const Dataset& d) { return d.take(4); }},
      {"skip", [](const Dataset& d) { return d.skip(3); }},
      {"shard", [](const Dataset& d) { return d.shard(2, 1); }},
      {"take_while",
       [](const Dataset& d) {
         return d.enumerate().take_while(
             [](const Tensor& i, const Tensor&) { return value(i) < 5; });
       }},
      {"filter", [](const Dataset& d) { return d.filter(below_six); }},
      {"map", [](const Dataset& d) { return d.map(next_one); }},
      {"map, called", [&](const Dataset& d) { return d.map(called); }},
      {"map, parallel", [&](const Dataset& d) { return d.map(called, {.num_parallel_calls = 2}); }},
      {"map, random", [](const Dataset& d) { return d.map(noisy); }},
      {"map and filter", [](const Dataset& d) { return d.map(next_one).filter(below_six); }},
      {"scan",
       [](const Dataset& d) {
         return d.scan({Tensor(std::int64_t{1})},
                       [](Tensor s, Tensor x) { return std::pair(s + x, s); });
       }},
      {"unique", [](const Dataset& d) { return d.map(next_one).unique(); }},
      {"enumerate", [](const Dataset& d) { return d.enumerate(); }},
      {"prefetch", [](const Dataset& d) { return d.prefetch(3); }},
      {"cache", [](const Dataset& d) { return d.cache(); }},
      {"shuffle", [](const Dataset& d) { return d.shuffle(3); }},
      {"repeat", [](const Dataset& d) { return d.repeat(2); }},
      {"ignore_errors", [](const Dataset& d) { return d.ignore_errors(); }},
      {"assert_cardinality", [](const Dataset& d) { return d.assert_cardinality(8); }},
      {"with_options", [](const Dataset& d) { return d.with_options({.deterministic = true}); }},
      {"auto_shard", [](const Dataset& d) { return auto_shard(d, 2, 1); }},
  });
}

TEST_F(RepeatedState, OfStagesThatJoinElementsAndPartThem) {
  expect_all_resume({
      {"batch", [](const Dataset& d) { return d.batch(3); }},
      {"batch, parallel", [](const Dataset& d) { return d.batch(3, {.num_parallel_calls = 2}); }},
      {"map and batch", [](const Dataset& d) { return d.map(next_one).batch(3); }},
      {"padded_batch", [](const Dataset& d) { return d.map(copies).padded_batch(3); }},
      {"bucket_by_sequence_length",
       [](const Dataset& d) {
         return d.map(copies).bucket_by_sequence_length([](const Tensor& e) { return e.dim(0); },
                                                        {4}, {2, 2});
       }},
      {"unbatch", [](const Dataset& d) { return d.batch(3).unbatch(); }},
      {"rebatch", [](const Dataset& d) { return d.batch(3).rebatch(2); }},
      {"window",
       [](const Dataset& d) {
         return d.window(3, {.shift = 2}).flat_map([](const Tensor& w) { return from_variant(w); });
       }},
      {"group_by_window",
       [](const Dataset& d) {
         return d.group_by_window([](const Tensor& x) { return value(x) % 2; },
                                  [](std::int64_t, const Dataset& w) { return w.shuffle(2); }, 2);
       }},
      {"flat_map", [](const Dataset& d) { return d.flat_map(two); }},
      {"interleave", [](const Dataset& d) { return d.interleave(two, {.cycle_length = 2}); }},
      {"interleave, parallel",
       [](const Dataset& d) {
         return d.interleave(two, {.cycle_length = 2, .num_parallel_calls = 2});
       }},
  });
}

// Inputs that have ended are dropped, but for their random state.
TEST_F(RepeatedState, OfStagesWithSeveralInputs) {
  const Dataset turns = range(2).repeat();
  expect_all_resume({
      {"zip",
       [](const Dataset& d) {
         return zip({d, tens()});
       }},
      {"concatenate", [](const Dataset& d) { return d.concatenate(range(10, 13)); }},
      {"concatenate, second", [](const Dataset& d) { return range(10, 13).concatenate(d); }},
      {"concatenate, both", [](const Dataset& d) { return d.concatenate(tens()); }},
      {"concatenate, of one", [](const Dataset& d) { return d.concatenate(d); }},
      {"concatenate, three",
       [](const Dataset& d) { return range(2).concatenate(d).concatenate(tens()); }},
      {"concatenate, random",
       [](const Dataset& d) { return d.map(noisy).concatenate(d.map(noisy)); }},
      {"concatenate, of other functions",
       [](const Dataset& d) {
         const auto lucky = [](const Tensor&) { return random::uniform({}).item<float>() < 2; };
         return d.filter(lucky)
             .take_while(lucky)
             .interleave([](const Tensor& x) { return two(x).take(1); }, {.cycle_length = 2})
             .concatenate(range(3));
       }},
      {"concatenate, take", [](const Dataset& d) { return d.take(5).concatenate(range(3)); }},
      {"concatenate, one order",
       [](const Dataset&) {
         return range(6).shuffle(6, {.reshuffle_each_iteration = false}).concatenate(range(3));
       }},
      {"concatenate, cache", [](const Dataset& d) { return d.cache().concatenate(range(3)); }},
      {"concatenate, cache of rows",
       [](const Dataset&) {
         return from_tensor_slices(Tensor{1, 2, 3, 4, 5})
             .shuffle(4)
             .cache()
             .concatenate(from_tensor_slices(Tensor{7, 8}));
       }},
      {"concatenate, repeated",
       [](const Dataset& d) { return d.repeat(2).concatenate(tens().repeat(2)); }},
      {"concatenate, behind threads",
       [](const Dataset& d) { return d.prefetch(2).concatenate(tens().prefetch(2)).prefetch(3); }},
      {"choose",
       [=](const Dataset& d) {
         return choose_from_datasets({d, tens()}, turns);
       }},
      {"choose, until all end",
       [](const Dataset& d) {
         return choose_from_datasets({d, tens()}, range(2).repeat(12).shuffle(9), false);
       }},
      {"sample",
       [](const Dataset& d) {
         return sample_from_datasets({d, tens()}, {.seed = 4});
       }},
      {"sample, without a seed",
       [](const Dataset& d) {
         return sample_from_datasets({d, tens(), range(3)}, {.rerandomize_each_iteration = true});
       }},
      {"sample, until one ends",
       [](const Dataset& d) {
         return sample_from_datasets({d, tens()}, {.seed = 4, .stop_on_empty_dataset = true});
       }},
      {"sample, then more",
       [](const Dataset& d) {
         return sample_from_datasets({d, tens()}, {.rerandomize_each_iteration = true})
             .concatenate(range(2));
       }},
  });
}

TEST_F(RepeatedState, WhereTheRuntimeHasASeed) {
  expect_resumes([] {
    random::set_seed(7);
    return range(5).shuffle(4).map(noisy).concatenate(range(6).shuffle(5).map(noisy)).repeat(3);
  });
}

TEST_F(RepeatedState, OfResampledClasses) {
  const auto of_three = [](const Element& e) {
    return cast(floormod(e[0], std::int64_t{3}), int32);
  };
  for (const bool known : {true, false}) {
    const std::vector<float> initial =
        known ? std::vector<float>{0.3f, 0.3f, 0.4f} : std::vector<float>();
    for (const std::optional<std::int64_t> seed : {std::optional<std::int64_t>(3), {}}) {
      const auto make = [&] {
        return range(20).shuffle(9).rejection_resample(of_three, {0.2f, 0.3f, 0.5f},
                                                       {.initial_dist = initial, .seed = seed});
      };
      const Dataset original = make().repeat(2);
      for (const std::size_t stop : {0, 7, 21}) {
        Iterator it = original.iterator();
        events(it, stop);
        const std::string saved = it.save();
        const Dataset other = make().repeat(2);
        Iterator restored = other.iterator();
        events(restored, 1);
        restored.restore(saved);
        EXPECT_EQ(events(restored), events(it)) << stop;
        EXPECT_EQ(events(original), events(other)) << stop;
      }
    }
  }
}

TEST_F(RepeatedState, OfSplitsAndFiles) {
  const Folder folder;
  for (const char* name : {"a", "b", "c", "d"}) fs::write_file(folder.file(name), name);
  for (const std::optional<std::int64_t> seed : {std::optional<std::int64_t>(3), {}}) {
    const ListFilesOptions options{.seed = seed};
    expect_resumes([&] { return list_files(folder.file("*"), options).repeat(3); });
    expect_resumes([&] {
      return list_files(folder.file("*"), options)
          .concatenate(list_files(folder.file("a")))
          .repeat(3);
    });
    expect_resumes([&] {
      const auto [first, second] = range(8).shuffle(3).split(0.5, seed);
      return second.concatenate(first).repeat(3);
    });
  }
}

TEST_F(RepeatedState, OfThreadsThatKeepNoOrder) {
  std::int64_t one = 1;  // held: such a function is called
  const auto called = [one](const Tensor& x) { return plus(x, one); };
  const MapOptions any{.num_parallel_calls = 3, .deterministic = false};
  const Stages stages = {
      {"map", [&](const Dataset& d) { return d.map(called, any); }},
      {"batch",
       [&](const Dataset& d) {
         return d.map(called).batch(2, {.num_parallel_calls = 3, .deterministic = false}).unbatch();
       }},
      {"interleave",
       [](const Dataset& d) {
         return d.interleave([](const Tensor& x) { return range(value(x), value(x) + 2); },
                             {.cycle_length = 3, .num_parallel_calls = 3, .deterministic = false});
       }},
  };
  for (const auto& [name, stage] : stages) {
    const auto make = [&stage = stage] {
      return stage(range(12).shuffle(5)).repeat(2).concatenate(range(100, 103));
    };
    std::vector<std::int64_t> all = numbers(make());
    std::sort(all.begin(), all.end());
    for (std::size_t stop = 0; stop <= all.size(); ++stop) {
      Iterator it = make().iterator();
      std::vector<std::int64_t> given = numbers(it, stop);
      const std::string saved = it.save();
      Iterator restored = make().iterator();
      restored.restore(saved);
      const std::vector<std::int64_t> others = numbers(restored);
      given.insert(given.end(), others.begin(), others.end());
      std::sort(given.begin(), given.end());
      EXPECT_EQ(given, all) << name << ", saved after " << stop;
    }
  }
}

}  // namespace
}  // namespace tandem::data
