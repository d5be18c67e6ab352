#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::keras {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Verbose kSilent = Verbose::kSilent;

// A line through the origin: a loss that falls, or not at all with a rate of 0.
Sequential line(double rate) {
  Sequential model{Input({1}), Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})};
  model.compile(
      {.optimizer = optimizers::SGD({.learning_rate = rate}), .loss = "mse", .metrics = {"mae"}});
  return model;
}
const Tensor& xs() {
  static const Tensor x = ones({8, 1});
  return x;
}

TEST(Callbacks, AreReportedInOrder) {
  class Recorder : public Callback {
   public:
    explicit Recorder(std::vector<std::string>* log) : log_(log) {}
    void on_train_begin() override { log_->push_back("train"); }
    void on_train_end(const Logs& logs) override {
      log_->push_back(logs.find("val_loss") ? "end+val" : "end");
    }
    void on_epoch_begin(int epoch) override { log_->push_back("epoch " + std::to_string(epoch)); }
    void on_epoch_end(int, Logs& logs) override {
      logs.set("mine", 7);
      log_->push_back("epoch end");
    }
    void on_train_batch_begin(std::int64_t batch) override {
      log_->push_back("batch " + std::to_string(batch));
    }
    void on_train_batch_end(std::int64_t, const BatchLogs& logs) override {
      EXPECT_TRUE(logs.get().find("loss"));
      log_->push_back("batch end");
    }
    void on_test_begin() override { log_->push_back("test"); }
    void on_test_end(const Logs&) override { log_->push_back("test end"); }

   private:
    std::vector<std::string>* log_;
  };
  std::vector<std::string> log;
  const History history = line(0.1).fit(xs(), xs(),
                                        {.batch_size = 4,
                                         .verbose = kSilent,
                                         .callbacks = {Recorder(&log)},
                                         .validation_data = {xs(), xs()}});
  EXPECT_THAT(log, ElementsAre("train", "epoch 0", "batch 0", "batch end", "batch 1", "batch end",
                               "test", "test end", "epoch end", "end+val"));
  EXPECT_THAT(history["mine"], ElementsAre(7));
}

TEST(Callbacks, MayStopTraining) {
  int batches = 0;
  const auto stop = std::make_shared<callbacks::LambdaCallback>(callbacks::LambdaCallbackOptions{
      .on_train_batch_end = [&](std::int64_t, const BatchLogs&) { ++batches; }});
  class Stopper : public Callback {
   public:
    void on_train_batch_end(std::int64_t batch, const BatchLogs&) override {
      if (batch == 1) stop_training();
    }
  };
  const History history = line(0.1).fit(
      xs(), xs(),
      {.batch_size = 1, .epochs = 5, .verbose = kSilent, .callbacks = {stop, Stopper()}});
  EXPECT_EQ(batches, 2);
  EXPECT_EQ(history.epochs().size(), 1u);
}

TEST(Callbacks, MaySetStopTrainingOfTheModel) {
  class Stopper : public Callback {
   public:
    void on_epoch_end(int epoch, Logs&) override {
      EXPECT_FALSE(model().stop_training);
      if (epoch == 2) model().stop_training = true;
    }
  };
  const Sequential model = line(0.1);
  EXPECT_EQ(
      model.fit(xs(), xs(), {.epochs = 9, .verbose = 0, .callbacks = {Stopper()}}).epochs().size(),
      3U);
  EXPECT_TRUE(model.stop_training);
  EXPECT_EQ(model.fit(xs(), xs(), {.epochs = 2, .verbose = 0}).epochs().size(), 2U)
      << "fit begins with false";
  EXPECT_FALSE(model.stop_training);
  Model other = line(0.1);
  other = model;
  other.stop_training = true;
  EXPECT_TRUE(model.stop_training) << "a handle of the same model";
  EXPECT_THROW(Model().stop_training = true, FailedPreconditionError);
}

TEST(Callbacks, ReadTheLogsOfABatchByName) {
  class Reader : public Callback {
   public:
    void on_train_batch_end(std::int64_t, const BatchLogs& logs) override {
      losses.push_back(logs["loss"]);
      EXPECT_THROW(logs["los"], NotFoundError);
    }
    std::vector<double> losses;
  };
  Reader reader;
  const History history =
      line(0.1).fit(xs(), xs(), {.batch_size = 4, .verbose = kSilent, .callbacks = {reader}});
  ASSERT_EQ(reader.losses.size(), 2u);
  EXPECT_DOUBLE_EQ(reader.losses.back(), history["loss"].back());
}

