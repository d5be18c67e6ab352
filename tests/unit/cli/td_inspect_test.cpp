#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/record_file.h"
#include "tandem/io/example.h"
#include "tandem/io/npy.h"
#include "tandem/io/safetensors.h"
#include "tandem/io/tensor_bundle.h"
#include "tandem/ops/creation_ops.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TdInspect : public TdTest {
 protected:
  // Two tensors in each format that Tandem writes.
  void write_all() const {
    const std::map<std::string, Tensor> tensors{{"a", Tensor{1.0F, 2.0F, 6.0F}},
                                                {"b", zeros({2, 2}, int32)}};
    io::save_safetensors(path("x.safetensors"), tensors);
    io::save_npz(path("x.npz"), tensors);
    io::TensorBundleWriter writer(path("x"));
    for (const auto& [name, tensor] : tensors) writer.add(name, tensor.array());
    writer.finish();
  }
};

TEST_F(TdInspect, SaysWhatFilesHold) {
  write_all();
  for (const char* name : {"x.safetensors", "x.npz", "x", "x.index"}) {
    const TdResult result = run("inspect " + path(name) + " --stats");
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("2 tensors, 28 bytes")) << name;
    ASSERT_EQ(result.lines_with("float").size(), 1U) << result.out;
    EXPECT_THAT(result.lines_with("float")[0],
                HasSubstr("[3]    12 bytes  min 1  max 6  mean 3  std 2.16025"));
  }
  const TdResult json = run("inspect --json " + path("x.npz"));
  EXPECT_THAT(json.out, HasSubstr("\"format\": \"npz\""));
}

TEST_F(TdInspect, ComparesAcrossFormats) {
  write_all();
  const TdResult same = run("inspect " + path("x.safetensors") + " " + path("x"));
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  io::save_npz(path("y.npz"), {{"a", Tensor{1.0F, 2.5F, 6.0F}}, {"c", ones({1})}});
  const TdResult other = run("inspect " + path("x.npz") + " " + path("y.npz"));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.out, HasSubstr("a: elements differ by up to 0.5"));
  EXPECT_THAT(other.out, HasSubstr("b: only in the first"));
  EXPECT_THAT(other.out, HasSubstr("c: only in the second"));
}

TEST_F(TdInspect, ConvertsTensors) {
  write_all();
  EXPECT_EQ(run("convert " + path("x") + " " + path("y.safetensors")).code, 0);
  EXPECT_EQ(run("convert " + path("y.safetensors") + " " + path("y.npz")).code, 0);
  EXPECT_EQ(run("convert " + path("y.npz") + " " + path("z")).code, 0);
  EXPECT_EQ(run("inspect " + path("x") + " " + path("z")).code, 0);
  EXPECT_THAT(failure_of("convert " + path("x.npz") + " " + path("x.npy")), HasSubstr("one array"));
}

TEST_F(TdInspect, CountsRecordsAndTheirFeatures) {
  fs::RecordWriter writer(path("x.tfrecord"));
  for (int i = 0; i < 3; ++i) {
    io::Example example;
    example.set("n", std::vector<std::int64_t>(static_cast<std::size_t>(i + 1), 7));
    writer.write(example.serialize());
  }
  writer.close();
  const TdResult result = run("inspect " + path("x.tfrecord"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("TFRecord"));
  EXPECT_THAT(result.out, HasSubstr("records: 3"));
  EXPECT_THAT(result.out, HasSubstr("kind: int64"));
  EXPECT_THAT(result.out, HasSubstr("most_values: 3"));
}

TEST_F(TdInspect, NamesWhatItCannotRead) {
  EXPECT_THAT(failure_of("inspect " + path("none")), HasSubstr("none"));
  expect_wrong_usage({"inspect", "convert a"});
}

}  // namespace
}  // namespace tandem
