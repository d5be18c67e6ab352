// Errors in functions name the element and the file it comes from; what they leave is not lost.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/fuse.h"
#include "tandem/data/pipeline_stats.h"
#include "tandem/fs/file_system.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/operators.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Images in files, the third of them broken: its bytes are `broken`.
std::vector<std::string> images(const Folder& folder, int count, const std::string& broken) {
  const std::string png =
      image::encode_png(Tensor(Array::zeros(DType::kUint8, Shape{4, 3, 3}))).item<std::string>();
  std::vector<std::string> files;
  for (int i = 0; i < count; ++i) {
    files.push_back(folder.file("image" + std::to_string(i) + ".png"));
    fs::write_file(files.back(), i == 2 ? broken : png);
  }
  return files;
}

Tensor read(Tensor path) { return io::read_file(path); }
Tensor decode(Tensor bytes) { return image::decode_png(bytes, 3); }
Tensor read_and_decode(Tensor path) { return decode(read(path)); }

std::string only_error(const Dataset& dataset) {
  const auto count = std::make_shared<ErrorCount>();
  for (const Element& element : dataset.ignore_errors({.count = count})) {
    EXPECT_EQ(element[0].dtype(), uint8);
  }
  EXPECT_EQ(count->count(), 1);
  return count->messages().empty() ? "" : count->messages()[0];
}

TEST(ErrorOrigin, NamesTheFile) {
  const Folder folder;
  const MapOptions three{.num_parallel_calls = 3};
  // Few elements are not traced. Printable contents look like a name themselves.
  for (const int count : {5, 30}) {
    for (const std::string& broken : {std::string("no PNG at all"), std::string("\x01\x02", 2)}) {
      const std::vector<std::string> files = images(folder, count, broken);
      const Dataset paths = from_tensor_slices(Tensor(Array::vector(files)));
      const std::vector<Dataset> all = {
          paths.map(read_and_decode),
          paths.map(read_and_decode, three),
          paths.map(read).map(decode),
          paths.map(read, three).map(decode, three),
          paths.map(read).map(decode, three),
          paths.map(read, three).map(decode),
          paths.map(read, three).prefetch(2).map(decode),
          paths.map(read)
              .filter([](Tensor bytes) { return bytes.item<std::string>() != ""; })
              .map(decode),
          paths.map(read).take(4).skip(1).map(decode),
          paths.map(read)
              .filter([](Tensor bytes) { return decode(bytes).rank() == 3; })
              .map(decode),
          paths.map(read_and_decode).batch(1),
          paths.map(read).map(decode).batch(1),
          paths.map(read).map(decode, three).batch(1),
          paths.map(read, three).map(decode).batch(1),
      };
      for (std::size_t i = 0; i < all.size(); ++i) {
        for (const Dataset& ds : {all[i], unfused(all[i])}) {
          EXPECT_THAT(only_error(ds), AllOf(HasSubstr("in "), HasSubstr("element "),
                                            HasSubstr("from \"" + files[2] + "\"")))
              << count << " files, pipeline " << i;
        }
      }
      EXPECT_THAT(only_error(paths.map(read).map(decode)), HasSubstr("in map, element 2 ("));
    }
  }
}

TEST(ErrorOrigin, QuotesWhatAFunctionTookIfItCanBeRead) {
  const auto message = [](const std::string& text) {
    const Dataset ds = from_tensors(std::vector<Tensor>{Tensor(text), Tensor(7)});
    return message_of_thrown<Error>(
        [&] { ds.map([](Tensor bytes, Tensor) { return decode(bytes); }).iterator().next(); });
  };
  for (const std::string name : {"a b/\xC3\xA9.png", "\xe2\x82\xac", "\xf0\x9f\x90\x88.gif"}) {
    EXPECT_THAT(message(name), HasSubstr("element 0 (from \"" + name + "\")"));
  }
  for (const std::string& text :
       {std::string(), std::string("two\nlines"), std::string(2000, 'x'),
        std::string("\xff\xd8\xff"), std::string("caf\xe9"), std::string("\xe2\x82"),
        std::string("\xc0\xaf"), std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"),
        std::string("\xc2\x80")}) {
    EXPECT_THAT(message(text), AllOf(HasSubstr("in map, element 0"), Not(HasSubstr("from \""))));
  }
}

// Fails where it meets `x` in the elements.
Tensor fails_at_three(Tensor x) { return x + floordiv(std::int64_t{0}, x - std::int64_t{3}); }
Tensor fails_at_nine(Tensor x) { return x + floordiv(std::int64_t{0}, x - std::int64_t{9}); }

// Nodes of maps that run as one have other names, and may have been made elsewhere.
std::vector<std::string> plain_events(const Dataset& dataset) {
  std::vector<std::string> all = events(dataset);
  for (std::string& event : all) {
    if (const auto at = event.find("FloorDiv_1"); at != std::string::npos) event.erase(at + 8, 2);
    const auto made = event.find(" made\n");
    if (made != std::string::npos) event.erase(made, event.find("]]", made) - made);
  }
  return all;
}

