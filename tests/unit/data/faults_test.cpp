#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/file_datasets.h"
#include "tandem/fs/file_system.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/image_codec_ops.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace stdfs = std::filesystem;

std::string line(Iterator& it) { return it.next()[0].item<std::string>(); }

template <class Options>
Options reading(std::int64_t parallel) {
  Options options;
  options.num_parallel_reads = parallel;
  return options;
}

TEST(Faults, FilesThatVanish) {
  const Folder folder;
  std::vector<std::string> files;
  for (const char* name : {"a", "b", "c"}) files.push_back(folder.file(name));
  for (const std::int64_t parallel : {0, 2}) {
    const std::pair<const char*, Dataset> datasets[] = {
        {"TextLine", TextLineDataset(files, {.num_parallel_reads = parallel})},
        {"CSV", CsvDataset(files, {string}, reading<CsvOptions>(parallel))},
        {"FixedLengthRecord",
         FixedLengthRecordDataset(files, 1, reading<FixedLengthRecordOptions>(parallel))},
        {"TFRecord", TFRecordDataset(files, reading<TFRecordOptions>(parallel))},
    };
    for (const auto& [name, dataset] : datasets) {
      SCOPED_TRACE(name);
      for (const std::string& file : files) {
        const std::string content = stdfs::path(file).filename();
        if (std::string(name) == "TFRecord") {
          TFRecordWriter writer(file);
          writer.write(content);
          writer.close();
        } else {
          fs::write_file(file, content);
        }
      }
      auto it = dataset.iterator();
      stdfs::remove(files[1]);
      std::vector<std::string> elements;
      std::string message;
      for (int i = 0; i < 3; ++i) {
        try {
          elements.push_back(line(it));
        } catch (const NotFoundError& error) {
          message = error.what();
        }
      }
      EXPECT_THAT(elements, ::testing::UnorderedElementsAre("a", "c"));
      // Where each file is read on its own it is the first element of that.
      EXPECT_THAT(message,
                  AllOf(HasSubstr(files[1]), HasSubstr(std::string("in ") + name + ", element " +
                                                       (parallel == 0 ? "1" : "0"))));
      Element end;
      EXPECT_FALSE(it.next(end));
    }
  }
}

TEST(Faults, FilesThatShrinkWhileTheyAreRead) {
  const Folder folder;
  const std::string path = folder.file("records");
  TFRecordWriter writer(path);
  for (int i = 0; i < 100; ++i) writer.write(std::string(1000, 'x'));
  writer.close();
  TFRecordOptions options;
  options.buffer_size = 4096;
  auto it = TFRecordDataset(path, options).iterator();
  EXPECT_EQ(line(it).size(), 1000u);
  stdfs::resize_file(path, 50500);
  int whole = 1;
  std::string message;
  for (;;) {
    try {
      Element element;
      if (!it.next(element)) break;
      ++whole;
    } catch (const DataLossError& error) {
      message = error.what();
    }
  }
  EXPECT_EQ(whole, 49);
  EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("in TFRecord, element 49")));
}

TEST(Faults, FoldersThatCannotBeRead) {
  const Folder folder;
  const std::string loop = folder.file("loop");
  stdfs::create_symlink(loop, loop);
  EXPECT_THROW(numbers(TextLineDataset(loop + "/file")), InvalidArgumentError);
  EXPECT_THROW(list_files(loop + "/*.txt"), Error);
  const std::string file = folder.file("file");
  fs::write_file(file, "x");
  EXPECT_THROW(numbers(TextLineDataset(file + "/below")), FailedPreconditionError);
  EXPECT_THROW(numbers(TextLineDataset(folder.file(""))), FailedPreconditionError);
  EXPECT_THROW(numbers(range(3).cache(file + "/cache")), FailedPreconditionError);
}

// Permissions do not hold for the superuser, who steps down meanwhile.
class Unprivileged {
 public:
  Unprivileged() { EXPECT_EQ(seteuid(super_ ? 65534 : geteuid()), 0); }
  ~Unprivileged() { EXPECT_EQ(seteuid(super_ ? 0 : geteuid()), 0); }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  const bool super_ = geteuid() == 0;
};