// As in Python, where a list holds the objects themselves.
TEST(Callbacks, ObjectsWithNamesHaveTheirResultsAfterwards) {
  struct Losses : Callback {
    std::vector<double> values;
    void on_epoch_end(int, Logs& logs) override { values.push_back(logs["loss"]); }
  };
  Losses losses;
  callbacks::EarlyStopping early({.monitor = "loss", .patience = 2, .restore_best_weights = true});
  line(0.0).fit(xs(), xs(), {.epochs = 10, .verbose = kSilent, .callbacks = {losses, early}});
  EXPECT_EQ(losses.values.size(), 3u);
  EXPECT_EQ(early.stopped_epoch(), 2);
  EXPECT_EQ(early.best_epoch(), 0);
  EXPECT_EQ(early.best(), 1.0);
  EXPECT_EQ(early.wait(), 2);
  EXPECT_EQ(early.best_weights().size(), 1u);
}

TEST(Callbacks, OptionsMayOutliveTheObjectsTheyWereMadeOf) {
  const auto seen = std::make_shared<int>(0);
  struct Count : Callback {
    explicit Count(std::shared_ptr<int> to) : count(std::move(to)) {}
    std::shared_ptr<int> count;
    void on_epoch_end(int, Logs&) override { ++*count; }
  };
  const auto options = [&] {
    Count count(seen);
    const Count fixed(seen);
    return FitOptions{.verbose = kSilent, .callbacks = {count, fixed}};
  }();
  line(0.1).fit(xs(), xs(), options);
  EXPECT_EQ(*seen, 2);
}

TEST(Callbacks, OneThatCannotBeCopiedIsCalledWhileItLives) {
  struct Owner : Callback {
    std::unique_ptr<int> epochs = std::make_unique<int>(0);
    void on_epoch_end(int, Logs&) override { ++*epochs; }
  };
  FitOptions options{.verbose = kSilent};
  {
    Owner owner;
    options.callbacks = {owner};
    line(0.1).fit(xs(), xs(), options);
    EXPECT_EQ(*owner.epochs, 1);
  }
  EXPECT_THROW(line(0.1).fit(xs(), xs(), options), InvalidArgumentError);
}

TEST(Callbacks, WhatTheyThrowEndsFit) {
  const Sequential model = line(0.1);
  const callbacks::LambdaCallback bad(
      {.on_epoch_begin = [](int) { throw std::runtime_error("enough"); }});
  EXPECT_THROW(model.fit(xs(), xs(), {.verbose = kSilent, .callbacks = {bad}}), std::runtime_error);
  EXPECT_EQ(model.fit(xs(), xs(), {.verbose = kSilent}).epochs().size(), 1u);
}

TEST(EarlyStopping, StopsAndRestores) {
  const auto early = std::make_shared<callbacks::EarlyStopping>(callbacks::EarlyStoppingOptions{
      .monitor = "loss", .patience = 2, .restore_best_weights = true});
  const Sequential still = line(0.0);
  const History history =
      still.fit(xs(), xs(), {.epochs = 10, .verbose = kSilent, .callbacks = {early}});
  EXPECT_EQ(history.epochs().size(), 3u) << "the first epoch is the best, two more are waited for";
  EXPECT_EQ(early->stopped_epoch(), 2);
  EXPECT_EQ(early->best_epoch(), 0);

  const Sequential diverging = line(1.5);  // the weight swings further out with each step
  const Tensor best = [&] {
    diverging.fit(xs(), xs(), {.verbose = kSilent});
    return diverging.get_weights()[0];
  }();
  diverging.fit(xs(), xs(), {.epochs = 10, .verbose = kSilent, .callbacks = {early}});
  EXPECT_NE(early->stopped_epoch(), -1);
  EXPECT_LT(std::abs(diverging.get_weights()[0].item<float>()),
            8 * std::abs(best.item<float>()) + 8);
}

TEST(EarlyStopping, KnowsDirectionsOrAsks) {
  const Sequential model = line(0.1);
  const auto fit_with = [&](const callbacks::EarlyStoppingOptions& options) {
    model.fit(xs(), xs(),
              {.epochs = 2, .verbose = kSilent, .callbacks = {callbacks::EarlyStopping(options)}});
  };
  fit_with({.monitor = "mae"});
  testing::internal::CaptureStderr();
  fit_with({.monitor = "val_loss"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("watches `val_loss` which is not available"));
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {[](const Tensor& t, const Tensor&) {
                                                      return t;
                                                    }}});
  EXPECT_THROW(fit_with({.monitor = "metric"}), InvalidArgumentError);
  fit_with({.monitor = "metric", .mode = "max"});
  EXPECT_THROW(callbacks::EarlyStopping({.mode = "up"}), InvalidArgumentError);
}

