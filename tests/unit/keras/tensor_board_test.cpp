// The callback TensorBoard: which summaries it writes, where and for which steps. The real
// TensorBoard shows them in tests/tensorboard.

#include "tandem/keras/tensor_board.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"
#include "tandem/io/event_file.h"
#include "tandem/io/summary.h"
#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::keras {
namespace {

using callbacks::TensorBoard;
using callbacks::TensorBoardOptions;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

// The steps of each tag in the event files of a folder.
std::map<std::string, std::vector<std::int64_t>> tags_in(const std::string& folder) {
  std::map<std::string, std::vector<std::int64_t>> tags;
  if (!fs::exists(folder)) return tags;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().string().find("tfevents") == std::string::npos)
      continue;
    io::EventFileReader reader(entry.path().string());
    while (const auto event = reader.next()) {
      if (!event->graph_def.empty()) tags["graph"].push_back(event->step);
      for (const auto& value : event->values) tags[value.tag].push_back(event->step);
    }
  }
  return tags;
}

Sequential small_model() {
  Sequential model{Input({4}, {.name = "in"}), Dense(3, {.activation = "relu", .name = "hidden"}),
                   Dense(1, {.name = "out"})};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  return model;
}

class TensorBoardCallback : public testing::Test {
 protected:
  void fit(const Model& model, TensorBoardOptions options, bool validate = false) {
    options.log_dir = log_dir_;
    FitOptions how{.batch_size = 4, .epochs = 3, .verbose = Verbose::kSilent};
    how.callbacks = {TensorBoard(options)};
    if (validate) how.validation_data = {x_, y_};
    model.fit(x_, y_, how);
  }

  Folder folder_;
  std::string log_dir_ = folder_.file("logs");
  Tensor x_ = ones({8, 4});
  Tensor y_ = zeros({8, 1});
};

TEST_F(TensorBoardCallback, WritesMetricsOfEpochs) {
  fit(small_model(), {}, /*validate=*/true);
  const auto train = tags_in(log_dir_ + "/train");
  EXPECT_THAT(train.at("epoch_loss"), ElementsAre(0, 1, 2));
  EXPECT_THAT(train.at("epoch_learning_rate"), ElementsAre(0, 1, 2));
  EXPECT_THAT(train, Contains(Key("keras")));
  EXPECT_THAT(train.at("graph"), ElementsAre(0));
  EXPECT_THAT(train, Not(Contains(Key("batch_loss"))));
  const auto validation = tags_in(log_dir_ + "/validation");
  EXPECT_THAT(validation.at("epoch_loss"), ElementsAre(0, 1, 2));
  EXPECT_THAT(validation.at("evaluation_loss_vs_iterations"), ElementsAre(2, 4, 6));
}

TEST_F(TensorBoardCallback, WritesBatchesAsOftenAsAsked) {
  fit(small_model(), {.write_graph = false, .write_steps_per_second = true, .update_freq = 2});
  const auto train = tags_in(log_dir_ + "/train");
  EXPECT_THAT(train.at("batch_loss"), ElementsAre(2, 4, 6));
  EXPECT_THAT(train.at("batch_steps_per_second"), ElementsAre(2, 4, 6));
  EXPECT_THAT(train.at("epoch_steps_per_second"), ElementsAre(0, 1, 2));
  EXPECT_THAT(train, Not(Contains(Key("graph"))));
  EXPECT_FALSE(fs::exists(log_dir_ + "/validation"));
}

TEST_F(TensorBoardCallback, WritesDistributions) {
  fit(small_model(), {.histogram_freq = 2,
                      .write_images = true,
                      .write_gradients = true,
                      .write_activations = true});
  const auto train = tags_in(log_dir_ + "/train");
  for (const char* tag : {"hidden/kernel/histogram", "hidden/kernel/image", "out/bias/histogram",
                          "hidden/kernel/gradient", "hidden/activation", "out/activation"}) {
    ASSERT_THAT(train, Contains(Key(tag)));
    EXPECT_THAT(train.at(tag), ElementsAre(0, 2)) << tag;
  }
}

