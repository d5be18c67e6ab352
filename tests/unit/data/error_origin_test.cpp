// Errors in functions name the element and the file it comes from; what they leave is not lost.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/file_datasets.h"
#include "tandem/data/fuse.h"
#include "tandem/data/pipeline_stats.h"
#include "tandem/data/sharding.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/example.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/example_ops.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/string_ops.h"

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

// Paths of images of which number 4 is lower than the others.
std::vector<std::string> images_of_two_sizes(const Folder& folder, int count) {
  std::vector<std::string> files;
  for (int i = 0; i < count; ++i) {
    files.push_back(folder.file("image" + std::to_string(10 + i) + ".png"));
    const Shape shape{i == 4 ? 7 : 8, 5, 3};
    fs::write_file(
        files.back(),
        image::encode_png(Tensor(Array::zeros(DType::kUint8, shape))).item<std::string>());
  }
  return files;
}

std::string first_message(const Dataset& dataset) {
  return message_of_thrown<Error>([&] {
    for ([[maybe_unused]] const Element& element : dataset) {
    }
  });
}

Tensor one_row(Tensor path) { return expand_dims(read_and_decode(path), 0); }
// Images, but of the low one its pixels alone.
Tensor of_two_ranks(Tensor path) {
  const Tensor image = read_and_decode(path);
  return image.dim(0) == 7 ? reshape(image, {-1}) : image;
}

TEST(ErrorOrigin, NamesTheFileOfWhatDoesNotFitIntoABatch) {
  const Folder folder;
  for (const int count : {6, 30}) {  // few elements are not traced
    const std::vector<std::string> files = images_of_two_sizes(folder, count);
    const Dataset paths = from_tensor_slices(Tensor(Array::vector(files)));
    const Dataset listed = list_files(files, {.shuffle = false});
    const BatchOptions two{.num_parallel_calls = 2};
    const auto ranks = [&] { return paths.map(of_two_ranks, {.traced = false}); };
    struct Case {
      Dataset dataset;
      std::string stage;
    };
    const std::vector<Case> cases = {
        {paths.map(read_and_decode).batch(3), "in batch, element 1"},
        {listed.map(read_and_decode).batch(3), "in batch, element 1"},
        {paths.map(read_and_decode, {.num_parallel_calls = 2}).batch(3), "in batch, element 1"},
        {paths.map(read).map(decode).batch(3), "in batch, element 1"},
        {paths.map(read_and_decode).prefetch(2).batch(3), "in batch, element 1"},
        {paths.map(read_and_decode).batch(3, two), "in batch, element 1"},
        {paths.map(read_and_decode).enumerate().batch(3), "in batch, element 1"},
        {zip({paths.map(read_and_decode), range(30)}).batch(3), "in batch, element 1"},
        {paths.map(read_and_decode).cache().batch(3), "in batch, element 1"},
        {paths.flat_map([](Tensor path) { return from_tensors(path).map(read_and_decode); })
             .batch(3),
         "in batch, element 1"},
        {paths
             .interleave([](Tensor path) { return from_tensors(path).map(read_and_decode); },
                         {.cycle_length = 1, .num_parallel_calls = 2})
             .batch(3),
         "in batch, element 1"},
        {ranks().padded_batch(3), "in padded_batch, element 1"},
        {ranks().bucket_by_sequence_length([](const Tensor&) { return std::int64_t{1}; }, {4},
                                           {3, 3}),
         "in bucket_by_sequence_length, element 5"},
        {paths.map(read_and_decode)
             .bucket_by_sequence_length([](const Tensor&) { return std::int64_t{1}; }, {4}, {3, 3},
                                        {.no_padding = true}),
         "in bucket_by_sequence_length, element 5"},
        {paths.map(read_and_decode)
             .group_by_window([](const Tensor&) { return std::int64_t{0}; },
                              [](std::int64_t, const Dataset& window) { return window.batch(3); },
                              3),
         "in batch, element 0"},
        {paths.map(read_and_decode).window(3).flat_map([](Tensor w) {
           return from_variant(w).batch(3);
         }),
         "in batch, element 0"},
    };
    for (std::size_t i = 0; i < cases.size(); ++i) {
      for (const Dataset& ds : {cases[i].dataset, unfused(cases[i].dataset)}) {
        EXPECT_THAT(first_message(ds), HasSubstr(cases[i].stage + " (from \"" + files[4] +
                                                 "\"; the first from \"" + files[3] + "\")"))
            << count << " files, pipeline " << i;
      }
    }
    const Dataset rows = paths.map(one_row).rebatch(3);
    for (const Dataset& ds : {rows, unfused(rows)}) {
      EXPECT_THAT(first_message(ds), HasSubstr("in rebatch, element 4 (from \"" + files[4] +
                                               "\"; the first from \"" + files[3] + "\")"));
    }
    // A shuffle puts it anywhere, the first of a batch too.
    for (const std::int64_t passes : {1, 2}) {
      EXPECT_THAT(first_message(paths.map(read_and_decode).shuffle(9).repeat(passes).batch(6)),
                  HasSubstr("from \"" + files[4] + "\""));
    }
  }
}

