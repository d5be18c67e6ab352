// Models saved while they train, and fits that go on after an interruption.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/keras/serialization.h"
#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::keras {
namespace {

using callbacks::BackupAndRestore;
using callbacks::ModelCheckpoint;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Verbose kSilent = Verbose::kSilent;

Sequential line() {
  Sequential model{Input({1}), Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})};
  model.compile(
      {.optimizer = optimizers::SGD({.learning_rate = 0.1, .momentum = 0.5}), .loss = "mse"});
  return model;
}
const Tensor& xs() {
  static const Tensor x = ones({8, 1});
  return x;
}

TEST(ModelCheckpointFiles, AreNamedByEpochAndLogs) {
  const Folder folder;
  const Sequential model = line();
  model.fit(xs(), xs(),
            {.batch_size = 4,
             .epochs = 3,
             .verbose = kSilent,
             .callbacks = {ModelCheckpoint(folder.file("w-{epoch:02d}-{loss:.1f}"))}});
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("")))
    if (entry.path().extension() == ".index") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names.size(), 3u);
  EXPECT_THAT(names[0], HasSubstr("w-01-0."));
  const Sequential again = line();
  again.load_weights(folder.file(names[2]), {.optimizer = true});
  EXPECT_TRUE(all_equal(again.get_weights()[0], model.get_weights()[0]));
  EXPECT_EQ(again.optimizer().iterations(), 6);
}

TEST(ModelCheckpointFiles, KeepTheBestAlone) {
  const Folder folder;
  const Sequential model = line();
  model.fit(xs(), xs(),
            {.epochs = 3,
             .verbose = kSilent,
             .callbacks = {ModelCheckpoint(
                 folder.file("best"),
                 {.monitor = "loss", .save_best_only = true, .save_weights_only = true})}});
  const Sequential again = line();
  again.load_weights(folder.file("best"));
  EXPECT_TRUE(all_equal(again.get_weights()[0], model.get_weights()[0]));
  EXPECT_THROW(again.load_weights(folder.file("best"), {.optimizer = true}), NotFoundError);
}

TEST(ModelCheckpointFiles, LieInFoldersThatAreMade) {
  const Folder folder;
  line().fit(xs(), xs(),
             {.verbose = kSilent,
              .callbacks = {ModelCheckpoint(folder.file("a/{epoch}/m.keras")),
                            ModelCheckpoint(folder.file("b/c/weights"))}});
  EXPECT_TRUE(std::filesystem::exists(folder.file("a/1/m.keras")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("b/c/weights.index")));
}

TEST(ModelCheckpointFiles, AreOfTheFormatThatThePathSays) {
  const Folder folder;
  const Sequential model = line();
  model.fit(xs(), xs(),
            {.epochs = 2,
             .verbose = kSilent,
             .callbacks = {ModelCheckpoint(folder.file("{epoch}.keras")),
                           ModelCheckpoint(folder.file("w.weights.h5"))}});
  const Model whole = models::load_model(folder.file("2.keras"));
  EXPECT_TRUE(all_equal(whole.get_weights()[0], model.get_weights()[0]));
  EXPECT_EQ(whole.optimizer().iterations(), 2);
  const Sequential again = line();
  again.load_weights(folder.file("w.weights.h5"), {.optimizer = true});
  EXPECT_TRUE(all_equal(again.get_weights()[0], model.get_weights()[0]));
  EXPECT_EQ(again.optimizer().iterations(), 2);
  EXPECT_THROW(ModelCheckpoint("m.keras", {.save_weights_only = true}), InvalidArgumentError);
}

TEST(ModelCheckpointFiles, RefuseFormatsThatCannotBeRead) {
  for (const char* path : {"{", "{none}", "{loss:d}", "{epoch:x}", "{loss:.999f}", "{loss:5q}"}) {
    EXPECT_THROW(line().fit(xs(), xs(), {.verbose = kSilent, .callbacks = {ModelCheckpoint(path)}}),
                 InvalidArgumentError)
        << path;
  }
}

