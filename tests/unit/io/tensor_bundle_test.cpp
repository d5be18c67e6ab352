#include "tandem/io/tensor_bundle.h"

#include <complex>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"

namespace tandem::io {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TensorBundle : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> files() const { return fs::file_system_of("/").list(folder_.string()); }
  // Replaces the bytes of a file.
  void change(const std::string& name, const std::function<void(std::string&)>& how) const {
    std::string bytes = fs::read_file(path(name));
    how(bytes);
    fs::write_file(path(name), bytes);
  }

  std::filesystem::path folder_;
};

template <class E>
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

Array grid(int rows, int columns) {
  Array array(DType::kFloat, Shape{rows, columns});
  for (int i = 0; i < rows * columns; ++i) array.data<float>()[i] = static_cast<float>(i);
  return array;
}

TEST_F(TensorBundle, KeepsValuesOfEveryKind) {
  const std::vector<std::pair<std::string, Array>> values{
      {"float", grid(3, 2)},
      {"double", Array::vector<double>({1e300, -0.0})},
      {"uint8", Array::vector<std::uint8_t>({1, 200})},
      {"int8", Array::vector<std::int8_t>({-128, 127})},
      {"uint64", Array::vector<std::uint64_t>({~std::uint64_t{0}})},
      {"complex", Array::vector<std::complex<float>>({{1, 2}})},
      {"scalar", Array::scalar<std::int64_t>(7)},
      {"empty", Array(DType::kFloat, Shape{0, 3})},
      {"strings", Array::vector<std::string>({"ab", "", std::string("c\0d", 3)})},
      {"no strings", Array(DType::kString, Shape{0})},
      {"long string", Array::vector<std::string>({std::string(300, 'x')})}};
  TensorBundleWriter writer(path("model"));
  for (const auto& [name, value] : values) writer.add(name, value);
  EXPECT_FALSE(fs::exists(path("model.index"))) << "nothing is to be seen before it is complete";
  writer.finish();
  EXPECT_THAT(files(), ElementsAre("model.data-00000-of-00001", "model.index"));

  const TensorBundleReader reader(path("model"));
  EXPECT_EQ(reader.names().size(), values.size());
  for (const auto& [name, value] : values) {
    EXPECT_TRUE(reader.contains(name));
    EXPECT_EQ(reader.dtype(name), value.dtype()) << name;
    EXPECT_EQ(reader.shape(name), value.shape()) << name;
    EXPECT_EQ(reader.read(name), value) << name;
  }
}

TEST_F(TensorBundle, WritesTheBytesThatTensorFlowWrites) {
  TensorBundleWriter writer(path("m"));
  writer.add("a", Array::vector<float>({1, 2}));
  writer.add("s", Array::vector<std::string>({"ab", "", "cde"}));
  writer.finish();
  const std::string data = fs::read_file(path("m.data-00000-of-00001"));
  EXPECT_EQ(data, std::string("\x00\x00\x80\x3f\x00\x00\x00\x40"
                              "\x02\x00\x03\x1b\x42\x8b\xca"
                              "abcde",
                              20));
  const std::string index = fs::read_file(path("m.index"));
  EXPECT_THAT(index, HasSubstr(std::string("\x08\x01\x12\x04\x12\x02\x08\x02\x28\x08\x35"
                                           "\x59\x3c\xe5\x35",
                                           15)));
  EXPECT_THAT(index, HasSubstr("\xc3\xcf\x0e\x9d"));
  EXPECT_EQ(index.substr(index.size() - 8), "\x57\xfb\x80\x8b\x24\x75\x47\xdb");
}