TEST(ErrorOrigin, CountsElementsAlikeWhereMapsRunAsOne) {
  for (const std::int64_t calls : {0, 2}) {
    const MapOptions options{.num_parallel_calls = calls};
    const Dataset two = range(20).map(fails_at_three, options).map(fails_at_nine, options);
    EXPECT_EQ(plain_events(two), plain_events(unfused(two)));
    EXPECT_THAT(events(two)[3], HasSubstr("in map, element 3"));
    EXPECT_THAT(events(two)[9], HasSubstr("in map, element 9"));
    EXPECT_EQ(plain_events(two.batch(2)), plain_events(unfused(two).batch(2)));
    const Dataset filtered =
        range(20)
            .filter([](Tensor x) {
              return (fails_at_three(x) % std::int64_t{2}).item<std::int64_t>() == 1;
            })
            .map(fails_at_nine, options);
    EXPECT_EQ(events(filtered), events(unfused(filtered)));
  }
}

// Everything but 7, where a condition fails.
std::vector<std::int64_t> without_seven(int passes) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < 20; ++i) {
    if (i != 7) all.insert(all.end(), static_cast<std::size_t>(passes), i);
  }
  return all;
}

TEST(ErrorOrigin, LosesNoRowsDrawnBeforeAnError) {
  const Dataset rows = from_tensor_slices(Tensor::from(upto(20))).filter([](const Tensor& x) {
    if (x.item<std::int64_t>() == 7) throw DataLossError("seven");
    return true;
  });
  struct Case {
    Dataset dataset;
    int passes;
  };
  const std::vector<Case> cases = {{rows, 1},
                                   {rows.shuffle(4, {.seed = 1}), 1},
                                   {rows.shuffle(30, {.seed = 1}), 1},
                                   {rows.repeat(3), 3},
                                   {rows.shuffle(4, {.seed = 1}).repeat(3), 3},
                                   {unfused(rows.shuffle(4, {.seed = 1}).repeat(3)), 3},
                                   {rows.shard(1, 0), 1},
                                   {rows.skip(0).take(30), 1}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const std::int64_t size : {1, 5, 8}) {
      std::vector<std::int64_t> seen;
      for (const Element& batch : cases[i].dataset.batch(size).ignore_errors()) {
        for (const std::int64_t x : batch[0].to_vector<std::int64_t>()) seen.push_back(x);
      }
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(seen, without_seven(cases[i].passes))
          << "pipeline " << i << ", batches of " << size;
    }
    // So too where an iteration goes on from a state.
    Iterator it = cases[i].dataset.batch(5).iterator();
    EXPECT_THROW(
        for (;;) {
          Element element;
          if (!it.next(element)) break;
        },
        DataLossError);
    Iterator other = cases[i].dataset.batch(5).iterator();
    other.restore(it.save());
    EXPECT_EQ(events(other), events(it)) << i;
  }
}

// These are drawn some at a time.
TEST(ErrorOrigin, LosesNoRowsOfALargeBatch) {
  constexpr std::int64_t kCount = 10000, kBad = 6000;
  const Dataset rows = from_tensor_slices(Tensor::from(upto(kCount))).filter([](const Tensor& x) {
    if (x.item<std::int64_t>() == kBad) throw DataLossError("six thousand");
    return true;
  });
  std::vector<std::int64_t> expected = upto(kCount);
  expected.erase(expected.begin() + kBad);
  for (const std::int64_t calls : {0, 2}) {
    const auto pipeline = [&] { return rows.batch(9000, {.num_parallel_calls = calls}); };
    std::vector<std::int64_t> seen;
    std::vector<std::size_t> sizes;
    for (const Element& batch : pipeline().ignore_errors()) {
      const auto values = batch[0].to_vector<std::int64_t>();
      sizes.push_back(values.size());
      seen.insert(seen.end(), values.begin(), values.end());
    }
    EXPECT_EQ(seen, expected) << calls << " calls";
    EXPECT_EQ(sizes, (std::vector<std::size_t>{9000, 999}));
    Iterator it = pipeline().iterator();
    EXPECT_THROW(it.next(), DataLossError);
    Iterator other = pipeline().iterator();
    other.restore(it.save());
    EXPECT_EQ(it.next()[0].dim(0), 9000);
    EXPECT_EQ(other.next()[0].to_vector<std::int64_t>(),
              std::vector<std::int64_t>(expected.begin(), expected.begin() + 9000));
    EXPECT_EQ(rest(other), rest(it));
    // The rows of another dataset may be fewer.
    Iterator few = from_tensor_slices(Tensor::from(upto(10)))
                       .filter([](const Tensor&) { return true; })
                       .batch(9000, {.num_parallel_calls = calls})
                       .iterator();
    Iterator failed = pipeline().iterator();
    EXPECT_THROW(failed.next(), DataLossError);
    EXPECT_THROW(few.restore(failed.save()), InvalidArgumentError);
  }
}

TEST(ErrorOrigin, ObservedPassesSkipAsOthersDo) {
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  auto it = range(kMany).skip(kMany - 3).iterator({.observe = true});
  EXPECT_EQ(numbers(it), (std::vector<std::int64_t>{kMany - 3, kMany - 2, kMany - 1}));
  const PipelineStats stats = it.stats();
  ASSERT_EQ(stats.stages.size(), 2u);
  EXPECT_EQ(stats.stages[0].elements, 3);
  EXPECT_EQ(stats.stages[1].name, "Range");
  EXPECT_EQ(stats.stages[1].elements, 3);
}

}  // namespace
}  // namespace tandem::data