// Everything that has a state: dropout, moving statistics, moments, a falling rate, a shuffled
// dataset whose map draws.
struct Fit {
  static Sequential model() {
    utils::set_random_seed(11);
    Sequential model{Dense(16, {.activation = "relu"}), BatchNormalization(), Dropout(0.4),
                     Dense(3, {.activation = "softmax"})};
    model.compile(
        {.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
    return model;
  }
  static data::Dataset dataset() {
    const Tensor x = tandem::random::stateless_normal({70, 5}, {1, 2});
    const Tensor y = floor(tandem::random::stateless_uniform({70}, {3, 4}) * 3);
    return data::from_tensor_slices({x, cast(y, int32)})
        .shuffle(50)
        .map([](const Tensor& a, const Tensor& b) {
          return std::pair(a + tandem::random::normal({5}, {.stddev = 0.1}), b);
        })
        .batch(8)
        .prefetch(2);
  }

  // Dies in the middle of a step, as far as it can within a process.
  struct Dies : Callback {
    explicit Dies(int at) : left(at) {}
    void on_train_batch_end(std::int64_t, const BatchLogs&) override {
      if (left-- == 0) throw std::runtime_error("power cut");
    }
    int left;
  };

  History run(int dies_at) {
    trained = model();
    std::vector<CallbackRef> all{
        callbacks::ReduceLROnPlateau({.monitor = "loss", .patience = 1, .min_delta = 1}),
        callbacks::EarlyStopping({.monitor = "loss", .patience = 9, .restore_best_weights = true}),
        BackupAndRestore(folder.file("backup"), options), Dies(dies_at)};
    return trained.fit(dataset(), {.epochs = 4, .verbose = kSilent, .callbacks = all});
  }

  callbacks::BackupAndRestoreOptions options;
  Folder folder;
  Sequential trained;
};

void expect_equal(const Fit& a, const Fit& b) {
  const std::vector<Tensor> weights = a.trained.get_weights(), others = b.trained.get_weights();
  ASSERT_EQ(weights.size(), others.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    EXPECT_TRUE(all_equal(weights[i], others[i])) << i;
}

TEST(BackupAndRestore, GoesOnAtTheNextElementToTheBit) {
  constexpr int kNever = 1000000;
  Fit whole;
  const History expected = whole.run(kNever);
  EXPECT_FALSE(std::filesystem::exists(whole.folder.file("backup")));
  for (const bool background : {false, true}) {
    for (const std::int64_t every : {1, 4}) {
      Fit cut{
          .options = {.save_freq = every, .enable_async = background}, .folder = {}, .trained = {}};
      for (const int at : {6, 9, 2}) EXPECT_THROW(cut.run(at), std::exception) << every;
      const History history = cut.run(kNever);
      expect_equal(whole, cut);
      EXPECT_EQ(history.history(), expected.history()) << every;
    }
  }
  Fit by_epoch;
  EXPECT_THROW(by_epoch.run(12), std::exception);
  EXPECT_THROW(by_epoch.run(20), std::exception);
  by_epoch.run(kNever);
  expect_equal(whole, by_epoch);
}

TEST(BackupAndRestore, KeepsTheBackupOnRequestAndFallsBack) {
  Fit whole;
  whole.run(1000);
  Fit cut{.options = {.save_freq = 3, .double_checkpoint = true, .delete_checkpoint = false},
          .folder = {},
          .trained = {}};
  EXPECT_THROW(cut.run(20), std::exception);
  EXPECT_TRUE(std::filesystem::exists(cut.folder.file("backup/backup-6.index")));
  std::ofstream(cut.folder.file("backup/backup-6.data-00000-of-00001")) << "damaged";
  testing::internal::CaptureStderr();
  cut.run(1000);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("backup-5"));
  expect_equal(whole, cut);
  EXPECT_TRUE(std::filesystem::exists(cut.folder.file("backup/checkpoint")));
}

TEST(BackupAndRestore, RefusesWrongOptions) {
  EXPECT_THROW(BackupAndRestore(""), InvalidArgumentError);
  EXPECT_THROW(BackupAndRestore("x", {.save_freq = 0}), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::keras