TEST_F(TensorBundle, ReadsATensorPutTogetherOfSlices) {
  const Array whole = grid(4, 2);
  TensorBundleWriter writer(path("m"));
  const ShapeAndSlice top = parse_shape_and_slice("4 2 0,2:-");
  const ShapeAndSlice bottom = parse_shape_and_slice("4 2 2,2:-");
  Array half(DType::kFloat, Shape{2, 2});
  for (int i = 0; i < 4; ++i) half.data<float>()[i] = static_cast<float>(i);
  writer.add_slice("w", top.shape, top.slice, half);
  for (int i = 0; i < 4; ++i) half.data<float>()[i] = static_cast<float>(i + 4);
  writer.add_slice("w", bottom.shape, bottom.slice, half);
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { writer.add("w", whole); }),
              HasSubstr("Adding duplicate key: w"));
  writer.finish();

  const TensorBundleReader reader(path("m"));
  EXPECT_THAT(reader.names(), ElementsAre("w"));
  EXPECT_EQ(reader.shape("w"), (Shape{4, 2}));
  EXPECT_EQ(reader.read("w"), whole);
  const Array middle = reader.read_slice("w", parse_shape_and_slice("4 2 1,2:1,1").slice);
  EXPECT_EQ(middle.shape(), (Shape{2, 1}));
  EXPECT_EQ(middle.data<float>()[0], 3.f);
  EXPECT_EQ(middle.data<float>()[1], 5.f);
}

TEST_F(TensorBundle, RefusesSlicesThatDoNotFit) {
  for (const char* text : {"abc", "4 2", "4 2 0,2", "4 2 3,2:-", "4 x -:-", "4 2 0,2:1", ""})
    EXPECT_THROW(parse_shape_and_slice(text), InvalidArgumentError) << text;
  TensorBundleWriter writer(path("m"));
  const ShapeAndSlice top = parse_shape_and_slice("4 2 0,2:-");
  EXPECT_THROW(writer.add_slice("w", top.shape, top.slice, grid(3, 2)), InvalidArgumentError);
  writer.add_slice("w", top.shape, top.slice, grid(2, 2));
  writer.finish();
  const TensorBundleReader reader(path("m"));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { reader.read("w"); }),
              HasSubstr("Does not have sufficient slices for partitioned tensor w"));
  EXPECT_EQ(reader.read_slice("w", top.slice), grid(2, 2));
}

TEST_F(TensorBundle, MergesShards) {
  for (const char* name : {"a", "b"}) {
    TensorBundleWriter writer(path(std::string("parts/") + name));
    writer.add(name, grid(2, 2));
    writer.finish();
  }
  merge_tensor_bundles({path("parts/a"), path("parts/b")}, path("all"));
  EXPECT_THAT(files(),
              ElementsAre("all.data-00000-of-00002", "all.data-00001-of-00002", "all.index"));
  const TensorBundleReader reader(path("all"));
  EXPECT_THAT(reader.names(), ElementsAre("a", "b"));
  EXPECT_EQ(reader.read("b"), grid(2, 2));
  EXPECT_THROW(merge_tensor_bundles({path("none")}, path("c")), InvalidArgumentError);
  EXPECT_THROW(merge_tensor_bundles({path("none")}, path("c"), {.allow_missing = true}),
               InvalidArgumentError);
}

TEST_F(TensorBundle, LeavesNothingBehindWhenGivenUp) {
  {
    TensorBundleWriter writer(path("m"));
    writer.add("x", grid(2, 2));
    EXPECT_THROW(writer.add("x", grid(2, 2)), InvalidArgumentError);
    EXPECT_THROW(writer.add("", grid(2, 2)), InvalidArgumentError);
    EXPECT_THAT(error_of<InvalidArgumentError>([&] { writer.add("y", Array()); }),
                HasSubstr("'y': the array is empty"));
    EXPECT_THROW(writer.add_slice("y", {4}, {{{0, 2}}}, Array()), InvalidArgumentError);
  }
  EXPECT_THAT(files(), ElementsAre());
  EXPECT_THROW(TensorBundleWriter(path("no/such/folder/m")), NotFoundError);
}