TEST(ModelCheckpoint, CallsWhenTheValueImproves) {
  std::vector<int> saved;
  const auto save = [&](const Model& model, int epoch, const Logs& logs) {
    EXPECT_FALSE(model.get_weights().empty());
    EXPECT_TRUE(logs.find("loss"));
    saved.push_back(epoch);
  };
  line(0.1).fit(xs(), xs(),
                {.epochs = 3,
                 .verbose = kSilent,
                 .callbacks = {callbacks::ModelCheckpoint(
                     save, {.monitor = "loss", .save_best_only = true})}});
  EXPECT_THAT(saved, ElementsAre(0, 1, 2));
  saved.clear();
  line(0.0).fit(xs(), xs(),
                {.epochs = 3,
                 .verbose = kSilent,
                 .callbacks = {callbacks::ModelCheckpoint(
                     save, {.monitor = "loss", .save_best_only = true})}});
  EXPECT_THAT(saved, ElementsAre(0));
  saved.clear();
  line(0.0).fit(xs(), xs(),
                {.batch_size = 1,
                 .epochs = 2,
                 .verbose = kSilent,
                 .callbacks = {callbacks::ModelCheckpoint(save, {.save_freq = 5})}});
  EXPECT_THAT(saved, ElementsAre(0, 1, 1));
}

TEST(LearningRateScheduler, SetsTheRate) {
  const Sequential model = line(0.1);
  const callbacks::LearningRateScheduler halve(
      [](int epoch, double rate) { return epoch == 0 ? rate : rate / 2; });
  const History history =
      model.fit(xs(), xs(), {.epochs = 3, .verbose = kSilent, .callbacks = {halve}});
  EXPECT_NEAR(history["learning_rate"][2], 0.025, 1e-8);
  EXPECT_NEAR(model.optimizer().learning_rate(), 0.025, 1e-8);
  model.compile({.optimizer = optimizers::SGD(
                     {.learning_rate = schedules::ExponentialDecay(
                          {.initial_learning_rate = 0.1, .decay_steps = 1, .decay_rate = 0.5})}),
                 .loss = "mse"});
  EXPECT_THROW(model.fit(xs(), xs(), {.verbose = kSilent, .callbacks = {halve}}),
               FailedPreconditionError);
}

TEST(ReduceLROnPlateau, ReducesOnce) {
  const Sequential model = line(0.0);
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 1e-12}), .loss = "mse"});
  const callbacks::ReduceLROnPlateau reduce(
      {.monitor = "loss", .factor = 0.5, .patience = 2, .cooldown = 10});
  model.fit(xs(), xs(), {.epochs = 6, .verbose = kSilent, .callbacks = {reduce}});
  EXPECT_NEAR(model.optimizer().learning_rate(), 0.5e-12, 1e-15);
  EXPECT_THROW(callbacks::ReduceLROnPlateau({.factor = 1.0}), InvalidArgumentError);
}

TEST(CSVLogger, WritesALineForEachEpoch) {
  const Folder folder;
  const std::string path = folder.file("log.csv");
  const auto fit = [&](bool append) {
    line(0.1).fit(xs(), xs(),
                  {.epochs = 2,
                   .verbose = kSilent,
                   .callbacks = {callbacks::CSVLogger(path, {.append = append})}});
  };
  fit(false);
  fit(true);
  std::ifstream file(path);
  std::string header, row;
  std::getline(file, header);
  EXPECT_EQ(header, "epoch,loss,mae");
  int rows = 0;
  while (std::getline(file, row)) ++rows;
  EXPECT_EQ(rows, 4);
  EXPECT_THROW(
      line(0.1).fit(xs(), xs(),
                    {.verbose = kSilent, .callbacks = {callbacks::CSVLogger("/no/such/x.csv")}}),
      NotFoundError);
}

TEST(TerminateOnNaN, StopsAtTheBatch) {
  const Tensor x = fill({32, 1}, Tensor(std::numeric_limits<float>::quiet_NaN()));
  const Sequential model = line(0.1);
  int batches = 0;
  const callbacks::LambdaCallback count({.on_train_batch_begin = [&](std::int64_t) { ++batches; }});
  testing::internal::CaptureStderr();
  model.fit(x, x,
            {.batch_size = 1,
             .epochs = 3,
             .verbose = kSilent,
             .callbacks = {count, callbacks::TerminateOnNaN()}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Batch 0: Invalid loss"));
  EXPECT_EQ(batches, 1);
}

}  // namespace
}  // namespace tandem::keras