TEST(Faults, FoldersThatMayNotBeRead) {
  const Folder folder;
  stdfs::permissions(folder.file(""), stdfs::perms::all);
  const std::string open = folder.file("open"), closed = folder.file("closed");
  for (const std::string& path : {open, closed}) {
    stdfs::create_directory(path);
    fs::write_file(path + "/file", "x\n");
  }
  stdfs::permissions(closed, stdfs::perms::none);
  {
    const Unprivileged user;
    EXPECT_THAT(
        message_of_thrown<PermissionDeniedError>(
            [&] { TextLineDataset(closed + "/file").iterator().next(); }),
        AllOf(HasSubstr(closed + "/file; Permission denied"), HasSubstr("in TextLine, element 0")));
    EXPECT_THAT(message_of_thrown<PermissionDeniedError>([&] {
                  from_tensors(Tensor(closed + "/file"))
                      .map([](const Tensor& path) { return io::read_file(path); })
                      .iterator()
                      .next();
                }),
                AllOf(HasSubstr(closed + "/file; Permission denied"),
                      HasSubstr("in map, element 0 (from \"" + closed + "/file\")")));
    for (const char* pattern : {"/*", "/file", "/*/file", "/below/*"}) {
      EXPECT_THAT(message_of_thrown<PermissionDeniedError>([&] { list_files(closed + pattern); }),
                  HasSubstr(closed))
          << pattern;
    }
    EXPECT_THAT(
        message_of_thrown<PermissionDeniedError>([&] { numbers(range(3).cache(closed + "/c")); }),
        AllOf(HasSubstr(closed), HasSubstr("in cache")));
    EXPECT_THAT(message_of_thrown<PermissionDeniedError>(
                    [&] { numbers(range(3).snapshot(closed + "/s")); }),
                AllOf(HasSubstr(closed), HasSubstr("in snapshot")));
    // Where wildcards lead there, it is left out.
    for (const char* pattern : {"*/*", "*/file"}) {
      testing::internal::CaptureStderr();
      std::vector<std::string> found;
      for (const Element& path : list_files(folder.file(pattern))) {
        found.push_back(path[0].item<std::string>());
      }
      EXPECT_EQ(found, std::vector<std::string>{open + "/file"});
      EXPECT_THAT(testing::internal::GetCapturedStderr(),
                  AllOf(HasSubstr(closed), HasSubstr("Permission denied")));
    }
  }
  stdfs::permissions(closed, stdfs::perms::owner_all);
}

TEST(Faults, APatternPassesOverPlainFiles) {
  const Folder folder;
  stdfs::create_directory(folder.file("below"));
  fs::write_file(folder.file("below/file"), "x");
  fs::write_file(folder.file("plain"), "x");
  const Dataset found = list_files(folder.file("*/file"));
  EXPECT_EQ(found.cardinality(), 1);
}

TEST(Faults, AnErrorOfAWholeFileIsReportedOnce) {
  const Folder folder;
  const std::vector<std::string> files = {folder.file("empty"), folder.file("cut"),
                                          folder.file("none")};
  fs::write_file(files[0], "");
  fs::write_file(files[1], std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10));
  fs::write_file(files[2], "no gzip at all");
  TFRecordOptions records;
  records.compression_type = "GZIP";
  FixedLengthRecordOptions fixed;
  fixed.compression_type = "GZIP";
  CsvOptions csv;
  csv.compression_type = "GZIP";
  for (const Dataset& ds :
       {Dataset(TFRecordDataset(files, records)),
        Dataset(TextLineDataset(files, {.compression_type = "GZIP"})),
        Dataset(FixedLengthRecordDataset(files, 2, fixed)),
        Dataset(CsvDataset(files, {string}, csv)), Dataset(TextLineDataset(folder.file("")))}) {
    const auto count = std::make_shared<ErrorCount>();
    for (const Element& element : ds.ignore_errors({.count = count})) {
      ADD_FAILURE() << element[0].to_string();
    }
    EXPECT_GE(count->count(), 1);
    EXPECT_LE(count->count(), 6);
  }
}

// Runs `write` in a process whose files may have 8 KiB, as on a disk that is full; it must throw a
// ResourceExhaustedError that names `path`, and leave the folder empty.
void expect_full(const Folder& folder, const std::string& path,
                 const std::function<void()>& write) {
  const auto run = [&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8192, 8192};
    setrlimit(RLIMIT_FSIZE, &limit);
    int code = 1;
    try {
      write();
    } catch (const ResourceExhaustedError& error) {
      const std::string what = error.what();
      const auto has = [&](const std::string& part) {
        return what.find(part) != std::string::npos;
      };
      code = has(path) && has("which it writes to ") && has("Make room there") ? 0 : 2;
    } catch (const Error&) {
      code = 3;
    }
    std::_Exit(code);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  EXPECT_FALSE(stdfs::exists(path) && !stdfs::is_directory(path));
  for (const auto& entry : stdfs::recursive_directory_iterator(folder.file(""))) {
    EXPECT_TRUE(entry.is_directory()) << entry.path();
  }
}