TEST_F(TensorBundle, ReportsWhatIsMissingOrDamaged) {
  EXPECT_THAT(
      error_of<NotFoundError>([&] { TensorBundleReader reader(path("m")); }),
      StartsWith(
          "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " +
          path("m")));
  TensorBundleWriter writer(path("m"));
  writer.add("x", grid(2, 2));
  writer.add("s", Array::vector<std::string>({"ab", "c"}));
  writer.finish();
  EXPECT_EQ(error_of<NotFoundError>([&] { TensorBundleReader(path("m")).read("nope"); }),
            "Key nope not found in checkpoint");
  EXPECT_THROW(TensorBundleReader(path("m")).read(""), NotFoundError);

  const std::string data = "m.data-00000-of-00001";
  change(data, [](std::string& bytes) { bytes[5] ^= 1; });
  EXPECT_THAT(error_of<DataLossError>([&] { TensorBundleReader(path("m")).read("x"); }),
              AllOf(HasSubstr("TensorBundle at " + path("m") +
                              " shard 0 (16 bytes): Checksum does not match: stored " +
                              std::to_string(fs::crc32c(
                                  {reinterpret_cast<const char*>(grid(2, 2).raw_data()), 16}))),
                    HasSubstr(". Tensor 'x', file " + path(data) + ".")));
  change(data, [](std::string& bytes) { bytes[5] ^= 1, bytes[16] ^= 1; });
  EXPECT_THAT(
      error_of<DataLossError>([&] { TensorBundleReader(path("m")).read("s"); }),
      AllOf(HasSubstr("The length checksum does not match"), HasSubstr("Tensor 's', file")));
  change(data, [](std::string& bytes) { bytes.resize(8); });
  EXPECT_THAT(error_of<DataLossError>([&] { TensorBundleReader(path("m")).read("x"); }),
              HasSubstr("reaches beyond the end of the file"));
  fs::file_system_of("/").remove(path(data));
  EXPECT_THROW(TensorBundleReader(path("m")).read("x"), NotFoundError);
}

// Large tensors are looked at in the memory of the system's cache, where a file that has become
// shorter would end the process.
TEST_F(TensorBundle, FilesThatAreShortenedWhileTheyAreOpenAreDamaged) {
  TensorBundleWriter writer(path("m"));
  writer.add("x", grid(1500, 1000));
  writer.add("y", grid(20, 1000));
  writer.finish();
  const TensorBundleReader reader(path("m"));
  EXPECT_EQ(reader.read("x"), grid(1500, 1000));
  reader.verify({"x", "y"});
  std::filesystem::resize_file(path("m.data-00000-of-00001"), 3'000'000);
  EXPECT_THAT(error_of<DataLossError>([&] { reader.read("x"); }),
              AllOf(HasSubstr("Read less bytes than requested"), HasSubstr("Tensor 'x'")));
  EXPECT_THAT(error_of<DataLossError>([&] { reader.verify({"y"}); }), HasSubstr("Tensor 'y'"));
}

TEST_F(TensorBundle, ReadersThatWereMovedFromSaySo) {
  TensorBundleWriter writer(path("m"));
  writer.add("w", grid(1, 2));
  writer.finish();
  TensorBundleReader first(path("m"));
  const TensorBundleReader second = std::move(first);
  EXPECT_THAT(second.names(), ElementsAre("w"));
  const auto reported = [&](const std::function<void()>& action) {
    EXPECT_THAT(error_of<FailedPreconditionError>(action), HasSubstr("was moved"));
  };
  reported([&] { first.names(); });
  reported([&] { first.contains("w"); });
  reported([&] { first.dtype("w"); });
  reported([&] { first.shape("w"); });
  reported([&] { first.read("w"); });
  reported([&] { first.read_slice("w", {}); });
}

TEST_F(TensorBundle, SaysHowACheckpointIsNamed) {
  TensorBundleWriter writer(path("m"));
  writer.add("w", grid(1, 2));
  writer.finish();
  EXPECT_THAT(error_of<NotFoundError>([&] { TensorBundleReader r(path("n")); }),
              HasSubstr("there is no file '" + path("n.index") + "'"));
  for (const char* name : {"m.index", "m.data-00000-of-00001"}) {
    EXPECT_THAT(error_of<NotFoundError>([&] { TensorBundleReader r(path(name)); }),
                HasSubstr("Give '" + path("m") + "'"));
  }
  EXPECT_THAT(error_of<NotFoundError>([&] { TensorBundleWriter w(path("no/no/m")); }),
              HasSubstr("no/no; No such file"));
}