TEST_F(TensorBoardCallback, AnObservedStepTrainsAsOthersDo) {
  const auto weights_after = [&](const TensorBoardOptions& options) {
    utils::set_random_seed(7);
    const Sequential model = small_model();
    fit(model, options);
    return model.get_weights();
  };
  const auto plain = weights_after({});
  const auto observed =
      weights_after({.histogram_freq = 1, .write_gradients = true, .write_activations = true});
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_EQ(plain[i].to_vector<float>(), observed[i].to_vector<float>()) << i;
}

TEST_F(TensorBoardCallback, TakesSummariesOfLayers) {
  class Watched final : public LayerImpl {
   public:
    Watched() : LayerImpl("Watched", {.name = "watched"}) { without_weights(); }
    Tensor call(const Tensor& x, bool) override {
      summary::scalar("mean", reduce_mean(x));
      return x;
    }
  };
  Sequential model{Input({4}), make_layer<Watched>(), Dense(1)};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  fit(model, {.update_freq = 3});
  const auto train = tags_in(log_dir_ + "/train");
  EXPECT_THAT(train.at("mean"), ElementsAre(3, 6));
  // Nothing is left on the thread.
  EXPECT_FALSE(summary::should_record_summaries().item<bool>());
}

TEST_F(TensorBoardCallback, ProfilesBatches) {
  fit(small_model(), {.profile_batch = {2, 4}});
  EXPECT_THAT(tags_in(log_dir_ + "/train").at("batch_4"), ElementsAre(4));
  const auto runs = fs::file_system_of(log_dir_).list(log_dir_ + "/train/plugins/profile");
  EXPECT_EQ(runs.size(), 1u);
  EXPECT_FALSE(profiler::running());
}

TEST_F(TensorBoardCallback, WritesEmbeddings) {
  Sequential model{Input({2}, {.dtype = int32}), Embedding(5, 3, {.name = "words"}), Flatten(),
                   Dense(1)};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  x_ = zeros({8, 2}, int32);
  fit(model, {.embeddings_freq = 2,
              .embeddings_metadata = std::map<std::string, std::string>{{"words", "w.tsv"}}});
  const std::string config = fs::read_file(log_dir_ + "/projector_config.pbtxt");
  EXPECT_THAT(config, HasSubstr("metadata_path: \"w.tsv\""));
  EXPECT_THAT(config, HasSubstr("tensor_path: \"train/words.tsv\""));
  const std::string rows = fs::read_file(log_dir_ + "/train/words.tsv");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 5);
  EXPECT_TRUE(fs::exists(log_dir_ + "/train/keras_embedding.ckpt-2.index"));
  EXPECT_THROW(
      fit(model, {.embeddings_freq = 1,
                  .embeddings_metadata = std::map<std::string, std::string>{{"nothing", "w.tsv"}}}),
      InvalidArgumentError);
}

TEST_F(TensorBoardCallback, WritesToAStoreInsteadOfFiles) {
  const io::EventStore store;
  fit(small_model(), {.event_store = store}, /*validate=*/true);
  EXPECT_FALSE(fs::exists(log_dir_));
  const std::string runs = store.answer("ListRuns", "").at(0);
  EXPECT_THAT(runs, HasSubstr("train"));
  EXPECT_THAT(runs, HasSubstr("validation"));
}

TEST_F(TensorBoardCallback, RefusesOptionsThatMeanNothing) {
  EXPECT_THROW(TensorBoard({.update_freq = "sometimes"}), InvalidArgumentError);
  EXPECT_THROW(TensorBoard({.update_freq = 0}), InvalidArgumentError);
  EXPECT_THROW(TensorBoard({.profile_batch = {5, 2}}), InvalidArgumentError);
}

TEST_F(TensorBoardCallback, ATrainingThatFailedLeavesNothingBehind) {
  class Fails final : public Callback {
   public:
    void on_train_batch_end(std::int64_t, const BatchLogs&) override {
      throw InternalError("enough");
    }
  };
  {
    FitOptions how{.batch_size = 4, .verbose = Verbose::kSilent};
    how.callbacks = {TensorBoard({.log_dir = log_dir_, .update_freq = "batch", .profile_batch = 1}),
                     Fails()};
    EXPECT_THROW(small_model().fit(x_, y_, how), InternalError);
  }
  EXPECT_FALSE(summary::should_record_summaries().item<bool>());
  EXPECT_FALSE(profiler::running());
}

}  // namespace
}  // namespace tandem::keras