Tensor number_of(Tensor text) { return strings::to_number(text, int64); }

// Expects the place of the error of a dataset whose element 2 is no number and lies at byte `byte`
// of `file`.
void expect_place(const Dataset& texts, const std::string& file, int byte) {
  const std::string place = "from \"" + file + "\", at byte " + std::to_string(byte) + ")";
  const std::string in_map = "in map, element 2 (";
  const MapOptions two{.num_parallel_calls = 2};
  for (const Dataset& ds :
       {texts.map(number_of), texts.map(number_of, two), texts.map(number_of).batch(2),
        texts.map(number_of, two).batch(2), texts.prefetch(2).map(number_of),
        texts.map([](Tensor x) { return x; }).map(number_of), texts.cache().map(number_of)}) {
    EXPECT_THAT(first_message(ds), AllOf(HasSubstr(in_map), HasSubstr(place)));
    EXPECT_THAT(first_message(unfused(ds)), AllOf(HasSubstr(in_map), HasSubstr(place)));
  }
  for (const Dataset& ds :
       {texts.shuffle(3).map(number_of), texts.shuffle(3).repeat(2).map(number_of),
        texts.repeat(2).map(number_of),
        texts.filter([](const Tensor&) { return true; }).map(number_of)}) {
    EXPECT_THAT(first_message(ds), AllOf(HasSubstr("in map, element "), HasSubstr(place)));
  }
}

TEST(ErrorOrigin, NamesTheFileAndThePlaceOfARecord) {
  const Folder folder;
  const std::string lines = folder.file("lines"), records = folder.file("records"),
                    fixed = folder.file("fixed"), table = folder.file("table"),
                    zipped = folder.file("zipped");
  fs::write_file(lines, "11\n12\nab\n14\n");
  fs::write_file(fixed, "#1112ab14");
  fs::write_file(table, "name\n11\n12\nab\n14\n");
  for (const bool compressed : {false, true}) {
    TFRecordWriterOptions options;
    if (compressed) options.compression_type = "GZIP";
    TFRecordWriter writer(compressed ? zipped : records, options);
    for (const char* text : {"11", "12", "ab", "14"}) writer.write(text);
    writer.close();
  }
  expect_place(TextLineDataset(lines), lines, 6);
  expect_place(TFRecordDataset(records), records, 2 * 18);
  TFRecordOptions gzip;
  gzip.compression_type = "GZIP";
  expect_place(TFRecordDataset(zipped, gzip), zipped, 2 * 18);
  FixedLengthRecordOptions header;
  header.header_bytes = 1;
  expect_place(FixedLengthRecordDataset(fixed, 2, header), fixed, 5);
  CsvOptions named;
  named.header = true;
  expect_place(CsvDataset(table, {string}, named), table, 11);
  // Several files at a time, or one after the other.
  TFRecordOptions parallel;
  parallel.num_parallel_reads = 2;
  const std::string place = "from \"" + records + "\", at byte 36)";
  for (const Dataset& ds :
       {Dataset(TFRecordDataset({records, records}, parallel)),
        list_files(records).interleave([](const Tensor& f) { return TFRecordDataset(f); }),
        list_files(records).interleave([](const Tensor& f) { return TFRecordDataset(f); },
                                       {.cycle_length = 2, .num_parallel_calls = 2}),
        TFRecordDataset(records).concatenate(TFRecordDataset(records)),
        choose_from_datasets({range(0).map([](const Tensor&) { return Tensor(std::string()); }),
                              TFRecordDataset(records)},
                             from_tensor_slices(Tensor::from(std::vector<std::int64_t>(4, 1))))}) {
    EXPECT_THAT(first_message(ds.map(number_of)), HasSubstr(place));
  }
  // A batch has the origin of its first element.
  for (const Dataset& ds : {TFRecordDataset(records).batch(2),
                            TFRecordDataset(records).map([](Tensor x) { return x; }).batch(2)}) {
    EXPECT_THAT(first_message(ds.map(number_of)), HasSubstr("in map, element 1 (from \"" + records +
                                                            "\", at byte 36, and what follows)"));
  }
}

