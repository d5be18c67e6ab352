#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/reference/keras/from_config.h"
#include "tests/reference/keras/records.h"

namespace reference {
namespace {

namespace td = tandem;
using namespace td::keras;
using td::Tensor;

// Three epochs of rounding. Where tokens repeat in a batch, Keras squares the parts of an
// embedding's gradient one by one before it adds them up, and its Adam so takes other steps than
// one with the gradient itself; ours is the latter.
double tolerance_of(const Json& record) { return record.at("model") == "attention" ? 0.01 : 2e-4; }

std::vector<Tensor> weights_of(const Json& weights) {
  std::vector<Tensor> values;
  for (const Json& weight : weights)
    values.push_back(tensor_of(weight.contains("value") ? weight["value"] : weight));
  return values;
}

void expect_logs(const Logs& got, const Json& want, double tolerance, const char* what) {
  EXPECT_EQ(got.entries().size(), want.size()) << what;
  for (const auto& entry : want.items()) {
    const auto value = got.find(entry.key());
    ASSERT_TRUE(value.has_value()) << what << " has no " << entry.key();
    EXPECT_NEAR(*value, entry.value().get<double>(),
                tolerance * (1 + std::abs(entry.value().get<double>())))
        << what << " " << entry.key();
  }
}

CompileOptions compile_options(const Json& compile, bool eagerly) {
  CompileOptions options;
  const Json& optimizer = compile.at("optimizer");
  options.optimizer = optimizer.is_string()
                          ? Optimizer(optimizer.get<std::string>())
                          : make_optimizer(optimizer.at("class"), optimizer.at("config"), nullptr);
  options.loss = compile.at("loss").get<std::string>();
  std::vector<Metric> metrics;
  for (const Json& metric : compile.at("metrics")) metrics.emplace_back(metric.get<std::string>());
  options.metrics = metrics;
  options.run_eagerly = eagerly;
  return options;
}

void check_training(const Json& record, bool eagerly) {
  const double tolerance = tolerance_of(record);
  const Model model = make_model(record.at("model"));
  model.compile(compile_options(record.at("compile"), eagerly));
  model.set_weights(weights_of(record.at("weights")));
  const Tensor x = tensor_of(record.at("x"));
  const Tensor y = tensor_of(record.at("y"));
  EXPECT_EQ(compare(model.predict_on_batch(x), record.at("predictions_before"), 2e-5), "");

  const auto first_rows = [](const Tensor& t) { return Tensor(t.array().slice_outer(0, 5)); };
  FitOptions fit{.batch_size = record.at("fit").at("batch_size"),
                 .epochs = record["fit"].at("epochs"),
                 .verbose = Verbose::kSilent,
                 .validation_data = {first_rows(x), first_rows(y)},
                 .shuffle = record["fit"].at("shuffle")};
  EvaluateOptions evaluate{.batch_size = 4, .verbose = Verbose::kSilent};
  if (const Json& weights = record.at("sample_weight"); !weights.is_null()) {
    fit.sample_weight = tensor_of(weights);
  }
  if (const Json& weights = record.at("class_weight"); !weights.is_null()) {
    for (const auto& entry : weights.items()) {
      fit.class_weight[std::stoll(entry.key())] = entry.value().get<double>();
    }
  }
  const History history = model.fit(x, y, fit);
  for (const auto& entry : record.at("history").items()) {
    const std::vector<double>& got = history[entry.key()];
    ASSERT_EQ(got.size(), entry.value().size()) << entry.key();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = entry.value()[i].get<double>();
      EXPECT_NEAR(got[i], want, tolerance * (1 + std::abs(want)))
          << entry.key() << " of epoch " << i;
    }
  }
  const std::vector<Tensor> after = model.get_weights();
  ASSERT_EQ(after.size(), record.at("weights_after").size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Json& want = record["weights_after"][i];
    EXPECT_EQ(compare(after[i], want.contains("value") ? want["value"] : want, tolerance), "")
        << "weight " << i;
  }
  expect_logs(model.evaluate(x, y, evaluate), record.at("evaluate"), tolerance, "evaluate");
  expect_logs(model.train_on_batch(x, y), record.at("train_on_batch"), tolerance, "train_on_batch");
  EXPECT_EQ(compare(model.predict_on_batch(x), record.at("predictions_after"), tolerance), "");
}

TEST(KerasReference, TrainingTraced) {
  for_each_record("training", "model", {},
                  [](const Json& record) { check_training(record, false); });
}
TEST(KerasReference, TrainingEagerly) {
  for_each_record("training", "model", {},
                  [](const Json& record) { check_training(record, true); });
}

std::string stored_summary(const std::string& name) {
  std::ifstream file(data_folder() + "/keras_summary_" + name + ".txt");
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(KerasReference, Summaries) {
  const SummaryOptions wide{.line_length = 76};  // of 80 columns
  for (const char* name : {"mlp", "cnn", "attention"}) {
    EXPECT_EQ(make_model(name).summary_text(wide), stored_summary(name));
  }
  const Model trained = make_model("mlp");
  trained.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
  trained.train_on_batch(td::zeros({2, 6}), Tensor{0, 1});
  EXPECT_EQ(trained.summary_text(wide), stored_summary("mlp_trained"));

  const Model frozen = make_model("mlp");
  frozen.layers().front().set_trainable(false);
  EXPECT_EQ(frozen.summary_text(wide), stored_summary("frozen"));

  clear_session();
  const Sequential unbuilt{Dense(5), Dropout(0.5), Dense(3)};
  EXPECT_EQ(unbuilt.summary_text(wide), stored_summary("unbuilt"));
}

}  // namespace
}  // namespace reference
