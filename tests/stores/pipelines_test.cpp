// Everything that takes a path takes one of a store: datasets, patterns, caches, snapshots,
// checkpoints, arrays and logs. In memory (ram://) always, in moto and the emulator of Google's
// store where they are there.

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/tandem.h"

#include "tests/stores/store_util.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

class Paths : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    std::string scheme = "ram";
    if (kind != "ram") {
      const std::string endpoint = fs::server(kind == "s3" ? "TANDEM_TEST_S3" : "TANDEM_TEST_GS");
      if (endpoint.empty()) GTEST_SKIP() << "no server for " << kind;
      scheme = kind + "paths";
      const auto known = fs::registered_file_systems().schemes();
      if (std::find(known.begin(), known.end(), scheme) == known.end()) {
        io::register_file_system(scheme, [kind, endpoint] {
          fs::StoreOptions options = fs::quick_options(endpoint);
          options.anonymous = kind == "gs";
          return io::make_store(kind, options);
        });
      }
    }
    std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(test.begin(), test.end(), '/', '_');
    folder_ = scheme + "://bucket/" + test;
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> names(const std::string& folder) const {
    return fs::file_system_of(folder_).list(folder);
  }

  std::string folder_;
};

std::vector<std::string> texts(const data::Dataset& dataset) {
  std::vector<std::string> all;
  for (const data::Element& element : dataset) {
    const auto some = element[0].data<std::string>();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST_P(Paths, OfRecordAndTextFiles) {
  std::vector<std::string> expected;
  for (int file = 0; file < 3; ++file) {
    data::TFRecordWriter writer(path("train-" + std::to_string(file) + ".tfrecord"));
    for (int i = 0; i < 50; ++i) {
      expected.push_back(cat("record ", file, " ", i));
      writer.write(expected.back());
    }
    writer.close();
  }
  fs::write_file(path("other.txt"), "one\ntwo\n");
  const std::vector<std::string> found =
      texts(data::list_files(path("train-*.tfrecord"), {.shuffle = false}));
  EXPECT_THAT(found, ElementsAre(path("train-0.tfrecord"), path("train-1.tfrecord"),
                                 path("train-2.tfrecord")));
  EXPECT_EQ(texts(data::TFRecordDataset(found)), expected);
  std::vector<std::string> mixed = texts(data::TFRecordDataset(found, {.num_parallel_reads = 3}));
  std::sort(mixed.begin(), mixed.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(mixed, expected);
  EXPECT_THAT(texts(data::TextLineDataset(path("other.txt"))), ElementsAre("one", "two"));
  EXPECT_THAT(texts(data::list_files({path("?ther.txt"), path("*/nothing")})),
              ElementsAre(path("other.txt")));
  EXPECT_THROW(data::list_files(path("none*")), InvalidArgumentError);
}

TEST_P(Paths, OfCachesAndSnapshots) {
  const auto numbers = [](const data::Dataset& dataset) {
    std::vector<std::int64_t> all;
    for (const data::Element& element : dataset) all.push_back(element[0].item<std::int64_t>());
    return all;
  };
  const data::Dataset range = data::range(20);
  const auto expected = numbers(range);
  const data::Dataset cached = range.cache(path("cache/file"));
  EXPECT_EQ(numbers(cached), expected);
  EXPECT_THAT(names(path("cache")), ElementsAre("file"));
  EXPECT_EQ(numbers(cached), expected);

  const data::Dataset snapshot = range.snapshot(path("snapshot"));
  EXPECT_EQ(numbers(snapshot), expected);
  ASSERT_EQ(names(path("snapshot")).size(), 1u) << "one finished snapshot and nothing else";
  EXPECT_EQ(numbers(snapshot), expected);
}

TEST_P(Paths, OfCheckpoints) {
  const std::string prefix = path("new/checkpoint");
  const Array value = Array::vector(std::vector<float>{1, 2, 3});
  if (std::string(GetParam()) == "ram") fs::file_system_of(prefix).make_directories(path("new"));
  io::TensorBundleWriter writer(prefix);
  writer.add("a", value);
  writer.finish();
  EXPECT_THAT(names(path("new")),
              ElementsAre("checkpoint.data-00000-of-00001", "checkpoint.index"));
  EXPECT_EQ(io::TensorBundleReader(prefix).read("a").values<float>()[2], 3.0f);
  io::merge_tensor_bundles({prefix}, path("merged"));
  EXPECT_EQ(io::TensorBundleReader(path("merged")).read("a").values<float>()[2], 3.0f);
  EXPECT_FALSE(fs::exists(prefix + ".index"));
}

TEST_P(Paths, OfModelsArraysAndLogs) {
  const auto network = [] {
    keras::Sequential model{keras::Input({3}), keras::layers::Dense(2)};
    model.compile({.optimizer = "sgd", .loss = "mse"});
    return model;
  };
  const auto filled = [](Shape shape) {
    Array array(DType::kFloat, shape);
    std::fill_n(array.data<float>(), array.num_elements(), 0.5f);
    return Tensor(array);
  };
  const keras::Sequential model = network(), other = network();
  const Tensor x = filled({4, 3}), y = filled({4, 2});
  model.fit(x, y,
            {.epochs = 2,
             .verbose = keras::Verbose::kSilent,
             .callbacks = {keras::callbacks::CSVLogger(path("log.csv"))}});
  EXPECT_EQ(fs::read_file(path("log.csv")).substr(0, 11), "epoch,loss\n");
  model.save_weights(path("weights"));
  const Tensor before = model.predict(x);
  other.load_weights(path("weights"));
  EXPECT_EQ(other.predict(x).array().values<float>()[0], before.array().values<float>()[0]);

  io::write_npy(path("x.npy"), x.array());
  EXPECT_EQ(io::read_npy(path("x.npy")).shape(), Shape({4, 3}));
  io::write_file(Tensor(path("op.txt")), Tensor("by an op"));
  EXPECT_EQ(io::read_file(Tensor(path("op.txt"))).item<std::string>(), "by an op");
}

INSTANTIATE_TEST_SUITE_P(In, Paths, ::testing::Values("ram", "s3", "gs"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace tandem