TEST(ErrorOrigin, OfACorruptExample) {
  const Folder folder;
  const std::string file = folder.file("train.tfrecord");
  TFRecordWriter writer(file);
  for (std::int64_t i = 0; i < 6; ++i) {
    io::Example example;
    example.set("a", std::vector<std::int64_t>{i});
    writer.write(i == 2 ? std::string("\x0a\x7f junk") : example.serialize());
  }
  writer.close();
  const auto parse = [](Tensor record) {
    return io::parse_single_example(record, {{"a", io::FixedLenFeature{{}, int64}}})["a"];
  };
  const std::string place = " (from \"" + file + "\", at byte ";
  EXPECT_THAT(first_message(TFRecordDataset(file).map(parse)),
              HasSubstr("in map, element 2" + place));
  EXPECT_THAT(first_message(TFRecordDataset(file).shuffle(3).map(parse)), HasSubstr(place));
}

// A path that was read from a list names both files.
TEST(ErrorOrigin, NamesTheListThatAFileStoodIn) {
  const Folder folder;
  const std::vector<std::string> files = images(folder, 5, "\x01\x02");
  const std::string list = folder.file("list");
  std::string lines;
  for (const std::string& file : files) lines += file + "\n";
  fs::write_file(list, lines);
  const std::string place = "\"" + files[2] + "\", from \"" + list + "\", at byte " +
                            std::to_string(2 * (files[0].size() + 1)) + ")";
  const Dataset paths = TextLineDataset(list);
  EXPECT_THAT(first_message(paths.map(read).map(decode)), HasSubstr(place));
  EXPECT_THAT(first_message(paths.map(read).shuffle(5).map(decode)), HasSubstr(place));
  EXPECT_THAT(first_message(paths.map(read).prefetch(2).map(decode)), HasSubstr(place));
}

TEST(ErrorOrigin, GoesOnWithAState) {
  const Folder folder;
  const std::string file = folder.file("lines");
  fs::write_file(file, "11\n12\n13\n14\nab\n16\n");
  const Dataset lines = TextLineDataset(file);
  const auto second_of_two = [](const Dataset& ds) {
    return ds.window(2, {.drop_remainder = true}).flat_map([](Tensor w) {
      return from_variant(w);
    });
  };
  for (const Dataset& ds :
       {lines.prefetch(9).map(number_of), lines.shuffle(9, {.seed = 1}).map(number_of),
        lines.shuffle(9, {.seed = 1}).repeat(2).map(number_of), lines.cache().map(number_of),
        second_of_two(lines).map(number_of), lines.map(number_of, {.num_parallel_calls = 2}),
        lines.map(number_of).batch(2, {.num_parallel_calls = 2}),
        lines
            .interleave([](const Tensor& x) { return from_tensors(x).repeat(3); },
                        {.cycle_length = 2, .num_parallel_calls = 2})
            .map(number_of)}) {
    for (int taken = 0; taken < 2; ++taken) {
      Iterator it = ds.iterator(), other = ds.iterator();
      for (int i = 0; i < taken; ++i) it.next();
      other.restore(it.save());
      const std::vector<std::string> left = events(it);
      EXPECT_EQ(events(other), left);
      EXPECT_THAT(left, ::testing::Contains(HasSubstr("\"ab\"")));
    }
  }
}

// Each stage that fails by itself says where.
TEST(ErrorOrigin, NamesTheStageOfEveryError) {
  const auto message = [](const Dataset& dataset) { return first_message(dataset); };
  const MapOptions called{.traced = false};
  const Dataset scalars = range(3).map([](Tensor x) { return x; }, called);
  EXPECT_THAT(message(scalars.unbatch()),
              AllOf(HasSubstr("Cannot unbatch"), HasSubstr("in unbatch, element 0")));
  const Dataset unlike = range(1, 4).map(
      [](const Tensor& x) {
        return std::pair(Tensor::from(upto(x.item<std::int64_t>())), Tensor::from(upto(1)));
      },
      called);
  EXPECT_THAT(message(unlike.unbatch()),
              AllOf(HasSubstr("Encountered both 2 and 1"), HasSubstr("in unbatch, element 1")));
  EXPECT_THAT(message(distribute_batch(unlike, 2)),
              AllOf(HasSubstr("distribute_batch needs batches"),
                    HasSubstr("in distribute_batch, element 1")));
  EXPECT_THAT(message(range(3).assert_cardinality(2)),
              HasSubstr("but contained at least 3 elements.\n\tin assert_cardinality, element 2"));
  EXPECT_THAT(message(range(3).assert_cardinality(5)),
              HasSubstr("but contained only 3 elements.\n\tin assert_cardinality, element 3"));
  const Folder folder;
  const std::string path = folder.file("cache");
  numbers(range(5).cache(path));
  std::string bytes = fs::read_file(path);
  bytes[bytes.size() / 2] ^= 1;
  fs::write_file(path, bytes);
  EXPECT_THAT(message(range(5).cache(path)),
              AllOf(HasSubstr(path + " is damaged at offset "), HasSubstr("in cache, element 2")));
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