TEST(Faults, DiskFullWhileWriting) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Folder folder;
  const auto rows = [] {
    return range(100).map(
        [](const Tensor&) { return Tensor::from(std::vector<std::int64_t>(100, 7)); });
  };
  const auto all = [](const Dataset& ds) {
    for ([[maybe_unused]] const Element& element : ds) {
    }
  };
  const std::string cache = folder.file("cache");
  expect_full(folder, cache, [&] { all(rows().cache(cache)); });
  const std::string snap = folder.file("snap");
  expect_full(folder, snap, [&] { all(rows().snapshot(snap, {.num_shards = 2})); });
}

TEST(Faults, DamagedImagesAreCounted) {
  const Folder folder;
  std::vector<std::string> files;
  Array pixels = Array::zeros(DType::kUint8, Shape{40, 30, 3});
  const std::string jpeg = image::encode_jpeg(Tensor(pixels)).item<std::string>();
  const std::string png = image::encode_png(Tensor(pixels)).item<std::string>();
  std::string huge = png;  // announces 2^31 - 1 by 2^31 - 1 pixels
  for (const std::size_t at : {16, 20}) huge.replace(at, 4, std::string("\x7f\xff\xff\xff", 4));
  for (const std::string& bytes : {jpeg, jpeg.substr(0, jpeg.size() / 2), png, png.substr(0, 60),
                                   huge, std::string("GIF?"), std::string(), jpeg}) {
    files.push_back(folder.file(std::to_string(files.size())));
    fs::write_file(files.back(), bytes);
  }
  for (const std::int64_t calls : {0, 3}) {
    const auto count = std::make_shared<ErrorCount>();
    const Dataset ds =
        from_tensor_slices(Tensor(Array::vector(files)))
            .map([](const Tensor& path) { return image::decode_image(io::read_file(path), 3); },
                 {.num_parallel_calls = calls})
            .ignore_errors({.count = count});
    int good = 0;
    for (const Element& element : ds) {
      EXPECT_EQ(element[0].shape(), Shape({40, 30, 3}));
      ++good;
    }
    EXPECT_EQ(good, 3);
    EXPECT_EQ(count->count(), 5);
    const std::vector<std::string> messages = count->messages();
    ASSERT_EQ(messages.size(), 5u);
    const std::vector<std::size_t> broken = {1, 3, 4, 5, 6};
    for (std::size_t i = 0; i < broken.size(); ++i) {
      EXPECT_THAT(messages[i], HasSubstr("in map, element " + std::to_string(broken[i]) +
                                         " (from \"" + files[broken[i]] + "\")"));
    }
  }
}

TEST(Faults, IgnoredErrorsAreLoggedIfAsked) {
  const Dataset ds = range(5).map([](const Tensor& x) {
    if (x.item<std::int64_t>() % 2 == 1) throw DataLossError("odd");
    return x;
  });
  for (const bool wanted : {false, true}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(numbers(ds.ignore_errors({.log_warning = wanted})),
              (std::vector<std::int64_t>{0, 2, 4}));
    const std::string log = testing::internal::GetCapturedStderr();
    if (!wanted) {
      EXPECT_EQ(log, "");
      continue;
    }
    for (const char* element : {"1", "3"}) {
      EXPECT_THAT(log, HasSubstr(std::string("ignore_errors left out an element: odd\n\tin map, "
                                             "element ") +
                                 element));
    }
  }
}

TEST(Faults, ElementsOfUnlikeShapeNameTheBatch) {
  const auto unlike = [] {
    return range(8).map(
        [](const Tensor& x) { return Tensor::from(upto(x.item<std::int64_t>() == 6 ? 3 : 2)); });
  };
  for (const std::int64_t calls : {0, 2}) {
    auto it = unlike().batch(4, {.num_parallel_calls = calls}).iterator();
    EXPECT_EQ(it.next()[0].dim(0), 4);
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { it.next(); }),
                AllOf(HasSubstr("in component 0. First element had shape [2] and element 2 had "
                                "shape [3]"),
                      HasSubstr("in batch, element 1")));
  }
}

TEST(Faults, NothingStaysWhenAnIteratorIsDroppedInTheMiddle) {
  const Folder folder;
  const std::size_t before = threads_at_rest();
  for (int taken = 0; taken < 4; ++taken) {
    auto it = range(1000)
                  .map([](const Tensor& x) { return plus(x, 1); }, {.num_parallel_calls = 3})
                  .snapshot(folder.file("snap"))
                  .batch(2, {.num_parallel_calls = 2})
                  .interleave([](const Tensor& b) { return from_tensors(b).repeat(); },
                              {.cycle_length = 2, .num_parallel_calls = 2})
                  .prefetch(2)
                  .iterator();
    for (int i = 0; i < taken; ++i) it.next();
  }
  EXPECT_EQ(threads_at_rest(), before);
  EXPECT_TRUE(stdfs::is_empty(folder.file("snap")));
}

}  // namespace
}  // namespace tandem::data