TEST_F(TensorBundle, NoticesEveryChangeOfTheIndex) {
  TensorBundleWriter writer(path("m"));
  writer.add("x", grid(2, 2));
  writer.add("xy", grid(1, 2));
  writer.finish();
  const std::string index = fs::read_file(path("m.index"));
  for (std::size_t i = 0; i < index.size(); ++i) {
    std::string changed = index;
    changed[i] ^= 0x41;
    // The padding of the last bytes says nothing, so it may be anything.
    try {
      const TensorBundleReader reader(changed, "", "m");
      EXPECT_GE(i, index.size() - 48) << "a change of byte " << i << " went unnoticed";
    } catch (const DataLossError& error) {
      EXPECT_THAT(error.what(), HasSubstr("m.index"));
    } catch (const UnimplementedError& error) {
      EXPECT_THAT(error.what(), HasSubstr("compressed"));
    }
    EXPECT_THROW(TensorBundleReader(index.substr(0, i), "", "m"), DataLossError);
  }
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// Tables that other programs may write: keys not shortened, nothing shared.
TEST(TensorBundleIndex, NeedNotBeWrittenAsOursIs) {
  const std::string index = bytes_of(
      "00000608011a02080100010f780801120412020803280c35735b8971000000000100000000c3bdc7"
      "98000000000100000000c0f2a1b0000102780024000000000100000000ab30707f2908360e000000"
      "00000000000000000000000000000000000000000000000000000000000000000057fb808b247547"
      "db");
  const TensorBundleReader reader(index, bytes_of("0000803f0000004000004040"), "m");
  EXPECT_EQ(reader.read("x"), Array::vector<float>({1, 2, 3}));
}

TEST(TensorBundleIndex, BigEndianDataAreTurnedRound) {
  const std::string index = bytes_of(
      "000008080110011a02080100010d6308081200200c280835c1b258bf00010f780801120412020803"
      "280c35bb76ee29000000000100000000b26d9df9000000000100000000c0f2a1b000010278003700"
      "00000001000000006dd96b273c08490e000000000000000000000000000000000000000000000000"
      "00000000000000000000000057fb808b247547db");
  const TensorBundleReader reader(index, bytes_of("3f80000040000000408000003f80000040000000"), "m");
  EXPECT_EQ(reader.read("x"), Array::vector<float>({1, 2, 4}));
  EXPECT_EQ(*reader.read("c").data<std::complex<float>>(), std::complex<float>(1, 2));
}

// Two lengths whose sum is small in 32 bits; the checksums are right.
TEST(TensorBundleIndex, LengthsThatOverflowAreRefused) {
  const std::string index = bytes_of(
      "00ffffffff0f026162000000000100000000397cf7f7000000000100000000c0f2a1b00001027a00"
      "11000000000100000000de60462c1608230e00000000000000000000000000000000000000000000"
      "000000000000000000000000000057fb808b247547db");
  EXPECT_THAT(error_of<DataLossError>([&] { TensorBundleReader(index, "", "m"); }),
              HasSubstr("an entry of the table is longer than its block"));
}

TEST(TensorBundleIndex, CompressionIsRefused) {
  const std::string index = bytes_of(
      "00000608011a020801000000000100000001353856f3000000000100000000c0f2a1b00001027a00"
      "11000000000100000000de60462c1608230e00000000000000000000000000000000000000000000"
      "000000000000000000000000000057fb808b247547db");
  EXPECT_THAT(error_of<UnimplementedError>([&] { TensorBundleReader(index, "", "m"); }),
              HasSubstr("the table is compressed"));
}

TEST_F(TensorBundle, TakesManyNames) {
  constexpr int kCount = 30'000;  // several blocks of the index
  TensorBundleWriter writer(path("m"));
  for (int i = 0; i < kCount; ++i) writer.add(cat("layer/", i), Array::scalar<std::int32_t>(i));
  writer.finish();
  const TensorBundleReader reader(path("m"));
  EXPECT_EQ(reader.names().size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; i += 777)
    EXPECT_EQ(reader.read(cat("layer/", i)).data<std::int32_t>()[0], i);
}

}  // namespace
}  // namespace tandem::io
